// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/data/cache/cached.hpp>
#include <frugal/data/pad.hpp>
#include <frugal/data/text/packed.hpp>
#include <frugal/data/text/token_transform.hpp>

#include "support/files.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal_test::data_text_token_transform {

using frugal::Encoded;
using frugal::TokenTransform;

/// Bytes as ids, after a 1.
struct Bytes {
  void append_ids(std::string_view text, std::vector<std::int32_t>& ids) const {
    for (char const c : text) ids.push_back(static_cast<unsigned char>(c));
  }
  Encoded encode(std::string_view text, std::size_t most) const {
    Encoded made;
    made.push(1, 0, {});
    for (std::size_t i = 0; i < text.size(); ++i) {
      made.push(static_cast<unsigned char>(text[i]), 0, {i, i + 1});
    }
    made.resize(std::min(made.size(), most));
    return made;
  }
  std::string identity() const { return "bytes"; }
};

TEST_CASE("a text becomes its ids, cut to the most, of the type that is asked for") {
  TokenTransform const transform(Bytes{}, {.most = 3});
  CHECK(transform("abc").equal(at::tensor({1, 97, 98}, at::kLong)));
  TokenTransform const ints(Bytes{}, {.type = at::kInt});
  CHECK(ints("a").equal(at::tensor({1, 97}, at::kInt)));
  CHECK((ints("a").scalar_type() == at::kInt));
  CHECK(frugal::token_tensor({}).sizes() == at::IntArrayRef({0}));
}

TEST_CASE("ids that are no integers of an embedding are refused") {
  CHECK_THROWS_WITH_AS(static_cast<void>(frugal::token_tensor({}, at::kFloat)),
                       "frugal: token ids as Float (token_tensor): an embedding takes int64 or "
                       "int32. Give at::kLong or at::kInt.",
                       frugal::DtypeError);
}

TEST_CASE("a label stays beside its text, and Pad makes a batch with a mask of them") {
  TokenTransform const transform(Bytes{});
  std::vector<std::pair<at::Tensor, std::int64_t>> samples;
  samples.push_back(transform(std::pair<std::string, std::int64_t>("ab", 4)));
  samples.push_back(transform(std::pair<std::string, std::int64_t>("", 5)));
  frugal::PaddedBatch const batch = frugal::Pad{.value = 7}(samples);
  CHECK(batch.data.equal(at::tensor({1, 97, 98, 1, 7, 7}, at::kLong).view({2, 3})));
  CHECK(batch.mask.equal(at::tensor({1, 1, 1, 1, 0, 0}, at::kLong).view({2, 3}).to(at::kBool)));
  CHECK(batch.target.equal(at::tensor({4, 5}, at::kLong)));
}

TEST_CASE("the settings tell whether a cache of the ids still holds") {
  auto const settings = [](std::size_t most, at::ScalarType type) {
    return TokenTransform(Bytes{}, {.most = most, .type = type}).settings();
  };
  CHECK(settings(5, at::kLong) == settings(5, at::kLong));
  CHECK(settings(5, at::kLong) != settings(6, at::kLong));
  CHECK(settings(5, at::kLong) != settings(5, at::kInt));
  static_assert(TokenTransform<Bytes>::version == 1);
  CHECK(TokenTransform(Bytes{}).identity().find("bytes") != std::string::npos);
}

/// Counts how often a text is tokenised.
struct Counting : Bytes {
  std::atomic<int>* calls;
  Encoded encode(std::string_view text, std::size_t most) const {
    ++*calls;
    return Bytes::encode(text, most);
  }
};

struct Lines {
  std::uint64_t size() const { return 3; }
  std::string get(std::uint64_t index) const { return std::string(2 + index, 'a'); }
  std::string identity() const { return "three lines"; }
};

TEST_CASE(
    "under a cache a text is tokenised once, over epochs and runs, and again for another limit") {
  support::TemporaryFolder const folder;
  std::atomic<int> calls{0};
  auto const run = [&](std::size_t most) {
    auto const set = frugal::cached(Lines{}, TokenTransform(Counting{{}, &calls}, {.most = most}),
                                    {.folder = folder.path(), .out = nullptr});
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (std::uint64_t i = 0; i < set.size(); ++i) {
        CHECK(set.get(i).equal(TokenTransform(Bytes{}, {.most = most})(Lines{}.get(i))));
      }
    }
    // Packing measures the cached documents, and reads them.
    frugal::Packed const packed(set, {.length = 4});
    CHECK(packed.index().tokens() == (most == 512 ? 12 : 9));
    return packed.get(0).data;
  };
  CHECK(run(512).equal(at::tensor({1, 97, 97, 1}, at::kLong)));
  CHECK(calls == 3);
  run(512);
  CHECK(calls == 3);
  run(3);
  CHECK(calls == 6);
}

}  // namespace frugal_test::data_text_token_transform

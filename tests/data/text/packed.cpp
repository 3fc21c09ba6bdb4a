// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/core/source/batch.hpp>
#include <frugal/data/text/packed.hpp>
#include <frugal/data/text/tokenise.hpp>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace frugal_test::data_text_packed {

using frugal::Documents;
using frugal::Pack;
using frugal::Packed;
using frugal::PackedBatch;
using frugal::Packing;
using Tokens = std::vector<std::int32_t>;

Documents of(std::vector<Tokens> const& all) {
  Documents made;
  for (Tokens const& tokens : all) made.append(tokens);
  return made;
}

std::vector<std::int64_t> numbers(at::Tensor const& tensor) {
  auto const* const data = static_cast<std::int64_t const*>(tensor.const_data_ptr());
  return {data, data + tensor.numel()};
}
using Numbers = std::vector<std::int64_t>;

/// Document d has the tokens 1000 d, 1000 d + 1, ...: a token tells its document and place.
Documents telling(std::uint64_t seed, std::int32_t count, std::int32_t most) {
  std::mt19937_64 chance(seed);
  Documents made;
  for (std::int32_t d = 0; d < count; ++d) {
    Tokens tokens(chance() % static_cast<std::uint64_t>(most + 1));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = 1000 * d + static_cast<std::int32_t>(i);
    }
    made.append(tokens);
  }
  return made;
}

static_assert(frugal::SampleSet<Packed<Documents>> && frugal::IdentifiedSet<Packed<Documents>>);

TEST_CASE("a sequence has tokens, shifted targets, documents and positions") {
  Packed const packed(of({{5, 6, 7}, {8, 9}}), {.length = 8, .end_of_document = 1, .padding = 2});
  REQUIRE(packed.size() == 1);
  PackedBatch const one = packed.get(0);
  CHECK(numbers(one.data) == Numbers{5, 6, 7, 1, 8, 9, 1, 2});
  CHECK(numbers(one.target) == Numbers{6, 7, 1, -100, 9, 1, -100, -100});
  CHECK(numbers(one.documents) == Numbers{0, 0, 0, 0, 1, 1, 1, -1});
  CHECK(numbers(one.positions) == Numbers{0, 1, 2, 3, 0, 1, 2, 0});
  CHECK(one.tokens() == 7);
  CHECK(one.counted() == 5);
}

TEST_CASE("a cut document goes on in the next sequence, and its last position keeps its target") {
  Packed const packed(of({{5, 6, 7, 8, 9}}), {.length = 3});
  CHECK(numbers(packed.get(0).target) == Numbers{6, 7, 8});
  CHECK(numbers(packed.get(1).data) == Numbers{8, 9, 0});
  CHECK(numbers(packed.get(1).target) == Numbers{9, -100, -100});
  CHECK(numbers(packed.get(1).positions) == Numbers{0, 1, 0});
}

TEST_CASE("no target and no attention crosses a boundary, for any documents and settings") {
  std::int32_t const end = 999'999;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    for (Pack const pack : {Pack::Cut, Pack::FirstFit, Pack::FirstFitDecreasing}) {
      Documents const documents = telling(seed, 40, 20);
      Packed const packed(documents, {.length = 24, .pack = pack, .end_of_document = end});
      std::int64_t seen = 0, counted = 0;
      for (std::uint64_t s = 0; s < packed.size(); ++s) {
        PackedBatch const one = packed.get(s);
        auto const data = numbers(one.data), target = numbers(one.target),
                   document = numbers(one.documents), position = numbers(one.positions);
        at::Tensor const mask = frugal::document_mask(one.documents).contiguous();
        REQUIRE(mask.sizes() == at::IntArrayRef({1, 24, 24}));
        auto const* const may = static_cast<bool const*>(mask.const_data_ptr());
        // What the tokens tell. An end belongs to the token before it, if that is in the sequence.
        std::vector<std::int64_t> truth(data.size(), -1);
        for (std::size_t i = 0; i < data.size(); ++i) {
          if (document[i] == frugal::no_document) continue;
          ++seen;
          truth[i] = data[i] != end ? data[i] / 1000 : position[i] > 0 ? truth[i - 1] : -2;
        }
        for (std::size_t i = 0; i < data.size(); ++i) {
          if (target[i] != -100) {
            ++counted;
            if (i + 1 < data.size()) {
              CHECK(target[i] == data[i + 1]);
              CHECK(truth[i] == truth[i + 1]);
            }
            CHECK((target[i] == data[i] + 1 || (target[i] == end && data[i] != end)));
          }
          for (std::size_t k = 0; k < data.size(); ++k) {
            CHECK(may[i * data.size() + k] == (truth[i] == truth[k] && k <= i));
          }
        }
        CHECK(one.counted() == at::sum(one.target.ne(-100)).item<std::int64_t>());
      }
      CHECK(seen == static_cast<std::int64_t>(packed.index().tokens()));
      CHECK(counted == static_cast<std::int64_t>(packed.index().targets()));
    }
  }
}

TEST_CASE("a causal mask without causality is symmetric, and no row of it is empty") {
  at::Tensor const documents = at::tensor({0, 0, 1, -1}, at::kLong).unsqueeze(0);
  at::Tensor const mask = frugal::document_mask(documents, /*causal=*/false);
  CHECK(mask.sizes() == at::IntArrayRef({1, 1, 4, 4}));
  CHECK(mask.equal(mask.transpose(-1, -2)));
  CHECK(mask.any(-1).all().item<bool>());
  CHECK(frugal::document_mask(documents).any(-1).all().item<bool>());
}

TEST_CASE("sequences are stacked, split, and counted on the host") {
  Packed const packed(of({{5, 6, 7}, {8, 9}}), {.length = 3, .pack = Pack::FirstFit});
  PackedBatch const batch = frugal::StackPacked{}({packed.get(0), packed.get(1)});
  CHECK(batch.data.sizes() == at::IntArrayRef({2, 3}));
  CHECK(batch.counted() == 3);
  CHECK(frugal::batch_samples(batch) == 2);
  CHECK(frugal::batch_tokens(batch) == 5);
  PackedBatch const second = frugal::batch_narrow(batch, 1, 1);
  CHECK(second.counted() == 1);
  CHECK(second.tokens() == 2);
  CHECK(numbers(second.documents) == Numbers{0, 0, -1});
  CHECK_THROWS_AS(static_cast<void>(frugal::StackPacked{}({})), frugal::EmptySourceError);
}

struct Tensors {
  std::uint64_t size() const { return 2; }
  at::Tensor get(std::uint64_t index) const {
    return at::arange(static_cast<std::int64_t>(2 + index), at::kInt);
  }
};

TEST_CASE("documents may be tensors, whose lengths are measured by reading them") {
  Packed const packed(Tensors{}, {.length = 5});
  CHECK(numbers(packed.get(0).data) == Numbers{0, 1, 0, 1, 2});
  CHECK(packed.name(0) == "sequence 0, which begins with sample 0");
}

struct Growing {
  mutable std::size_t reads = 0;
  std::uint64_t size() const { return 1; }
  Tokens get(std::uint64_t) const { return Tokens(++reads == 1 ? 4 : 2, 7); }
};

TEST_CASE("a document that has another length than before is an error that names it") {
  Packed const packed(Growing{}, {.length = 4});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(packed.get(0)),
      "frugal: a document has another length than when it was measured (sample 0, "
      "sequence 0): it has 2 tokens now. Give a set whose documents do not change, "
      "or pack it again.",
      frugal::DataError);
}

TEST_CASE("documents that make no sequence are refused with what became of them") {
  CHECK_THROWS_WITH_AS(
      static_cast<void>(Packed(of({{}, {1, 2}}), {.length = 4, .drop_last = true})),
      "frugal: the documents make no sequence (Packed): 2 documents, 1 of them empty, 0 left out, "
      "2 "
      "tokens dropped. Give more documents, shorter sequences, or no drop_last.",
      frugal::EmptySourceError);
}

TEST_CASE("the identity changes with a setting and with the documents") {
  auto const identity = [](std::int32_t token, std::int64_t length) {
    return Packed(of({{1, token}}), {.length = length}).identity();
  };
  CHECK(identity(2, 4) == identity(2, 4));
  CHECK(identity(2, 4) != identity(3, 4));
  CHECK(identity(2, 4) != identity(2, 5));
}

}  // namespace frugal_test::data_text_packed

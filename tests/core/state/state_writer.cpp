// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/core/state/tensor_part.hpp>

#include "core/loop/stand_ins.hpp"

namespace frugal_test::state_state_writer {

using namespace frugal_test::loop;
using frugal::detail::Blocks;
using frugal::detail::blocks_for;

TEST_CASE("saved values do not change with the tensor they were saved from") {
  at::Tensor const tensor = at::ones({2});
  StateDict memory;
  StateWriter{memory}("value", tensor);
  tensor.fill_(5);
  at::Tensor loaded;
  StateReader{memory}("value", loaded);
  CHECK(loaded.equal(at::ones({2})));
  loaded.fill_(7);
  at::Tensor again;
  StateReader{memory}("value", again);
  CHECK(again.equal(at::ones({2})));
}

/// Two values of one name, in a scope.
template <class First, class Second>
std::optional<StateError> refusal(First&& first, Second&& second) {
  StateDict memory;
  StateWriter writer(memory);
  return thrown_by<StateError>([&] {
    writer.scope("policies", [&](auto& outer) {
      outer.scope("Mine", [&](auto& inner) {
        first(inner);
        second(inner);
      });
    });
  });
}

TEST_CASE("a second value of one name is an error that names its whole path") {
  auto const number = [](auto& archive) { archive("value", 1); };
  auto const empty = [](auto& archive) { archive("value", std::optional<double>()); };
  auto const list = [](auto& archive) { archive("value", std::vector<double>{1}); };
  auto const tensor = [](auto& archive) { archive("value", at::ones({2})); };
  auto const none = [](auto& archive) { archive("value", at::Tensor()); };
  auto const given = [](auto& archive) { archive.give("value", at::ones({2})); };
  auto const part = [](auto& archive) {
    archive.part("value", at::ones({2}), frugal::TensorPart::of(at::ones({4}), 0, 2));
  };
  for (auto const& error : {refusal(number, number), refusal(number, empty), refusal(empty, list),
                            refusal(list, tensor), refusal(tensor, none), refusal(none, given),
                            refusal(given, part), refusal(part, number)}) {
    REQUIRE(error);
    CHECK(error->fault().where == "policies/Mine/value");
    CHECK(says(error->fault().fix, "another name"));
  }
}

TEST_CASE("a value with the name of a list's item is an error") {
  auto const list = [](auto& archive) { archive("value", std::vector<double>{1, 2}); };
  auto const item = [](auto& archive) { archive("value.1", 3.0); };
  for (auto const& error : {refusal(list, item), refusal(item, list)}) {
    REQUIRE(error);
    CHECK(error->fault().where == "policies/Mine/value.1");
  }
}

TEST_CASE("one name in two scopes is two values") {
  StateDict memory;
  StateWriter writer(memory);
  writer("value", 1);
  for (char const* scope : {"a", "b"}) {
    writer.scope(scope, [](auto& inner) { inner("value", 2); });
  }
  CHECK(memory.values.size() == 3);
}

TEST_CASE("what is saved after finish() replaces what was saved before") {
  StateDict memory;
  StateWriter writer(memory);
  writer("value", at::ones({2}));
  writer.finish();
  writer("value", at::zeros({2}));
  writer.finish();
  CHECK(memory.tensors.at("value").equal(at::zeros({2})));
  StateWriter{memory}("value", at::ones({2}));  // and so does another writer
  CHECK(memory.tensors.at("value").equal(at::ones({2})));
}

std::size_t sum(std::vector<std::size_t> const& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

/// Each tensor lies within its block, aligned for loads of any type, and overlaps no other.
void is_sound(std::vector<std::size_t> const& bytes, Blocks const& blocks) {
  REQUIRE(blocks.slots.size() == bytes.size());
  for (std::size_t const size : blocks.sizes) CHECK(std::has_single_bit(size));
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> taken(blocks.sizes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto const [block, offset] = blocks.slots[i];
    REQUIRE(block < blocks.sizes.size());
    CHECK(offset % 64 == 0);
    CHECK(offset + bytes[i] <= blocks.sizes[block]);
    taken[block].push_back({offset, offset + bytes[i]});
  }
  for (auto& spans : taken) {
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) CHECK(spans[i - 1].second <= spans[i].first);
  }
}

TEST_CASE("tensors share blocks, and little is wasted") {
  std::mt19937 draw(3);
  for (int round = 0; round < 50; ++round) {
    CAPTURE(round);
    // Layers of a transformer: large matrices, and vectors between them.
    std::vector<std::size_t> bytes;
    std::size_t const width = 64 * (1 + draw() % 24);
    std::size_t const layers = 1 + draw() % 24;
    for (std::size_t layer = 0; layer < layers; ++layer) {
      for (std::size_t const factor : {3U, 1U, 4U, 4U}) bytes.push_back(4 * width * width * factor);
      for (int i = 0; i < 8; ++i) bytes.push_back(4 * width);
    }
    Blocks const blocks = blocks_for(bytes);
    is_sound(bytes, blocks);
    std::size_t rounded = 0;
    for (std::size_t const each : bytes) rounded += std::bit_ceil(each);
    CHECK(sum(blocks.sizes) <= rounded + (std::size_t{1} << 20));
    CHECK(blocks.sizes.size() <= bytes.size() / 3);
    if (sum(bytes) > (std::size_t{32} << 20)) CHECK(sum(blocks.sizes) <= sum(bytes) * 5 / 4);
  }
}

TEST_CASE("one tensor, none, and an empty one have valid offsets") {
  is_sound({100}, blocks_for({100}));
  is_sound({0, 0, 7}, blocks_for({0, 0, 7}));
  CHECK(blocks_for({}).sizes.empty());
}

}  // namespace frugal_test::state_state_writer

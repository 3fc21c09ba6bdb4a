// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/core/state/tensor_part.hpp>

#include "core/loop/stand_ins.hpp"

#include <optional>
#include <vector>

namespace frugal_test::state_state_writer {

using namespace frugal_test::loop;

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

}  // namespace frugal_test::state_state_writer

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/core/state/tensor_part.hpp>

#include "core/loop/stand_ins.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace frugal_test::state_state_reader {

using namespace frugal_test::loop;

template <class T>
T reloaded(T value, T into = T{}) {
  StateDict memory;
  StateWriter{memory}("value", value);
  StateReader{memory}("value", into);
  return into;
}
template <class From, class To>
std::optional<StateError> refusal(From const& from, To into) {
  StateDict memory;
  StateWriter writer(memory);
  writer.scope("outer", [&](auto& inner) { inner("value", from); });
  StateReader reader(memory);
  return thrown_by<StateError>(
      [&] { reader.scope("outer", [&](auto& inner) { inner("value", into); }); });
}

TEST_CASE("numbers, booleans and texts load unchanged") {
  CHECK(reloaded(true));
  CHECK_FALSE(reloaded(false, true));
  CHECK(reloaded(-7) == -7);
  CHECK(reloaded(std::numeric_limits<std::uint64_t>::max()) ==
        std::numeric_limits<std::uint64_t>::max());
  CHECK(reloaded(std::numeric_limits<std::int64_t>::min()) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(reloaded(0.1) == 0.1);
  CHECK(reloaded(0.1F) == 0.1F);
  CHECK(reloaded(std::numeric_limits<double>::denorm_min()) ==
        std::numeric_limits<double>::denorm_min());
  CHECK(reloaded(std::string("näme\n\"")) == "näme\n\"");
}

TEST_CASE("NaN, the infinities and minus zero load unchanged") {
  CHECK(std::isnan(reloaded(std::numeric_limits<double>::quiet_NaN())));
  CHECK(reloaded(std::numeric_limits<double>::infinity()) ==
        std::numeric_limits<double>::infinity());
  CHECK(reloaded(-std::numeric_limits<float>::infinity()) ==
        -std::numeric_limits<float>::infinity());
  CHECK(std::signbit(reloaded(-0.0)));
}

TEST_CASE("optionals load full or empty") {
  CHECK((reloaded<std::optional<double>>(2.5) == 2.5));
  CHECK_FALSE(reloaded<std::optional<double>>(std::nullopt, 1.0).has_value());
  CHECK((reloaded<std::optional<std::string>>("a") == "a"));
}

TEST_CASE("lists load with their length, replacing their contents") {
  using Numbers = std::vector<double>;
  CHECK(reloaded(Numbers{1, 2, 3}, Numbers{9, 9, 9, 9}) == Numbers{1, 2, 3});
  CHECK(reloaded(Numbers{}, Numbers{1}).empty());
  CHECK(reloaded(std::vector<std::string>{"a", ""}) == std::vector<std::string>{"a", ""});
  CHECK((reloaded(std::vector<bool>{true, false}) == std::vector<bool>{true, false}));
  using Maybe = std::vector<std::optional<int>>;
  CHECK((reloaded(Maybe{1, std::nullopt, 3}) == Maybe{1, std::nullopt, 3}));
}

TEST_CASE("tensors of every type load with the same bits") {
  for (at::ScalarType const type : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong, at::kBool}) {
    at::Tensor const tensor = at::randint(2, {3, 4}, at::kLong).to(type);
    at::Tensor const loaded = reloaded(tensor);
    CHECK((loaded.scalar_type() == type));
    CHECK(loaded.equal(tensor));
  }
  CHECK(reloaded(at::zeros({0, 3})).sizes() == at::IntArrayRef({0, 3}));
  CHECK_FALSE(reloaded(at::Tensor(), at::ones({2})).defined());
  std::vector<at::Tensor> const list = reloaded(std::vector<at::Tensor>{at::ones({2}), {}});
  REQUIRE(list.size() == 2);
  CHECK(list[0].equal(at::ones({2})));
  CHECK_FALSE(list[1].defined());
}

TEST_CASE("an existing tensor is filled in place, a parameter too") {
  at::Tensor const parameter = at::zeros({2}).set_requires_grad(true);
  at::Tensor target = parameter;
  StateDict memory;
  StateWriter{memory}("value", at::ones({2}));
  StateReader{memory}("value", target);
  CHECK(target.is_same(parameter));
  CHECK(parameter.equal(at::ones({2})));
  CHECK(parameter.requires_grad());
}

TEST_CASE("a missing value is an error that names its whole path") {
  StateDict const memory;
  StateReader reader(memory);
  auto const error = thrown_by<StateError>([&] {
    int value = 0;
    reader.scope("policies", [&](auto& outer) {
      outer.scope("EarlyStop", [&](auto& inner) { inner("since", value); });
    });
  });
  REQUIRE(error);
  CHECK(error->fault().where == "policies/EarlyStop/since");
  CHECK(error->fault().why == "it was not saved");
}

TEST_CASE("a value of another type is an error that names its path") {
  for (auto const& error :
       {refusal(std::string("text"), 1), refusal(std::string("text"), 1.0), refusal(2.5, 1),
        refusal(1.0, std::string()), refusal(1.0, std::vector<double>{}),
        refusal(300, std::int8_t{}), refusal(-1, std::uint64_t{}), refusal(true, 1.0),
        refusal(3.0, at::Tensor())}) {
    REQUIRE(error);
    CHECK(error->fault().where == "outer/value");
  }
}

TEST_CASE("a tensor of another shape or type is an error that shows both") {
  auto const shape = refusal(at::zeros({2, 3}), at::zeros({3, 2}));
  REQUIRE(shape);
  CHECK(says(shape->fault().why, "[2, 3] Float"));
  CHECK(says(shape->fault().why, "[3, 2] Float"));
  auto const type = refusal(at::zeros({2}), at::zeros({2}, at::kDouble));
  REQUIRE(type);
  CHECK(says(type->fault().why, "[2] Float"));
  CHECK(says(type->fault().why, "[2] Double"));
}

TEST_CASE("a reader knows what it has read of a scope, and skips unused scopes") {
  StateDict memory;
  StateWriter writer(memory);
  writer.scope("one", [](auto& inner) {
    inner("a", 1);
    inner("b", 2);
  });
  writer.scope("oneself", [](auto& inner) { inner("c", 3); });
  StateReader reader(memory);
  CHECK_FALSE(reader.has_read("one"));
  int a = 0;
  reader.scope("one", [&](auto& inner) { inner("a", a); });
  CHECK(reader.has_read("one"));
  CHECK_FALSE(reader.has_read("oneself"));
  CHECK(reader.unread("one") == "one/b");
  reader.pass_over("one");
  CHECK_FALSE(reader.unread("one"));
  CHECK(reader.unread() == "oneself/c");
}

TEST_CASE("a value that is loaded twice is an error that names its whole path") {
  StateDict memory;
  StateWriter writer(memory);
  at::Tensor const whole = at::arange(4);
  frugal::TensorPart const half = frugal::TensorPart::of(whole, 0, 2);
  writer.scope("outer", [&](auto& inner) {
    inner("number", std::optional<double>(1));
    inner("list", std::vector<int>{1, 2});
    inner("tensor", whole);
  });
  auto const again = [&](auto&& first, auto&& second) {
    StateReader reader(memory);
    auto const error = thrown_by<StateError>([&] {
      reader.scope("outer", [&](auto& inner) {
        first(inner);
        second(inner);
      });
    });
    REQUIRE(error);
    CHECK(says(error->fault().fix, "another name"));
    return error->fault().where;
  };
  auto const load = [](char const* name, auto value) {
    return [name, value](auto& archive) mutable { archive(name, value); };
  };
  auto const part = [&](auto& archive) {
    at::Tensor mine;
    archive.part("tensor", mine, half);
  };
  auto number = load("number", std::optional<double>());
  CHECK(again(number, number) == "outer/number");
  CHECK(again(load("tensor", at::Tensor()), part) == "outer/tensor");
  CHECK(again(part, part) == "outer/tensor");
  CHECK(again(load("list", std::vector<int>()), load("list.1", 0)) == "outer/list.1");
  CHECK(again(load("list.1", 0), load("list", std::vector<int>())) == "outer/list.1");
}

TEST_CASE("another reader loads again, and so does one that is told to") {
  StateDict memory;
  StateWriter writer(memory);
  writer.scope("one", [](auto& inner) {
    inner("a", 1);
    inner("b", 2);
  });
  auto const load = [](StateReader& reader, char const* name) {
    int value = 0;
    reader.scope("one", [&](auto& inner) { inner(name, value); });
    return value;
  };
  StateReader reader(memory);
  CHECK(load(reader, "a") == 1);
  CHECK(load(reader, "b") == 2);
  StateReader other(memory);
  CHECK(load(other, "a") == 1);
  reader.load_again();
  CHECK(reader.has_read("one"));
  CHECK_FALSE(reader.unread());
  CHECK(load(reader, "a") == 1);
  CHECK_THROWS_AS(load(reader, "a"), StateError);
  CHECK_FALSE(reader.unread());  // "b" counts as loaded
}

TEST_CASE("a scope that is left by an error is left") {
  StateDict memory;
  StateWriter writer(memory);
  writer("value", 7);
  StateReader reader(memory);
  auto const fails = [&](auto& inner) {
    int value = 0;
    inner("value", value);
  };
  CHECK_THROWS_AS(reader.scope("outer", fails), StateError);
  int value = 0;
  reader("value", value);
  CHECK(value == 7);
}

}  // namespace frugal_test::state_state_reader

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/member_text.hpp>
#include <frugal/core/run/objective.hpp>

#include <ATen/ATen.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

namespace frugal_test::member_text_tests {

using frugal::detail::count_members;
using frugal::detail::has_visible_members;
using frugal::detail::member_text;

enum class Mode { one, two };
struct Inner {
  int depth = 3;
  std::optional<double> rate{};
};
struct Outer {
  double lr = 1e-3;
  bool on = true;
  Mode mode = Mode::two;
  std::string name = "x, y";
  Inner inner{};
  std::vector<int> sizes{1, 2};
  std::map<std::string, double> weights{{"a", 0.5}};
  std::variant<int, std::string> either = std::string("b");
  std::tuple<int, float> pair{1, 0.1F};
  std::function<int()> call{};
  int* counter = nullptr;
  std::filesystem::path folder = "/somewhere";
  std::shared_ptr<int> shared{};
  std::array<int, 2> fixed{7, 8};
};
struct WithArray {
  int sizes[3] = {1, 2, 3};
  double rate = 1;
};
struct Base {
  int one = 1;
};
struct Derived : Base {
  int two = 2;
};
class Hidden {
 public:
  explicit Hidden(int value) : value_(value) {}
  int value() const { return value_; }

 private:
  int value_;
};
struct Described {
  int hidden = 4;
  std::string settings() const { return "hidden " + std::to_string(hidden); }
};
struct Referring {
  int& other;
};
struct Empty {};

TEST_CASE("members are compared by value, however deep, and in any locale") {
  Outer const one;
  CHECK(member_text(one) ==
        "{0.001, true, 1, \"x, y\", {3, none}, [1, 2], [{\"a\", 0.5}], 1 \"b\", {1, 0.1}, -, -, -, "
        "-, [7, 8]}");
  Outer other;
  other.inner.rate = 0.25;
  CHECK(member_text(other).find("{3, 0.25}") != std::string::npos);
  // What another process cannot compare makes no difference.
  int counted = 0;
  Outer same;
  same.counter = &counted;
  same.folder = "/elsewhere";
  same.call = [] { return 1; };
  same.shared = std::make_shared<int>(1);
  CHECK(member_text(same) == member_text(one));
}

TEST_CASE(
    "classes whose members cannot be seen are one text, and those that describe themselves "
    "another") {
  CHECK(count_members<Inner>() == 2);
  CHECK(!has_visible_members<WithArray>());
  CHECK(!has_visible_members<Derived>());
  CHECK(!has_visible_members<Hidden>());
  CHECK(!has_visible_members<Referring>());
  CHECK(member_text(WithArray{}) == "-");
  CHECK(member_text(Derived{}) == "-");
  CHECK(member_text(Hidden(3)) == "-");
  CHECK(member_text(Empty{}) == "{}");
  CHECK(member_text(Described{}) == "\"hidden 4\"");
}

TEST_CASE("an objective's class weights and tensors are part of it") {
  frugal::CrossEntropy const plain, smooth{.label_smoothing = 0.1};
  frugal::CrossEntropy const weighted{.class_weights = {1.0, 5.0}};
  frugal::CrossEntropy const heavier{.class_weights = {1.0, 6.0}};
  CHECK(member_text(plain) != member_text(smooth));
  CHECK(member_text(plain) != member_text(weighted));
  CHECK(member_text(weighted) != member_text(heavier));
  CHECK(member_text(weighted) == member_text(frugal::CrossEntropy{.class_weights = {1.0, 5.0}}));
  CHECK(member_text(at::ones({2, 3})).starts_with("[2, 3] Float, hash "));
  CHECK(member_text(at::ones({2, 3})) != member_text(at::zeros({2, 3})));
}

}  // namespace frugal_test::member_text_tests

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/run/member_text.hpp>
#include <frugal/core/run/objective.hpp>

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

namespace frugal_test::member_text_tests {

using frugal::detail::count_members;
using frugal::detail::has_visible_members;
using frugal::detail::member_text;
using frugal::detail::tells_members;

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

struct Placed {
  at::Device device = at::kCPU;  // a type without a default constructor
};
struct PlacedNumbers {
  double rate = 1;
  at::Device device = at::kCPU;
  Hidden hidden{1};
  int count = 2;
};

TEST_CASE("two GPUs of one machine are the same device to a job, and a CPU is another one") {
  CHECK(member_text(Placed{at::Device("cuda:0")}) == member_text(Placed{at::Device("cuda:1")}));
  CHECK(member_text(Placed{at::Device("cuda:0")}) != member_text(Placed{}));
  CHECK(member_text(Placed{at::Device("cuda:1")}) == "{cuda}");
  CHECK(member_text(PlacedNumbers{.rate = 0.5, .count = 3}) == "{0.5, cpu, -, 3}");
}

TEST_CASE("a text cannot look like two") {
  using Texts = std::vector<std::string>;
  CHECK(member_text(Texts{"a", "b"}) != member_text(Texts{"a\", \"b"}));
  CHECK(member_text(Texts{"a\\", "b"}) != member_text(Texts{"a\\\", \"b"}));
  CHECK(member_text(std::string("say \"a\\b\"")) == R"("say \"a\\b\"")");
}

TEST_CASE("a hash table has one text, in whichever order it holds its elements") {
  std::unordered_map<std::string, int> few(2), many(1000);
  for (int i = 0; i < 40; ++i) few.emplace(std::to_string(i), i);
  for (int i = 40; i-- > 0;) many.emplace(std::to_string(i), i);
  // The same elements in another order, or the test shows nothing.
  CHECK(few == many);
  CHECK_FALSE(std::ranges::equal(few, many));
  CHECK(member_text(few) == member_text(many));
  CHECK(member_text(std::unordered_set<int>{3, 1, 2}) == "[1, 2, 3]");
  CHECK(member_text(std::vector<int>{3, 1, 2}) == "[3, 1, 2]");
}

struct HoldsDerived {
  std::vector<std::optional<Derived>> all{};
};
struct Many {
  int a{}, b{}, c{}, d{}, e{}, f{}, g{}, h{}, i{}, j{}, k{}, l{}, m{}, n{}, o{}, p{}, q{}, r{}, s{},
      t{}, u{};
};
union Either {
  int a;
  float b;
};
struct DescribedBase : Base {
  std::string settings() const { return std::to_string(one); }
};

TEST_CASE("an aggregate that would be one text whatever it holds is known at compile time") {
  CHECK(tells_members<Outer>());
  CHECK(tells_members<Empty>());
  CHECK(tells_members<Hidden>());
  CHECK(tells_members<DescribedBase>());
  CHECK(tells_members<PlacedNumbers>());
  CHECK(tells_members<frugal::CrossEntropy>());
  CHECK_FALSE(tells_members<WithArray>());
  CHECK_FALSE(tells_members<Derived>());
  CHECK_FALSE(tells_members<HoldsDerived>());
  CHECK_FALSE(tells_members<std::variant<int, Derived>>());
  CHECK_FALSE(tells_members<std::tuple<int, WithArray>>());
  CHECK_FALSE(tells_members<Referring>());
  CHECK_FALSE(tells_members<Either>());
  CHECK_FALSE(tells_members<Many>());
}

}  // namespace frugal_test::member_text_tests

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/core/source/data_identity.hpp>
#include <frugal/data/sampling/buckets.hpp>
#include <frugal/data/sampling/order.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/data/sampling/weighted.hpp>
#include <frugal/data/shards/shard_order.hpp>

#include <support/locales.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace frugal_test::data_identity {

using frugal::DataIdentity;
using Values = std::map<std::string, std::string>;

template <class T>
Values identified(T const& it) {
  DataIdentity to;
  frugal::detail::identify(it, to);
  return to.values();
}

/// Names whose values differ.
std::vector<std::string> differences(Values const& a, Values const& b) {
  Values all = a;
  all.insert(b.begin(), b.end());
  std::vector<std::string> names;
  for (auto const& [name, value] : all) {
    bool const same = a.contains(name) && b.contains(name) && a.at(name) == b.at(name);
    if (!same) names.push_back(name);
  }
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("numbers, truth values and texts stand as they are, and a second one gets a number") {
  DataIdentity to;
  to.add("pool", 64);
  to.add("shuffle", true);
  to.add("function", "scale");
  to.add("function", "crop");
  CHECK(to.values() ==
        Values{{"pool", "64"}, {"shuffle", "true"}, {"function", "scale"}, {"function 2", "crop"}});
}

TEST_CASE("of many values there are their number and a hash that changes with each of them") {
  DataIdentity to;
  std::vector<std::int64_t> const one{1, 2, 3};
  std::vector<std::int64_t> const other{1, 2, 4};
  to.add("lengths", std::span<std::int64_t const>(one));
  to.add("lengths", std::span<std::int64_t const>(other));
  CHECK(to.values().at("lengths").starts_with("3, hash "));
  CHECK(to.values().at("lengths") != to.values().at("lengths 2"));
}

TEST_CASE("the order of a Pass depends on shuffle and samples, and not on the batch size") {
  auto const pass = [](std::uint64_t samples, frugal::LoaderOptions loading) {
    return identified(frugal::Pass(samples, loading, "set"));
  };
  Values const one = pass(10, {.batch = 2});
  CHECK(differences(one, pass(10, {.batch = 3})) == Names{});
  CHECK(differences(one, pass(11, {.batch = 2})) == Names{"samples"});
  CHECK(differences(one, pass(10, {.batch = 2, .shuffle = false})) == Names{"shuffle"});
}

TEST_CASE("with drop_last the batch size decides which samples are left out") {
  auto const pass = [](std::int64_t batch) {
    return identified(frugal::Pass(10, {.batch = batch, .drop_last = true}, "set"));
  };
  CHECK(differences(pass(3), pass(4)) == Names{"batch"});
}

TEST_CASE("buckets depend on the batch size, on the pool and on every length") {
  auto const buckets = [](std::int64_t batch, std::int64_t pool, std::int64_t last) {
    return identified(frugal::BucketPass(3, {.batch = batch}, {{1, 2, last}, pool}, "set"));
  };
  CHECK(differences(buckets(1, 2, 3), buckets(2, 2, 3)) == Names{"batch"});
  CHECK(differences(buckets(1, 2, 3), buckets(1, 3, 3)) == Names{"pool"});
  CHECK(differences(buckets(1, 2, 3), buckets(1, 2, 4)) == Names{"lengths"});
}

TEST_CASE("shards depend on their sizes and on the window, unless they are not shuffled") {
  auto const order = [](std::vector<std::uint64_t> const& sizes, std::uint64_t window,
                        bool shuffle) {
    return identified(
        frugal::ShardOrder(sizes, {.batch = 2, .shuffle = shuffle}, {.shards = window}, "set"));
  };
  CHECK(differences(order({4, 6}, 1, true), order({4, 6}, 2, true)) == Names{"window"});
  CHECK(differences(order({4, 6}, 1, true), order({6, 4}, 1, true)) == Names{"shards"});
  CHECK(differences(order({4, 6}, 1, false), order({6, 4}, 2, false)) == Names{});
}

TEST_CASE("weighted draws depend on every weight and on the number of draws") {
  auto const order = [](std::vector<double> const& weights, std::uint64_t draws) {
    return identified(frugal::WeightedPass(weights, {.batch = 2}, draws));
  };
  CHECK(differences(order({1, 2}, 8), order({1, 3}, 8)) == Names{"weights"});
  CHECK(differences(order({1, 2}, 8), order({1, 2}, 9)) == Names{"samples"});
}

TEST_CASE("an order that is shared is the same on every rank, in a world of any size") {
  frugal::Pass const pass(10, {.batch = 4}, "set");
  CHECK(identified(frugal::Shared(pass, {.rank = 1, .world = 2})) == identified(pass));
}

TEST_CASE("an order of another type is told by the type, and says more if it can") {
  struct Plain : frugal::Pass {
    using frugal::Pass::Pass;
    void identify() const {}  // hides that of Pass
  };
  DataIdentity to;
  frugal::detail::identify_order(Plain(10, {.batch = 4}, "set"), to);
  CHECK(to.contains("order"));
  CHECK(to.values().at("order") != "Pass");
  CHECK(to.values().at("shuffle") == "true");
}

TEST_CASE("a number has all its bits, in every locale") {
  auto const text = [](auto number) {
    DataIdentity to;
    to.add("scale", number);
    return to.values().at("scale");
  };
  CHECK(text(0.5) == "0.5");
  CHECK(text(0.1F) == text(static_cast<double>(0.1F)));
  CHECK(text(0.1) != text(std::nextafter(0.1, 1.0)));
  frugal_test::support::GroupedLocale const grouped;
  frugal_test::support::CommaLocale const comma;
  CHECK(text(12345.5) == "12345.5");
}

TEST_CASE("a set without identify() gives its identity(), and one without either gives nothing") {
  struct Set {
    std::uint64_t size() const { return 1; }
    int get(std::uint64_t) const { return 0; }
  };
  struct Named : Set {
    std::string identity() const { return "v1"; }
  };
  CHECK(identified(Set{}).empty());
  CHECK(identified(Named{}) == Values{{"data", "v1"}});
}

}  // namespace frugal_test::data_identity

// SPDX-License-Identifier: Apache-2.0
// torch-free, optimised
#include <frugal/data/sampling/draw.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace frugal_test::sampling_draw {

using frugal::Draw;
using frugal::SampleKey;

/// Mean and variance of the first number of 100,000 samples.
template <class Number>
std::array<double, 2> moments(Number&& number) {
  constexpr std::uint64_t count = 100'000;
  double sum = 0, squares = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    Draw draw({.index = i, .seed = 7, .epoch = 3});
    double const x = number(draw);
    sum += x;
    squares += x * x;
  }
  double const mean = sum / count;
  return {mean, squares / count - mean * mean};
}

TEST_CASE("a draw is a function of seed, epoch, index, stream and place") {
  SampleKey const key{.index = 5, .seed = 1, .epoch = 2};
  Draw first(key, 9), again(key, 9);
  for (int i = 0; i < 10; ++i) CHECK(first.bits() == again.bits());
  std::set<std::uint64_t> seen;
  for (SampleKey const& other : {SampleKey{5, 1, 2}, SampleKey{6, 1, 2}, SampleKey{5, 2, 2},
                                 SampleKey{5, 1, 3}, SampleKey{1, 5, 2}, SampleKey{2, 1, 5}}) {
    for (std::uint64_t const stream : {0U, 9U}) {
      Draw draw(other, stream);
      for (int i = 0; i < 3; ++i) seen.insert(draw.bits());
    }
  }
  CHECK(seen.size() == 6 * 2 * 3);
}

TEST_CASE("no two of 200,000 samples draw the same bits") {
  std::vector<std::uint64_t> seen;
  for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
    for (std::uint64_t index = 0; index < 20'000; ++index) {
      seen.push_back(Draw({.index = index, .seed = 0, .epoch = epoch}).bits());
    }
  }
  std::ranges::sort(seen);
  CHECK(std::ranges::adjacent_find(seen) == seen.end());
}

TEST_CASE("streams have different numbers for different names") {
  static_assert(frugal::draw_stream("flip") != frugal::draw_stream("crop"));
  // The test vector of the algorithm's authors (Fowler, Noll, Vo).
  static_assert(frugal::draw_stream("foobar") == 0x85944171f73967e8U);
  static_assert(frugal::draw_stream("") == 0xcbf29ce484222325U);
}

// Each bound is five standard errors or more of 100,000 draws.
TEST_CASE("uniform numbers have mean 1/2 and variance 1/12") {
  auto const [mean, variance] = moments([](Draw& draw) { return draw.uniform(); });
  CHECK(std::abs(mean - 0.5) < 0.005);
  CHECK(std::abs(variance - 1.0 / 12) < 0.002);
  auto const [shifted, wide] = moments([](Draw& draw) { return draw.uniform(-3, 5); });
  CHECK(std::abs(shifted - 1) < 0.04);
  CHECK(std::abs(wide - 64.0 / 12) < 0.1);
}

TEST_CASE("uniform numbers of neighbours are not correlated") {
  double sum = 0;
  constexpr std::uint64_t count = 100'000;
  for (std::uint64_t i = 0; i < count; ++i) {
    Draw a({.index = i}), b({.index = i + 1});
    sum += (a.uniform() - 0.5) * (b.uniform() - 0.5) * 12;
  }
  CHECK(std::abs(sum / count) < 0.02);
}

TEST_CASE("every number below a bound is equally likely") {
  for (std::uint64_t const bound : {1U, 2U, 3U, 10U, 100U}) {
    std::vector<double> counts(bound);
    constexpr std::uint64_t draws = 100'000;
    for (std::uint64_t i = 0; i < draws; ++i) ++counts.at(Draw({.index = i}).below(bound));
    double chi = 0;
    double const each = static_cast<double>(draws) / static_cast<double>(bound);
    for (double const count : counts) chi += (count - each) * (count - each) / each;
    double const freedom = static_cast<double>(bound) - 1;
    CHECK(chi <= freedom + 5 * std::sqrt(2 * freedom));
  }
}

TEST_CASE("a bound that does not divide 2^64 is as likely at its two ends") {
  constexpr std::uint64_t bound = 3ULL << 62;  // the lower half would be twice as likely
  int low = 0;
  for (std::uint64_t i = 0; i < 30'000; ++i) low += Draw({.index = i}).below(bound) < bound / 3;
  CHECK(std::abs(low - 10'000) < 410);
}

TEST_CASE("a chance has its probability, and 0 and 1 are certain") {
  CHECK(std::abs(moments([](Draw& draw) { return draw.chance(0.3); })[0] - 0.3) < 0.01);
  CHECK(moments([](Draw& draw) { return draw.chance(0); })[0] == 0);
  CHECK(moments([](Draw& draw) { return draw.chance(1); })[0] == 1);
}

TEST_CASE("normal, gamma and beta have the moments of their distributions") {
  auto const [mean, variance] = moments([](Draw& draw) { return draw.normal(); });
  CHECK(std::abs(mean) < 0.02);
  CHECK(std::abs(variance - 1) < 0.03);
  for (double const shape : {0.2, 1.0, 4.5}) {
    auto const [average, spread] = moments([&](Draw& draw) { return draw.gamma(shape); });
    CHECK(std::abs(average - shape) < 0.02 * std::max(1.0, shape));
    CHECK(std::abs(spread - shape) < 0.1 * std::max(1.0, shape));
  }
  for (auto const& [a, b] : {std::array{0.2, 0.2}, {1.0, 1.0}, {2.0, 5.0}}) {
    auto const [average, spread] = moments([&](Draw& draw) { return draw.beta(a, b); });
    CHECK(std::abs(average - a / (a + b)) < 0.01);
    CHECK(std::abs(spread - a * b / ((a + b) * (a + b) * (a + b + 1))) < 0.01);
  }
}

TEST_CASE("a beta of shapes near 0 is at one of its ends") {
  auto const [mean, variance] = moments([](Draw& draw) { return draw.beta(1e-4, 1e-4); });
  CHECK(std::abs(mean - 0.5) < 0.01);
  CHECK(std::abs(variance - 0.25) < 0.01);
}

}  // namespace frugal_test::sampling_draw

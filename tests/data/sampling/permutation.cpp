// SPDX-License-Identifier: Apache-2.0
// torch-free, optimised
#include <frugal/data/sampling/permutation.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <vector>

namespace frugal_test::data_permutation {

using frugal::Draw;
using frugal::Permutation;
using frugal::SampleKey;

std::vector<std::int64_t> order(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size) {
  std::vector<std::int64_t> out(size);
  Permutation(seed, epoch, size).fill(0, std::span(out));
  return out;
}

bool is_bijection(std::vector<std::int64_t> const& values) {
  std::vector<bool> seen(values.size());
  for (std::int64_t const value : values) {
    if (value < 0 || static_cast<std::size_t>(value) >= values.size()) return false;
    if (seen[static_cast<std::size_t>(value)]) return false;
    seen[static_cast<std::size_t>(value)] = true;
  }
  return true;
}

/// A chi-squared sum as a standard normal deviate (Wilson and Hilferty, PNAS 17(12), 1931). Every
/// test here requires a deviate below 5 with fixed seeds: an ideal shuffle would fail one seed
/// choice in 3.5 million per check (one-sided).
double deviate(double chi_squared, double degrees) {
  double const spread = 2 / (9 * degrees);
  return (std::cbrt(chi_squared / degrees) - (1 - spread)) / std::sqrt(spread);
}
constexpr double limit = 5;

template <class Counts>
double chi_squared(Counts const& counts, double expected) {
  double sum = 0;
  for (double const count : counts) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

/// How evenly the differences between samples `lag` positions apart are spread over [1, size).
template <class Order>
double difference_deviate(std::uint64_t size, std::uint64_t lag, int epochs, Order&& make) {
  std::vector<double> counts(size - 1);
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::vector<std::int64_t> const values = make(static_cast<std::uint64_t>(epoch));
    for (std::uint64_t i = 0; i < size; ++i) {
      auto const next = static_cast<std::uint64_t>(values[(i + lag) % size]);
      auto const here = static_cast<std::uint64_t>(values[i]);
      counts[(next + size - here) % size - 1] += 1;
    }
  }
  double const expected = static_cast<double>(size) * epochs / static_cast<double>(size - 1);
  return deviate(chi_squared(counts, expected), static_cast<double>(size - 2));
}

double correlation(std::vector<std::int64_t> const& a, std::vector<std::int64_t> const& b) {
  double const n = static_cast<double>(a.size());
  double const mean = (n - 1) / 2;
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += (static_cast<double>(a[i]) - mean) * (static_cast<double>(b[i]) - mean);
  }
  return sum / (n * (n * n - 1) / 12);  // divided by the variance sum of 0 .. n-1
}

TEST_CASE("a permutation is a bijection for every size from 1 to 10,000") {
  for (std::uint64_t size = 1; size <= 10'000; ++size) {
    if (!is_bijection(order(size * 7 + 1, size % 5, size))) FAIL_CHECK("size ", size);
  }
}

TEST_CASE("a permutation is a bijection at the sizes where its halves change") {
  for (std::uint64_t const root : {181U, 182U, 255U, 256U, 257U, 1000U}) {
    for (std::uint64_t const size : {root * root - 1, root * root, root * root + 1}) {
      CHECK(is_bijection(order(3, 1, size)));
    }
  }
}

TEST_CASE("wide halves are consistent and stay in range above 2^30 samples") {
  for (std::uint64_t const size :
       {std::uint64_t{32766} * 32766, std::uint64_t{32766} * 32766 + 1, std::uint64_t{1} << 40,
        (std::uint64_t{1} << 62) - 1, std::uint64_t{1} << 62}) {
    Permutation const permutation(1, 2, size);
    std::vector<std::uint64_t> values(1000);
    permutation.fill(size - values.size(), std::span(values));
    CHECK(*std::max_element(values.begin(), values.end()) < size);
    for (std::uint64_t const i : {0U, 17U, 999U}) {
      CHECK(values[i] == permutation(size - values.size() + i));
    }
    std::sort(values.begin(), values.end());
    CHECK(std::adjacent_find(values.begin(), values.end()) == values.end());
  }
}

TEST_CASE("a permutation of more than 2^62 samples is refused") {
  CHECK_THROWS_AS(Permutation(0, 0, (std::uint64_t{1} << 62) + 1), frugal::SettingsError);
}

TEST_CASE("fill gives the same as one index at a time, wherever it starts and ends") {
  for (std::uint64_t const size : {1U, 7U, 33U, 500U, 511U, 512U, 1025U, 60'000U}) {
    Permutation const permutation(11, 4, size);
    for (std::uint64_t first = 0; first < std::min<std::uint64_t>(size, 70); first += 3) {
      for (std::uint64_t count = 0; count <= std::min<std::uint64_t>(size - first, 75); ++count) {
        std::vector<std::int64_t> out(count + 1, -1);
        permutation.fill(first, std::span(out).first(count));
        CHECK(out[count] == -1);
        for (std::uint64_t i = 0; i < count; ++i) {
          if (static_cast<std::uint64_t>(out[i]) != permutation(first + i)) {
            FAIL_CHECK("size ", size, " first ", first, " count ", count, " at ", i);
          }
        }
      }
    }
  }
}

TEST_CASE("the order is the same on every platform, permanently") {
  // Recorded when the construction was settled: a change here breaks every resumed run.
  auto const head = [](std::uint64_t size) {
    Permutation const permutation(1, 2, size);
    std::vector<std::uint64_t> out;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(size, 6); ++i) {
      out.push_back(permutation(i));
    }
    return out;
  };
  using Head = std::vector<std::uint64_t>;
  CHECK(head(1) == Head{0});
  CHECK(head(2) == Head{0, 1});
  CHECK(head(10) == Head{2, 6, 1, 5, 4, 0});
  CHECK(head(1000) == Head{747, 836, 719, 950, 348, 263});
  CHECK(head(60'000) == Head{29687, 13063, 42520, 30921, 9932, 33957});
  CHECK(head(3'000'000'000) ==
        Head{386792458, 1214197957, 2424403067, 1660231120, 1137850397, 692378819});
  CHECK(head(std::uint64_t{1} << 62) == Head{4544408673975854963, 1393166020212660965,
                                             1817516424987240049, 1822630445396869521,
                                             531399209533059566, 2511147000718986100});
}

TEST_CASE("every order of a handful of samples is equally likely") {
  for (std::uint64_t size = 2; size <= 6; ++size) {
    std::map<std::vector<std::int64_t>, double> counts;
    int const epochs = 100'000;
    for (int epoch = 0; epoch < epochs; ++epoch) {
      counts[order(7, static_cast<std::uint64_t>(epoch), size)] += 1;
    }
    double const orders = std::tgamma(static_cast<double>(size) + 1);
    std::vector<double> flat;
    for (auto const& [_, count] : counts) flat.push_back(count);
    CHECK(static_cast<double>(flat.size()) == orders);
    CHECK(std::abs(deviate(chi_squared(flat, epochs / orders), orders - 1)) < limit);
  }
}

TEST_CASE("every sample is at every position equally often over epochs and over seeds") {
  for (std::uint64_t const size : {10U, 100U, 511U, 600U}) {
    int const keys = 6'000;
    for (bool const over_seeds : {false, true}) {
      std::vector<double> counts(size * size);
      for (std::uint64_t key = 0; key < keys; ++key) {
        auto const values = over_seeds ? order(key, 0, size) : order(0, key, size);
        for (std::uint64_t place = 0; place < size; ++place) {
          counts[place * size + static_cast<std::uint64_t>(values[place])] += 1;
        }
      }
      double const n = static_cast<double>(size);
      CHECK(std::abs(deviate(chi_squared(counts, keys / n), (n - 1) * (n - 1))) < limit);
    }
  }
}

TEST_CASE("the differences between nearby samples of an epoch are spread evenly") {
  for (std::uint64_t const size : {100U, 512U, 1024U, 4096U}) {
    std::uint64_t const half = frugal::detail::ceil_sqrt(size);
    for (std::uint64_t const lag :
         {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{8}, half, half + 1, 2 * half}) {
      int const epochs = static_cast<int>(2'000'000 / size);
      double const value = difference_deviate(
          size, lag, epochs, [&](std::uint64_t epoch) { return order(9, epoch, size); });
      CHECK(std::abs(value) < limit);
    }
  }
}

TEST_CASE("the difference test detects an order that is only rotated") {
  double const value = difference_deviate(512, 1, 100, [](std::uint64_t epoch) {
    std::vector<std::int64_t> rotated(512);
    std::iota(rotated.begin(), rotated.end(), 0);
    std::rotate(rotated.begin(), rotated.begin() + static_cast<std::ptrdiff_t>(epoch),
                rotated.end());
    return rotated;
  });
  CHECK(value > limit);
}

TEST_CASE("neighbours in an epoch are not correlated") {
  // The serial correlation of n random ranks has deviation 1 / sqrt(n); the limit is 5 of them.
  for (std::uint64_t const size : {1'000U, 60'000U}) {
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
      auto const values = order(21, epoch, size);
      for (std::ptrdiff_t const lag : {1, 2, 32, 245}) {
        auto shifted = values;
        std::rotate(shifted.begin(), shifted.begin() + lag, shifted.end());
        CHECK(std::abs(correlation(values, shifted)) < limit / std::sqrt(size));
      }
    }
  }
}

TEST_CASE("orders of other epochs and other seeds are not correlated") {
  std::uint64_t const size = 60'000;
  auto const first = order(5, 0, size);
  for (std::uint64_t key = 1; key <= 20; ++key) {
    CHECK(std::abs(correlation(first, order(5, key, size))) < limit / std::sqrt(size));
    CHECK(std::abs(correlation(first, order(5 + key, 0, size))) < limit / std::sqrt(size));
    // Seed and epoch are not interchangeable: (s, e) and (s + 1, e - 1) give different orders.
    CHECK(std::abs(correlation(order(5, key, size), order(6, key - 1, size))) <
          limit / std::sqrt(size));
  }
}

TEST_CASE("no more samples keep their position than by chance") {
  // The number of fixed points of a random permutation has mean 1 and variance 1.
  for (std::uint64_t const size : {16U, 500U, 1'000U}) {
    int const epochs = 5'000;
    double fixed = 0;
    for (int epoch = 0; epoch < epochs; ++epoch) {
      auto const values = order(2, static_cast<std::uint64_t>(epoch), size);
      for (std::uint64_t i = 0; i < size; ++i) fixed += static_cast<std::uint64_t>(values[i]) == i;
    }
    CHECK(std::abs(fixed - epochs) < limit * std::sqrt(epochs));
  }
}

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

}  // namespace frugal_test::data_permutation

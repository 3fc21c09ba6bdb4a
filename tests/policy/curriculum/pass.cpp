// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/sampling/order.hpp>
#include <frugal/policy/curriculum/pass.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

namespace frugal_test::policy_curriculum_pace {

using frugal::LinearPace;
using frugal::RootPace;

TEST_CASE("a pace starts with its share, grows, and ends with all") {
  auto const check = []<class Pace>(Pace) {
    CHECK(Pace::share(0) == doctest::Approx(0.2).epsilon(1e-12));
    for (std::uint64_t epoch = 0; epoch < 5; ++epoch)
      CHECK(Pace::share(epoch) < Pace::share(epoch + 1));
    CHECK(Pace::share(5) == 1);
    CHECK(Pace::share(1'000'000) == 1);
  };
  check(LinearPace<5>{});
  check(RootPace<5>{});
  // Platanios et al., equation 8: sqrt(t (1 - c^2) / T + c^2) at t = 1, T = 5, c = 0.2.
  CHECK(RootPace<5>::share(1) == doctest::Approx(0.4816637832).epsilon(1e-9));
}

}  // namespace frugal_test::policy_curriculum_pace

namespace frugal_test::policy_curriculum_pass {

using namespace frugal;

using Four = CurriculumPass<LinearPace<4, 0.25>>;
static_assert(Order<Four>);

/// Sample i is the easier, the higher i is.
std::vector<double> falling(std::size_t samples) {
  std::vector<double> scores(samples);
  for (std::size_t i = 0; i < samples; ++i) scores[i] = -static_cast<double>(i);
  return scores;
}

std::vector<std::uint64_t> read(Order auto pass, Cursor const& cursor) {
  pass.seek(cursor);
  std::vector<std::uint64_t> all, batch;
  for (auto slice = pass.advance(); slice.count != 0; slice = pass.advance()) {
    batch.resize(slice.count);
    pass.indices(slice, std::span(batch));
    all.insert(all.end(), batch.begin(), batch.end());
  }
  return all;
}

TEST_CASE("an epoch draws from the easiest samples of its share, each equally often") {
  auto const scores = falling(40);
  std::uint64_t const pools[] = {10, 18, 25, 33, 40, 40};  // ceil(40 x (0.25 + 0.75 e / 4))
  for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
    CAPTURE(epoch);
    Four const pass(scores, {.batch = 7});
    CHECK(pass.pool_in(epoch) == pools[epoch]);
    auto const all = read(pass, {.seed = 2, .epoch = epoch});
    CHECK(all.size() == 40);
    std::map<std::uint64_t, std::uint64_t> count;
    for (std::uint64_t const i : all) ++count[i];
    CHECK(count.size() == pools[epoch]);
    for (auto const& [sample, times] : count) {
      CHECK(sample >= 40 - pools[epoch]);
      CHECK((times == 40 / pools[epoch] || times == 40 / pools[epoch] + 1));
    }
  }
}

TEST_CASE("after the pace an epoch has the order of Pass") {
  auto const scores = falling(30);
  LoaderOptions const loading{.batch = 4};
  Cursor const cursor{.seed = 5, .epoch = 4};
  CHECK(read(Four(scores, loading), cursor) == read(Pass(30, loading, "all"), cursor));
  CHECK(read(Four(scores, loading), {.seed = 5, .epoch = 3}) !=
        read(Pass(30, loading, "all"), {.seed = 5, .epoch = 3}));
}

TEST_CASE("any place can be sought, whatever the batch") {
  auto const scores = falling(23);
  for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
    auto const all = read(Four(scores, {.batch = 4}), {.seed = 8, .epoch = epoch});
    for (std::uint64_t position = 0; position <= 23; ++position) {
      CAPTURE(epoch);
      CAPTURE(position);
      auto const rest =
          read(Four(scores, {.batch = 3}), {.seed = 8, .epoch = epoch, .position = position});
      CHECK(rest == std::vector(all.begin() + static_cast<std::ptrdiff_t>(position), all.end()));
    }
  }
}

TEST_CASE("the rounds of an epoch, and epochs and seeds, have orders of their own") {
  auto const scores = falling(40);
  auto const all = read(Four(scores, {.batch = 40}), {.seed = 2});
  std::vector<std::uint64_t> const first(all.begin(), all.begin() + 10);
  std::vector<std::uint64_t> const second(all.begin() + 10, all.begin() + 20);
  CHECK(first != second);
  CHECK(std::is_permutation(first.begin(), first.end(), second.begin(), second.end()));
  CHECK(all != read(Four(scores, {.batch = 40}), {.seed = 3}));
}

TEST_CASE("without shuffling the pool comes from easy to hard") {
  auto const all = read(Four(falling(8), {.batch = 3, .shuffle = false}), {});
  CHECK(all == std::vector<std::uint64_t>{7, 6, 7, 6, 7, 6, 7, 6});
}

TEST_CASE("equal scores stay in the set's order, and infinity is last") {
  double const infinity = std::numeric_limits<double>::infinity();
  CurriculumPass<LinearPace<1, 0.75>> const pass(std::vector<double>{infinity, 1, 1, 1},
                                                 {.batch = 4, .shuffle = false});
  CHECK(read(pass, {}) == std::vector<std::uint64_t>{1, 2, 3, 1});
}

TEST_CASE("scores that cannot be sorted are refused, and so is a set without samples") {
  std::vector<double> const scores{1, std::nan("")};
  try {
    Four const pass(scores, {.batch = 1});
    FAIL("accepted");
  } catch (DataError const& error) {
    CHECK(error.fault().where == "curriculum, sample 1");
  }
  CHECK_THROWS_AS(Four(std::vector<double>{}, {.batch = 1}), EmptySourceError);
}

struct Slow {
  static constexpr int epochs = 2;
  static double share(std::uint64_t epoch) { return epoch == 0 ? std::nan("") : 0.5; }
};

TEST_CASE("a pace of one's own is over after its epochs, whatever its share is then") {
  CurriculumPass<Slow> const pass(falling(10), {.batch = 2});
  CHECK(pass.pool_in(0) == 1);
  CHECK(pass.pool_in(1) == 5);
  CHECK(pass.pool_in(2) == 10);
}

}  // namespace frugal_test::policy_curriculum_pass

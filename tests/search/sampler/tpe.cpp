// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/search/sampler/tpe.hpp>

#include "support/search_tpe.hpp"
#include "support/search_two_samples.hpp"

#include <doctest/doctest.h>

#include <frugal/search/sampler/sampler.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace frugal_test::search_parzen {

using frugal::Choice;
using frugal::Distribution;
using frugal::Draw;
using frugal::Int;
using frugal::LogUniform;
using frugal::Parzen;
using frugal::Uniform;
using Points = std::vector<std::vector<double>>;

nlohmann::json cases() {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/parzen.json");
  return nlohmann::json::parse(file).at("cases");
}

std::vector<Distribution> kinds_of(nlohmann::json const& of) {
  std::vector<Distribution> kinds;
  for (nlohmann::json const& each : of.at("kinds")) {
    kinds.push_back(frugal::parse_distribution(each.dump()).value());
  }
  return kinds;
}

Parzen estimator_of(nlohmann::json const& of) {
  Points const observed = of.at("observed").get<Points>();
  if (of.at("weights").is_null()) return {kinds_of(of), observed};
  return {kinds_of(of), observed, of.at("weights").get<std::vector<double>>()};
}

TEST_CASE("densities are Optuna's") {
  nlohmann::json const all = cases();
  REQUIRE(all.size() == 16);
  for (nlohmann::json const& each : all) {
    CAPTURE(each.at("name").get<std::string>());
    Parzen const own = estimator_of(each);
    Points const points = each.at("points").get<Points>();
    auto const logs = each.at("logs").get<std::vector<double>>();
    REQUIRE(points.size() == logs.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      CAPTURE(points[i][0]);
      CHECK(std::abs(own.log_density(points[i]) - logs[i]) < 1e-9 * std::abs(logs[i]));
    }
  }
}

TEST_CASE("samples are distributed as Optuna's") {
  std::size_t compared = 0;
  for (nlohmann::json const& each : cases()) {
    Points const others = each.at("samples").get<Points>();
    if (others.empty()) continue;
    CAPTURE(each.at("name").get<std::string>());
    Parzen const own = estimator_of(each);
    std::vector<Distribution> const kinds = kinds_of(each);
    Points samples;
    Draw draw({.seed = 5});
    for (std::size_t i = 0; i < 3000; ++i) samples.push_back(own.sample(draw));
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      CAPTURE(k);
      std::vector<double> mine, theirs;
      for (auto const& sample : samples) {
        REQUIRE(frugal::has_value(kinds[k], sample[k]));
        mine.push_back(sample[k]);
      }
      for (auto const& sample : others) theirs.push_back(sample[k]);
      bool const named = std::holds_alternative<Choice>(kinds[k]);
      CHECK((named ? distance_of_names(mine, theirs) : distance_of_samples(mine, theirs)) < 1);
      ++compared;
    }
    // The density of a sample depends on all of its values: those of one kernel belong together.
    std::vector<double> mine, theirs;
    for (auto const& sample : samples) mine.push_back(own.log_density(sample));
    for (auto const& sample : others) theirs.push_back(own.log_density(sample));
    CHECK(distance_of_samples(mine, theirs) < 1);
  }
  CHECK(compared == 7 + 1 + 6 + 2);
}

TEST_CASE("probabilities of names and whole numbers are 1 in total, and samples have them") {
  Points const observed{{2, 3}, {0, 3}, {2, -1}, {1, 5}};
  Parzen const own({Choice{{"a", "b", "c"}}, Int{.low = -1, .high = 6, .step = 2}}, observed);
  Draw draw({.seed = 8});
  std::map<std::vector<double>, int> counts;
  for (int i = 0; i < 20000; ++i) ++counts[own.sample(draw)];
  double total = 0;
  for (double name : {0, 1, 2}) {
    for (double whole : {-1, 1, 3, 5}) {
      double const probability = std::exp(own.log_density(std::vector{name, whole}));
      total += probability;
      double const spread = std::sqrt(20000 * probability * (1 - probability));
      CHECK(std::abs(counts[{name, whole}] - 20000 * probability) < 4 * spread);
    }
  }
  CHECK(total == doctest::Approx(1).epsilon(1e-12));
}

TEST_CASE("the density of real numbers is 1 in total") {
  Parzen const own({LogUniform{1e-3, 10}}, {{0.002}, {0.0021}, {5}});
  double total = 0;
  constexpr int parts = 4000;
  double const range = std::log(10 / 1e-3);
  for (int i = 0; i < parts; ++i) {
    double const x = std::exp(std::log(1e-3) + (i + 0.5) / parts * range);
    total += std::exp(own.log_density(std::vector{x})) * range / parts;
  }
  CHECK(total == doctest::Approx(1).epsilon(1e-6));
}

TEST_CASE("one value needs no density, and other values have none") {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  Parzen const one({Uniform{3, 3}, Choice{{"only"}}, Uniform{0, 1}}, {{3, 0, 0.5}});
  Parzen const without({Uniform{0, 1}}, {{0.5}});
  CHECK(one.log_density(std::vector<double>{3, 0, 0.2}) ==
        doctest::Approx(without.log_density(std::vector{0.2})));
  Draw draw({.seed = 1});
  std::vector<double> const sample = one.sample(draw);
  CHECK(sample[0] == 3);
  CHECK(sample[1] == 0);
  CHECK(without.log_density(std::vector{1.5}) == -infinite);
  Parzen const whole({Int{.low = 0, .high = 3}, Uniform{0, 1}}, {{1, 0.5}});
  CHECK(whole.log_density(std::vector{-1, 0.5}) == -infinite);
}

TEST_CASE("older observations weigh less") {
  CHECK(frugal::recency_weights(0).empty());
  CHECK(frugal::recency_weights(25) == std::vector<double>(25, 1));
  CHECK(frugal::recency_weights(26).front() == 1.0 / 26);
  std::vector<double> const many = frugal::recency_weights(125);
  CHECK(many.front() == 1.0 / 125);
  CHECK(many[99] == 1);
  CHECK(many[1] - many[0] == doctest::Approx((1 - 1.0 / 125) / 99));
}

TEST_CASE("points and weights must fit") {
  auto const refusal = [](auto&& make) -> std::string {
    try {
      make();
    } catch (frugal::SettingsError const& error) {
      return error.what();
    }
    return {};
  };
  CHECK(refusal([] { Parzen({Uniform{}}, {{0.5, 1}}); }).find("2 values for 1") !=
        std::string::npos);
  CHECK(refusal([] { Parzen({Uniform{}}, {{0.5}}, {1, 1}); }).find("2 weights for 1") !=
        std::string::npos);
  CHECK(refusal([] {
          Parzen({Uniform{}}, {}).log_density(std::vector<double>{});
        }).find("0 values for 1") != std::string::npos);
}

using frugal::detail::log_normal_below;
using frugal::detail::log_normal_between;
using frugal::detail::normal_quantile;
using frugal::detail::truncated_normal;

TEST_CASE("probabilities and quantiles are Optuna's, in the tails too") {
  std::ifstream file(std::string(FRUGAL_TEST_DIR) + "/reference/parzen.json");
  nlohmann::json const all = nlohmann::json::parse(file).at("normal");
  auto const ends = all.at("ends").get<std::vector<std::pair<double, double>>>();
  auto const units = all.at("units").get<std::vector<double>>();
  auto const masses = all.at("masses").get<std::vector<double>>();
  auto const quantiles = all.at("quantiles").get<std::vector<std::vector<double>>>();
  REQUIRE(ends.size() == 10);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    auto const [a, b] = ends[i];
    CAPTURE(a);
    CAPTURE(b);
    // Optuna's difference of two probabilities near 1/2 has 1e-13 of the one between 0 and 1e-3.
    CHECK(log_normal_between(a, b) == doctest::Approx(masses[i]).epsilon(1e-12));
    for (std::size_t k = 0; k < units.size(); ++k) {
      CAPTURE(units[k]);
      // Optuna's Newton steps end at 1e-8.
      double const scale = std::max(1e-4, std::abs(quantiles[i][k]));
      CHECK(std::abs(truncated_normal(units[k], a, b) - quantiles[i][k]) < 1e-9 * scale);
    }
  }
}

TEST_CASE("a quantile is the inverse of the probability") {
  for (double x = -60; x <= 0; x += 0.37) {
    CAPTURE(x);
    CHECK(normal_quantile(log_normal_below(x)) == doctest::Approx(x).epsilon(1e-12));
  }
  for (auto const& [a, b] : {std::pair{-3.0, 0.5}, {-40.0, -39.5}, {0.01, 0.0101}, {6.0, 50.0}}) {
    for (double u = 0.05; u < 1; u += 0.1) {
      double const x = truncated_normal(u, a, b);
      CAPTURE(x);
      CHECK(std::exp(log_normal_between(a, x) - log_normal_between(a, b)) ==
            doctest::Approx(u).epsilon(1e-9));
    }
  }
}

TEST_CASE("parts add up where one formula takes over from the other") {
  // Below -30 and below a width of 1e-3 / |a| series replace erfc() and a difference of two probabilities.
  for (double const edge : {-29.9999, -30.0, -30.0001, -1.0, 0.0, 5.0, -8.0}) {
    for (double const width : {0.005, 1.4e-3 / std::max(1.0, std::abs(edge))}) {
      CAPTURE(edge);
      CAPTURE(width);
      double const whole = log_normal_between(edge, edge + width), middle = edge + 0.55 * width;
      double const parts = std::exp(log_normal_between(edge, middle) - whole) +
                           std::exp(log_normal_between(middle, edge + width) - whole);
      CHECK(parts == doctest::Approx(1).epsilon(1e-10));
    }
  }
}

TEST_CASE("the ends are never passed, and nothing between equal ends") {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  CHECK(truncated_normal(0, -2, 3) == -2);
  CHECK(truncated_normal(1, -2, 3) == 3);
  CHECK(truncated_normal(0.3, 2, 2) == 2);
  CHECK(log_normal_between(2, 2) == -infinite);
  CHECK(log_normal_below(infinite) == 0);
  CHECK(log_normal_below(-infinite) == -infinite);
  CHECK(log_normal_between(-infinite, infinite) == doctest::Approx(0));
  CHECK(log_normal_between(1, infinite) == doctest::Approx(log_normal_below(-1)).epsilon(1e-13));
  CHECK(std::abs(truncated_normal(0.5, -infinite, infinite)) < 1e-12);
}

}  // namespace frugal_test::search_parzen

namespace frugal_test::search_tpe {

using namespace support::search_tpe;

using frugal::Candidate;
using frugal::Choice;
using frugal::Int;
using frugal::LogUniform;
using frugal::RandomSampler;
using frugal::SearchDomain;
using frugal::SearchHistory;
using frugal::SearchTrial;
using frugal::Tpe;
using frugal::TrialState;
using frugal::Uniform;

/// The first `count` suggestions, for the seeds from 0 on.
std::vector<Candidate> suggestions(Tpe const& tpe, SearchHistory const& seen, std::size_t count) {
  std::vector<Candidate> found;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    found.push_back(tpe.suggest(domain(), seen, seen.trials.size(), seed));
  }
  return found;
}

/// The largest distance of two samples over all parameters, over its bound at 1 %.
double distance(std::vector<Candidate> const& one, std::vector<Candidate> const& other) {
  SearchDomain const all = domain();
  double most = 0;
  for (std::size_t k = 0; k <= all.settings.size(); ++k) {
    auto const column = [&](std::vector<Candidate> const& from) {
      std::vector<double> values;
      for (Candidate const& each : from) {
        if (k == 0) values.push_back(static_cast<double>(each.recipe));
        if (k != 0 && each.values[k - 1]) values.push_back(*each.values[k - 1]);
      }
      return values;
    };
    std::vector<double> const mine = column(one), theirs = column(other);
    bool const named = k == 0 || std::holds_alternative<Choice>(all.settings[k - 1].values);
    double const own = named ? distance_of_names(mine, theirs) : distance_of_samples(mine, theirs);
    // Of a recipe that is hardly ever suggested there are not enough settings to compare.
    if (mine.size() >= 30 && theirs.size() >= 30) most = std::max(most, own);
  }
  return most;
}

TEST_CASE("suggestions are distributed as Optuna's") {
  nlohmann::json const all = reference().at("cases");
  REQUIRE(all.size() == 5);
  for (nlohmann::json const& each : all) {
    CAPTURE(each.at("name").get<std::string>());
    SearchHistory const seen = history_of(each.at("trials"));
    std::vector<Candidate> theirs;
    for (nlohmann::json const& row : each.at("suggested")) {
      theirs.push_back(candidate_of(row[0], row[1]));
    }
    std::size_t const count = seen.trials.size() > 100 ? 100 : 300;
    std::vector<Candidate> const mine = suggestions({}, seen, count);
    for (Candidate const& one : mine) REQUIRE(frugal::is_candidate_of(domain(), one));
    // With 3000 seeds each it is at most 0.76.
    CHECK(distance(mine, theirs) < 1);
    // The comparison sees a search that has not begun.
    CHECK(distance(suggestions({.startup = 1000}, seen, 150), theirs) > 1.5);
  }
}

SearchDomain plane() {
  return {.recipes = {"a", "b"},
          .settings = {{.name = "x", .values = Uniform{-5, 10}},
                       {.name = "y", .values = Uniform{0, 15}},
                       {.name = "n", .values = Int{.low = 1, .high = 512, .log = true}}}};
}
/// Branin's function, of which recipe b is a worse copy; n is best at 40.
double branin(Candidate const& at) {
  double const x = *at.values[0], y = *at.values[1], pi = 3.141592653589793;
  double const curve = y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6;
  double const n = std::log(*at.values[2] / 40);
  return curve * curve + 10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10 + n * n +
         static_cast<double>(at.recipe) * 2;
}
/// The smallest value at x = y = 3; a narrow valley.
double valley(Candidate const& at) {
  double const x = *at.values[0] - 3, y = *at.values[1] - 3, n = std::log(*at.values[2]);
  return std::abs(x) + 2 * std::abs(y - x) + 0.2 * n;
}

template <class Sampler, class Function>
double best_of(Sampler const& sampler, Function const& function, std::uint64_t seed) {
  SearchHistory seen;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < 70; ++i) {
    SearchTrial trial{.candidate = sampler.suggest(plane(), seen, i, seed)};
    double const value = function(trial.candidate);
    best = std::min(best, value);
    trial.rungs.push_back({.values = {value}});
    trial.state = TrialState::complete;
    seen.trials.push_back(std::move(trial));
  }
  return best;
}

TEST_CASE("it finds better values than random search") {
  for (auto const& function : {branin, valley}) {
    std::vector<double> tpe, random;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      tpe.push_back(best_of(Tpe{}, function, seed));
      random.push_back(best_of(RandomSampler{}, function, seed));
    }
    std::ranges::sort(tpe);
    std::ranges::sort(random);
    double const floor = function == branin ? 0.398 : 0;
    CHECK(tpe[2] - floor < 0.6 * (random[2] - floor));
  }
}

TEST_CASE("failed trials are avoided, and teach nothing good") {
  SearchDomain const one{.recipes = {"a"}, .settings = {{.name = "x", .values = Uniform{0, 1}}}};
  SearchHistory seen;
  auto const add = [&](double x, TrialState state, std::vector<double> values) {
    SearchTrial& trial = seen.trials.emplace_back();
    trial.candidate.values = {x};
    trial.state = state;
    if (!values.empty()) trial.rungs.push_back({.values = std::move(values)});
  };
  for (int i = 0; i < 12; ++i) add(0.5 + 0.03 * (i - 6), TrialState::complete, {1.0 - 0.01 * i});
  auto const share_above = [&](double x) {
    int count = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      count += *Tpe{}.suggest(one, seen, 100, seed).values[0] > x;
    }
    return count;
  };
  int const before = share_above(0.7);
  // Better than all others, and yet they failed.
  for (int i = 0; i < 8; ++i) add(0.72 + 0.02 * i, TrialState::failed, {0.1});
  int const after = share_above(0.7);
  CHECK(before > 40);
  CHECK(after < before / 2);
  seen.trials.resize(12);
  // So are trials that run, unless the sampler does not look at them.
  for (int i = 0; i < 8; ++i) add(0.72 + 0.02 * i, TrialState::running, {});
  CHECK(share_above(0.7) == after);
  // Its own trial may be among them already.
  SearchHistory others = seen;
  others.trials[12].candidate.values.clear();  // none of the domain
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CHECK(Tpe{}.suggest(one, seen, 12, seed) == Tpe{}.suggest(one, others, 12, seed));
  }
  Tpe const plain{.constant_liar = false};
  CHECK(plain.suggest(one, seen, 100, 3) == plain.suggest(one, seen.first(12), 100, 3));
  // Repeats are not trials of the search, and its own trial does not count.
  seen.trials.resize(12);
  Candidate const own = Tpe{}.suggest(one, seen, 12, 3);
  add(0.9, TrialState::complete, {0});
  CHECK(Tpe{}.suggest(one, seen, 12, 3) == own);
  CHECK(Tpe{}.suggest(one, seen, 100, 3) != Tpe{}.suggest(one, seen.first(12), 100, 3));
  seen.trials.back().repeats = 0;
  CHECK(Tpe{}.suggest(one, seen, 100, 3) == Tpe{}.suggest(one, seen.first(12), 100, 3));
}

TEST_CASE("25 trials at most are good, and older ones weigh less, failed ones too") {
  SearchDomain const one{.recipes = {"a"}, .settings = {{.name = "x", .values = Uniform{0, 1}}}};
  SearchHistory seen;
  std::vector<std::vector<double>> below, above;
  frugal::Draw places({.seed = 4});
  for (std::size_t i = 0; i < 330; ++i) {
    SearchTrial& trial = seen.trials.emplace_back();
    double const x = places.uniform();
    trial.candidate.values = {x};
    // Of those that did not fail, each value from 0 to 299 once; the failed ones have the best value.
    std::size_t const value = i < 30 ? 0 : (i - 30) * 37 % 300;
    trial.rungs.push_back({.values = {static_cast<double>(value)}});
    trial.state = i < 30 ? TrialState::failed : TrialState::complete;
    (i >= 30 && value < 25 ? below : above).push_back({x});
  }
  frugal::Parzen const good({Uniform{0, 1}}, below), other({Uniform{0, 1}}, above);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    frugal::Draw draw({.index = 330, .seed = seed}, frugal::draw_stream("search.tpe"));
    double best = 0, most = -1e9;
    for (int i = 0; i < 24; ++i) {
      std::vector<double> const sample = good.sample(draw);
      double const ratio = good.log_density(sample) - other.log_density(sample);
      if (ratio > most) most = ratio, best = sample[0];
    }
    CHECK(Tpe{}.suggest(one, seen, 330, seed).values[0] == best);
  }
}

TEST_CASE("it begins at random, and bears odd histories") {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  SearchHistory seen;
  for (std::size_t i = 0; i < 12; ++i) {
    SearchTrial& trial = seen.trials.emplace_back();
    trial.candidate = RandomSampler{}.suggest(domain(), {}, i, 1);
    trial.candidate.recipe = 1;
    frugal::Draw draw({.index = i});
    frugal::fit_candidate(domain(), trial.candidate, draw);
    trial.rungs.push_back({.values = {nan}});
    trial.state = i % 2 == 0 ? TrialState::complete : TrialState::pruned;
    if (i < 9) {
      CHECK(Tpe{}.suggest(domain(), seen, 50, 3) == Tpe{}.suggest(domain(), {}, 50, 3));
    }
  }
  // No trial has had recipe 0, so nothing is known of decay.
  std::map<double, int> decays;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Candidate const found = Tpe{}.suggest(domain(), seen, 12, seed);
    REQUIRE(frugal::is_candidate_of(domain(), found));
    if (found.recipe == 0) ++decays[*found.values[3]];
  }
  CHECK(decays.size() == 3);
  // Infinite values of several objectives.
  for (SearchTrial& each : seen.trials) {
    each.rungs.back().values = {nan, std::numeric_limits<double>::infinity()};
  }
  CHECK(frugal::is_candidate_of(domain(), Tpe{}.suggest(domain(), seen, 12, 1)));
  CHECK(frugal::is_candidate_of(domain(), Tpe{.startup = 0}.suggest(domain(), {}, 0, 1)));
  // One candidate only.
  SearchDomain const single{.recipes = {"a"}, .settings = {{.name = "x", .values = Uniform{2, 2}}}};
  CHECK(Tpe{.startup = 0}.suggest(single, {}, 0, 1).values ==
        std::vector<std::optional<double>>{2});
  std::string text;
  try {
    Tpe{.candidates = 0}.require();
  } catch (frugal::SettingsError const& error) {
    text = error.what();
  }
  CHECK(text.find("candidates is 0 (the sampler tpe)") != std::string::npos);
}

using frugal::hypervolume;
using frugal::hypervolume_subset;
using frugal::ObjectiveValues;

TEST_CASE("the good trials are Optuna's") {
  nlohmann::json const all = reference().at("splits");
  REQUIRE(all.size() == 5);
  for (nlohmann::json const& each : all) {
    CAPTURE(each.at("name").get<std::string>());
    SearchHistory const seen = history_of(each.at("trials"));
    std::vector<std::size_t> const numbers =
        frugal::detail::lessons(domain(), seen, seen.trials.size(), seen.trials.size());
    REQUIRE(numbers.size() == 40);
    for (nlohmann::json const& row : each.at("below")) {
      auto const count = row[0].get<std::size_t>();
      CAPTURE(count);
      frugal::TpeSplit const split = frugal::split_trials(seen, numbers, count);
      CHECK(split.below == row[1].get<std::vector<std::size_t>>());
      CHECK(split.below.size() + split.above.size() == 40);
    }
  }
}

/// The largest volume of `count` of the points, by trying all.
double best_volume(std::vector<ObjectiveValues> const& points, std::size_t count,
                   ObjectiveValues const& reference) {
  double best = 0;
  for (std::size_t mask = 0; mask < (std::size_t{1} << points.size()); ++mask) {
    std::vector<ObjectiveValues> some;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if ((mask >> i) % 2 == 1) some.push_back(points[i]);
    }
    if (some.size() == count) best = std::max(best, hypervolume(some, reference));
  }
  return best;
}

TEST_CASE("the subset of a front has nearly the largest volume, and all of it first") {
  std::vector<ObjectiveValues> front;
  for (int i = 0; i < 9; ++i) {
    double const x = 0.1 + 0.1 * i;
    front.push_back({x, 0.3 / x + (i % 3 == 0 ? 0.01 : 0.0)});
  }
  ObjectiveValues const reference{1.1 * 0.9, 1.1 * 3.01};
  for (std::size_t count = 1; count <= 9; ++count) {
    CAPTURE(count);
    std::vector<std::size_t> const chosen = hypervolume_subset(front, count);
    CHECK(std::set<std::size_t>(chosen.begin(), chosen.end()).size() == count);
    std::vector<ObjectiveValues> some;
    for (std::size_t const each : chosen) some.push_back(front.at(each));
    double const best = best_volume(front, count, reference);
    // Greedy choice has at least 1 - 1/e of the largest volume; the first point has all of it.
    CHECK(hypervolume(some, reference) >= (count == 1 ? 1 - 1e-12 : 0.632) * best);
  }
}

TEST_CASE("of equal points one is taken before the others, and of infinite ones the smallest") {
  std::vector<ObjectiveValues> const points{{1, 4}, {1, 4}, {2, 3}, {4, 1}};
  std::vector<std::size_t> const three = hypervolume_subset(points, 3);
  CHECK(std::set<std::size_t>(three.begin(), three.end()) == std::set<std::size_t>{0, 2, 3});
  CHECK(hypervolume_subset(points, 4).size() == 4);
  double const infinite = std::numeric_limits<double>::infinity();
  CHECK(hypervolume_subset({{infinite, 1}, {3, 2}, {1, 9}}, 2) == std::vector<std::size_t>{2, 1});
}

TEST_CASE("a split has as many good trials as there are, and no more") {
  SearchHistory seen;
  for (int i = 0; i < 3; ++i) {
    seen.trials.push_back({.rungs = {{.values = {3.0 - i}}}, .state = TrialState::complete});
  }
  frugal::TpeSplit const all = frugal::split_trials(seen, {0, 1, 2}, 5);
  CHECK(all.below == std::vector<std::size_t>{0, 1, 2});
  CHECK(all.above.empty());
  frugal::TpeSplit const one = frugal::split_trials(seen, {0, 1, 2}, 1);
  CHECK(one.below == std::vector<std::size_t>{2});
  CHECK(one.above == std::vector<std::size_t>{0, 1});
  CHECK(frugal::split_trials(seen, {}, 2).below.empty());
}

}  // namespace frugal_test::search_tpe

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/sampler/tpe.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/sampler/sampler.hpp>
#include <frugal/search/trials/ranking.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

namespace frugal {

FRUGAL_INLINE std::vector<double> recency_weights(std::size_t count) {
  std::vector<double> weights(count, 1.0);
  if (count <= 25) return weights;
  std::size_t const older = count - 25;
  double const least = 1 / static_cast<double>(count);
  double const step = older == 1 ? 0 : (1 - least) / static_cast<double>(older - 1);
  for (std::size_t i = 0; i < older; ++i) weights[i] = least + step * static_cast<double>(i);
  if (older > 1) weights[older - 1] = 1;
  return weights;
}

FRUGAL_INLINE Parzen::Parzen(std::vector<Distribution> dimensions,
                             std::vector<std::vector<double>> const& observed,
                             std::vector<double> weights)
    : weights_(std::move(weights)) {
  if (weights_.size() != observed.size()) refuse(weights_.size(), "weights", observed.size());
  for (std::vector<double> const& each : observed) require_length(each, dimensions.size());
  weights_.push_back(1);
  double const all = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  for (double const each : weights_) log_weights_.push_back(std::log(each / all));
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    std::vector<double> values;
    for (std::vector<double> const& each : observed) values.push_back(each[i]);
    dimensions_.push_back(of_dimension(std::move(dimensions[i]), std::move(values)));
  }
}

FRUGAL_INLINE double Parzen::log_density(std::span<double const> point) const {
  require_length(point, dimensions_.size());
  std::vector<double> logs = log_weights_;
  for (std::size_t i = 0; i < point.size(); ++i) add_logs(dimensions_[i], point[i], logs);
  double const most = std::ranges::max(logs);
  if (std::isinf(most)) return most;
  double sum = 0;
  for (double const each : logs) sum += std::exp(each - most);
  return most + std::log(sum);
}

FRUGAL_INLINE std::vector<double> Parzen::sample(Draw& draw) const {
  double const all = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  double left = draw.uniform() * all;
  std::size_t kernel = 0;
  while (kernel + 1 < weights_.size() && left >= weights_[kernel]) left -= weights_[kernel++];
  std::vector<double> point;
  for (Dimension const& each : dimensions_) {
    point.push_back(value_of(each, kernel, draw.uniform()));
  }
  return point;
}

FRUGAL_INLINE void Parzen::refuse(std::size_t found, char const* what, std::size_t expected) {
  throw SettingsError(
      {.what = std::to_string(found) + " " + what + " for " + std::to_string(expected),
       .where = "a Parzen estimator",
       .why = "each point has one value for each dimension, and one weight",
       .fix = "Give as many of the one as of the other."});
}

FRUGAL_INLINE Parzen::Dimension Parzen::of_dimension(Distribution of,
                                                     std::vector<double> observed) {
  Dimension own{.values = std::move(of)};
  if (auto const* const choice = std::get_if<Choice>(&own.values)) {
    own.choices = choice->names.size();
    for (double const each : observed) own.names.push_back(static_cast<std::size_t>(each));
    return own;
  }
  if (auto const* const real = std::get_if<Uniform>(&own.values)) {
    own.low = real->low, own.high = real->high;
  } else if (auto const* const rate = std::get_if<LogUniform>(&own.values)) {
    own.low = rate->low, own.high = rate->high, own.log = true;
  } else {
    Int const& whole = std::get<Int>(own.values);
    std::int64_t const steps = (whole.high - whole.low) / whole.step;
    own.low = static_cast<double>(whole.low);
    own.high = static_cast<double>(whole.low + steps * whole.step);
    own.log = whole.log, own.step = static_cast<double>(whole.step);
  }
  own.begin = scaled(own, own.low - own.step / 2), own.end = scaled(own, own.high + own.step / 2);
  for (double& each : observed) each = scaled(own, each);
  own.deviations = deviations_of(observed, own.begin, own.end);
  own.means = std::move(observed);
  own.means.push_back(0.5 * (own.begin + own.end));
  own.deviations.push_back(own.end - own.begin);
  for (std::size_t k = 0; k < own.means.size(); ++k) {
    double const mean = own.means[k], deviation = own.deviations[k];
    own.log_masses.push_back(
        detail::log_normal_between((own.begin - mean) / deviation, (own.end - mean) / deviation));
  }
  return own;
}

FRUGAL_INLINE std::vector<double> Parzen::deviations_of(std::vector<double> const& means,
                                                        double begin, double end) {
  std::size_t const count = means.size();
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t k) { return std::pair(means[k], k); });
  double const range = end - begin;
  double const least = range / std::min(100.0, 2 + static_cast<double>(count));
  std::vector<double> deviations(count);
  for (std::size_t k = 0; k < count; ++k) {
    double const mean = means[order[k]];
    double below = mean - (k == 0 ? begin : means[order[k - 1]]);
    double above = (k + 1 == count ? end : means[order[k + 1]]) - mean;
    // The ends are neighbours of a single observation only.
    if (count > 1 && k == 0) below = 0;
    if (count > 1 && k + 1 == count) above = 0;
    deviations[order[k]] = std::clamp(std::max(below, above), least, range);
  }
  return deviations;
}

FRUGAL_INLINE void Parzen::add_logs(Dimension const& of, double value, std::vector<double>& logs) {
  std::size_t const count = logs.size();
  if (of.choices != 0) {
    // An observed name has 1 more than the 1 / kernels of each name.
    auto const kernels = static_cast<double>(count), choices = static_cast<double>(of.choices);
    double const other = -std::log(kernels + choices);
    double const same = std::log1p(kernels) + other;
    for (std::size_t k = 0; k + 1 < count; ++k) {
      logs[k] += static_cast<double>(of.names[k]) == value ? same : other;
    }
    logs.back() -= std::log(choices);
    return;
  }
  bool const inside = value >= of.low && value <= of.high;
  if (inside && !(of.begin < of.end)) return;  // one value, which each kernel has
  double const x = inside ? scaled(of, value) : 0;
  double const left = inside && of.step > 0 ? scaled(of, value - of.step / 2) : 0;
  double const right = inside && of.step > 0 ? scaled(of, value + of.step / 2) : 0;
  for (std::size_t k = 0; k < count; ++k) {
    double const mean = of.means[k], deviation = of.deviations[k];
    if (!inside) {
      logs[k] = -std::numeric_limits<double>::infinity();
    } else if (of.step > 0) {
      logs[k] += detail::log_normal_between((left - mean) / deviation, (right - mean) / deviation) -
                 of.log_masses[k];
    } else {
      double const z = (x - mean) / deviation;
      logs[k] += -0.5 * z * z - detail::log_sqrt_two_pi - std::log(deviation) - of.log_masses[k];
    }
  }
}

FRUGAL_INLINE double Parzen::value_of(Dimension const& of, std::size_t kernel, double u) {
  if (of.choices != 0) {
    auto const choices = static_cast<double>(of.choices);
    if (kernel == of.names.size()) return value_at(of.values, u);
    auto const kernels = static_cast<double>(of.names.size() + 1);
    double const other = 1 / (kernels + choices), name = static_cast<double>(of.names[kernel]);
    // The part of u that is the observed name's is cut out, and the others share the rest.
    if (u < (1 + kernels) * other) return name;
    double const index = std::floor((u - (1 + kernels) * other) / other);
    double const most = std::max(choices - 2, 0.0);
    double const place = std::min(index, most);
    return place < name ? place : std::min(place + 1, choices - 1);
  }
  double const mean = of.means[kernel], deviation = of.deviations[kernel];
  if (!(of.begin < of.end)) return of.low;
  double const x = mean + deviation * detail::truncated_normal(u, (of.begin - mean) / deviation,
                                                               (of.end - mean) / deviation);
  double value = of.log ? std::exp(x) : x;
  if (of.step > 0) value = of.low + std::round((value - of.low) / of.step) * of.step;
  return std::clamp(value, of.low, of.high);
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE double log_normal_below(double x) {
  if (x > 5) return std::log1p(-0.5 * std::erfc(x / std::numbers::sqrt2));
  if (x > -30) return std::log(0.5 * std::erfc(-x / std::numbers::sqrt2));
  if (std::isinf(x)) return x;
  // erfc() comes close to the smallest double. Its asymptotic series has five terms of 1e-16 or more here.
  double const square = x * x;
  double term = 1, sum = 1;
  for (int k = 1; k <= 6; ++k) sum += term *= -(2 * k - 1) / square;
  return -0.5 * square - std::log(-x) - log_sqrt_two_pi + std::log(sum);
}

FRUGAL_INLINE double log_of_sum(double a, double b) {
  if (a < b) std::swap(a, b);
  if (std::isinf(b) && b < 0) return a;
  return a + std::log1p(std::exp(b - a));
}

FRUGAL_INLINE double log_normal_between(double a, double b) {
  if (!(a < b)) return -std::numeric_limits<double>::infinity();
  // By symmetry, most of it is below 0 now.
  if (a + b > 0) std::tie(a, b) = std::pair(-b, -a);
  double const width = b - a;
  if (width * std::max(1.0, -a) < 1e-3) {
    // Two probabilities would cancel: the density in the middle and its curvature are exact to 1e-14.
    double const middle = 0.5 * (a + b);
    return -0.5 * middle * middle - log_sqrt_two_pi + std::log(width) +
           std::log1p((middle * middle - 1) * width * width / 24);
  }
  if (b <= 0) {
    double const below = log_normal_below(b);
    return below + std::log(-std::expm1(log_normal_below(a) - below));
  }
  double const outside =
      0.5 * (std::erfc(-a / std::numbers::sqrt2) + std::erfc(b / std::numbers::sqrt2));
  if (outside < 0.5) return std::log1p(-outside);
  return std::log(0.5 * (std::erf(b / std::numbers::sqrt2) + std::erf(-a / std::numbers::sqrt2)));
}

FRUGAL_INLINE double normal_quantile(double log_probability) {
  // log_normal_below() is concave, and at most ln(1/2) - x^2 / 2. So this begins below the root, and each of
  // Newton's steps comes closer to it without passing it.
  double x = -std::sqrt(std::max(0.0, -2 * (log_probability + std::numbers::ln2)));
  if (std::isinf(x)) return x;
  for (int i = 0; i < 50; ++i) {
    double const found = log_normal_below(x);
    double const step = (log_probability - found) * std::exp(found + 0.5 * x * x + log_sqrt_two_pi);
    x += step;
    if (!(std::abs(step) > 1e-13 * std::abs(x))) break;
  }
  return x;
}

FRUGAL_INLINE double truncated_normal(double u, double a, double b) {
  if (!(a < b)) return a;
  double const between = log_normal_between(a, b);
  // The smaller one of the two has all its digits.
  double const below = log_of_sum(log_normal_below(a), std::log(u) + between);
  double const above = log_of_sum(log_normal_below(-b), std::log1p(-u) + between);
  double const x = below < above ? normal_quantile(below) : -normal_quantile(above);
  return std::clamp(x, a, b);
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::vector<std::size_t> hypervolume_subset(
    std::vector<ObjectiveValues> const& points, std::size_t count) {
  std::vector<std::size_t> order(points.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (count >= points.size()) return order;
  std::ranges::sort(order, [&](std::size_t one, std::size_t other) {
    return points[one] == points[other] ? one < other : points[one] < points[other];
  });
  std::vector<std::size_t> left, repeated, chosen;
  for (std::size_t const i : order) {
    bool const equal = !left.empty() && points[left.back()] == points[i];
    (equal ? repeated : left).push_back(i);
  }
  if (left.size() <= count) {
    std::ranges::sort(repeated);
    chosen = left;
    chosen.insert(chosen.end(), repeated.begin(),
                  repeated.begin() + static_cast<std::ptrdiff_t>(count - left.size()));
    return chosen;
  }
  if (!std::ranges::all_of(points, is_finite)) {
    left.resize(count);
    return left;
  }
  ObjectiveValues reference = points.front();
  for (ObjectiveValues const& each : points) {
    for (std::size_t m = 0; m < each.size(); ++m) reference[m] = std::max(reference[m], each[m]);
  }
  for (double& each : reference) {
    each = std::max(1.1 * each, 0.9 * each);
    if (each == 0) each = 1e-12;
  }
  // A point adds less the more points are chosen, so an earlier volume is a bound.
  std::vector<double> bounds(left.size(), std::numeric_limits<double>::infinity());
  std::vector<ObjectiveValues> front;
  double volume = 0;
  while (chosen.size() < count) {
    std::vector<bool> current(left.size());
    while (true) {
      auto const best = static_cast<std::size_t>(std::ranges::max_element(bounds) - bounds.begin());
      front.push_back(points[left[best]]);
      if (current[best]) {
        chosen.push_back(left[best]);
        volume = hypervolume(front, reference);
        bounds[best] = -1;
        break;
      }
      bounds[best] = std::max(hypervolume(front, reference) - volume, 0.0);
      current[best] = true;
      front.pop_back();
    }
  }
  return chosen;
}

FRUGAL_INLINE TpeSplit split_trials(SearchHistory const& seen, std::vector<std::size_t> numbers,
                                    std::size_t count) {
  TpeSplit split;
  for (std::vector<std::size_t> const& group :
       detail::groups_by_progress(seen, std::move(numbers))) {
    std::size_t const wanted = std::min(count - split.below.size(), group.size());
    std::vector<ObjectiveValues> const points = detail::lesson_values(seen, group);
    std::vector<bool> good(group.size());
    if (points.front().size() == 1) {
      std::vector<std::size_t> const order = best_first(points);
      for (std::size_t i = 0; i < wanted; ++i) good[order[i]] = true;
    } else {
      std::vector<std::size_t> const ranks = pareto_ranks(points);
      std::size_t taken = 0;
      for (std::size_t rank = 0; taken < wanted; ++rank) {
        std::vector<std::size_t> members;
        std::vector<ObjectiveValues> front;
        for (std::size_t i = 0; i < points.size(); ++i) {
          if (ranks[i] == rank) members.push_back(i), front.push_back(points[i]);
        }
        std::size_t const part = std::min(wanted - taken, members.size());
        for (std::size_t const place : hypervolume_subset(front, part)) good[members[place]] = true;
        taken += part;
      }
    }
    for (std::size_t i = 0; i < group.size(); ++i) {
      (good[i] ? split.below : split.above).push_back(group[i]);
    }
  }
  std::ranges::sort(split.below);
  std::ranges::sort(split.above);
  return split;
}

FRUGAL_INLINE Candidate Tpe::suggest(SearchDomain const& domain, SearchHistory const& seen,
                                     std::size_t trial, std::uint64_t seed) const {
  Draw draw({.index = trial, .seed = seed}, draw_stream("search.tpe"));
  std::vector<std::size_t> const lessons = detail::lessons(domain, seen, seen.trials.size(), trial);
  if (lessons.size() < startup) return uniform_candidate(domain, draw);
  bool const several = detail::objectives_of(seen) > 1;
  auto good = static_cast<std::size_t>(std::ceil(0.1 * static_cast<double>(lessons.size())));
  if (!several) good = std::min<std::size_t>(good, 25);
  TpeSplit split = split_trials(seen, lessons, good);
  avoid_others(domain, seen, trial, split.above);

  // Parameter 0 is the recipe, and parameter i + 1 is setting i.
  std::vector<std::size_t> joint;
  if (!several) {
    for (std::size_t i = 0; i <= domain.settings.size(); ++i) {
      bool const shared = i == 0 || applies_to_all(domain, domain.settings[i - 1]);
      if (shared && !has_one_value(values_of(domain, i))) joint.push_back(i);
    }
  }
  std::vector<std::optional<double>> values(domain.settings.size() + 1);
  choose(domain, seen, split, joint, several, draw, values);
  if (!values[0]) choose(domain, seen, split, {0}, several, draw, values);
  Candidate candidate{.recipe = static_cast<std::size_t>(*values[0])};
  for (std::size_t i = 0; i < domain.settings.size(); ++i) {
    bool const applies = domain.settings[i].applies_to(candidate.recipe);
    if (applies && !values[i + 1]) {
      choose(domain, seen, split, {i + 1}, several, draw, values);
    }
    candidate.values.push_back(applies ? values[i + 1] : std::nullopt);
  }
  return candidate;
}

FRUGAL_INLINE void Tpe::require() const {
  detail::require_least(name, "candidates", candidates, 1, "a suggestion is the best one of them");
}

FRUGAL_INLINE std::string Tpe::text() const {
  return std::string(name) + ", startup " + std::to_string(startup) + ", candidates " +
         std::to_string(candidates) + (constant_liar ? ", constant liar" : "");
}

FRUGAL_INLINE void Tpe::avoid_others(SearchDomain const& domain, SearchHistory const& seen,
                                     std::size_t trial, std::vector<std::size_t>& above) const {
  for (std::size_t i = 0; i < seen.trials.size(); ++i) {
    SearchTrial const& each = seen.trials[i];
    if (i == trial || each.repeats || has_lesson(each)) continue;
    bool const avoided = each.state == TrialState::failed || constant_liar;
    if (avoided && is_candidate_of(domain, each.candidate)) above.push_back(i);
  }
  std::ranges::sort(above);  // newer trials weigh more
}

FRUGAL_INLINE Parzen Tpe::density(SearchDomain const& domain, SearchHistory const& seen,
                                  std::vector<std::size_t> const& trials,
                                  std::vector<std::size_t> const& parameters, bool alike) {
  std::vector<Distribution> kinds;
  for (std::size_t const each : parameters) kinds.push_back(values_of(domain, each));
  std::vector<std::vector<double>> observed;
  for (std::size_t const number : trials) {
    std::vector<double> point;
    for (std::size_t const each : parameters) {
      if (auto const value = value_of(seen.trials[number].candidate, each)) {
        point.push_back(*value);
      }
    }
    if (point.size() == parameters.size()) observed.push_back(std::move(point));
  }
  if (!alike) return {std::move(kinds), observed};
  std::vector<double> weights(observed.size(), 1.0);
  return {std::move(kinds), observed, std::move(weights)};
}

FRUGAL_INLINE void Tpe::choose(SearchDomain const& domain, SearchHistory const& seen,
                               TpeSplit const& split, std::vector<std::size_t> const& parameters,
                               bool several, Draw& draw,
                               std::vector<std::optional<double>>& values) const {
  if (parameters.empty()) return;
  if (parameters.size() == 1 && has_one_value(values_of(domain, parameters[0]))) {
    values[parameters[0]] = value_at(values_of(domain, parameters[0]), 0);
    return;
  }
  Parzen const below = density(domain, seen, split.below, parameters, several);
  Parzen const above = density(domain, seen, split.above, parameters, false);
  std::vector<double> best;
  double most = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < candidates; ++i) {
    std::vector<double> sample = below.sample(draw);
    double const ratio = below.log_density(sample) - above.log_density(sample);
    if (best.empty() || ratio > most) most = ratio, best = std::move(sample);
  }
  for (std::size_t k = 0; k < parameters.size(); ++k) values[parameters[k]] = best[k];
}

}  // namespace frugal

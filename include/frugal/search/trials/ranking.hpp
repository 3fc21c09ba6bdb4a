// SPDX-License-Identifier: Apache-2.0
// n points, m objectives.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace frugal {

/// The results of a trial, one for each objective, all to be minimised: give a metric that should be large with
/// its sign changed. NaN counts as infinity.
using ObjectiveValues = std::vector<double>;

namespace detail {

double value_to_minimise(double value);

/// The points without NaN. SettingsError unless all have as many objectives.
std::vector<ObjectiveValues> values_to_minimise(std::vector<ObjectiveValues> const& points,
                                                char const* where);

/// Of points without NaN.
bool dominates(ObjectiveValues const& one, ObjectiveValues const& other);

/// The points that no other one dominates; of equal ones the first.
std::vector<ObjectiveValues> front_of(std::vector<ObjectiveValues> points);

/// Of points of a front, each better than `reference` in every objective.
double volume_of_front(std::vector<ObjectiveValues> front, ObjectiveValues const& reference);

}  // namespace detail

/// For each point the number of its front: 0 for those that no other point dominates, 1 for those that only
/// points of front 0 dominate, and so on. A point dominates another one if it is worse in no objective and
/// better in one.
///
/// Cost    n^2 m comparisons.
/// Source  Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II" (2002), section III-A.
std::vector<std::size_t> pareto_ranks(std::vector<ObjectiveValues> const& points);

/// How far each of these points, those of one front, is from its neighbours: the sum over objectives of the
/// distance between the next better and the next worse value, over the range. The first and the last one in
/// an objective have infinity, unless all values of it are equal.
///
/// Source  the same, section III-B.
std::vector<double> crowding_distances(std::vector<ObjectiveValues> const& points);

/// The volume that points dominate below a reference point, each of whose values must be worse than those of
/// the points: others count nothing. Larger is better.
///
/// Cost    exact; for many points of four and more objectives exponential in m.
/// Source  While, Bradstreet and Barone, "A fast way of calculating exact hypervolumes" (2012).
double hypervolume(std::vector<ObjectiveValues> const& points, ObjectiveValues const& reference);

/// Whether every value is a finite number.
inline bool is_finite(ObjectiveValues const& values) {
  return std::ranges::all_of(values, [](double value) { return std::isfinite(value); });
}

/// The indices of these results, the best first: by value, or with several objectives by Pareto front and
/// within a front by distance from the neighbours. Equal ones keep their order, so that the ranking depends
/// on nothing but the values. Results that are not finite come last.
///
/// Source  for several objectives Schmucker et al., "Multi-objective asynchronous successive halving" (2021),
///         with the crowding distance of NSGA-II.
std::vector<std::size_t> best_first(std::vector<ObjectiveValues> const& results);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/trials/ranking.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include <frugal/base/number_text.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/policy/watched.hpp>

namespace frugal {

/// Lowers the learning rate when a watched metric has stopped improving; part of a Schedule, whose
/// curves it multiplies. Values are those of ReduceLROnPlateau.
///
/// A metric improves when it passes `best * (1 -+ threshold)`, or `best -+ threshold` if `relative`
/// is false. A NaN never improves, and uses up patience. Of a negative metric the first form, which
/// is PyTorch's, takes a slightly worse value as better: with `by_magnitude` a metric of any sign
/// improves when it passes `best -+ threshold * |best|`.
///
/// Options after the factor, in any order: Patience<10>, and the watched metric, WatchLoss.
template <Rational Factor = Rational{1, 10}, class... Options>
struct Plateau {
 private:
  using classes = list<detail::option::patience, detail::option::watch>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: Plateau<factor, ...>: unknown option. Options: Patience<validations>, and "
                "a watched metric such as WatchLoss or WatchAccuracy.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: Plateau<factor, ...>: the same option twice. Keep one "
                "Patience<validations> and one watched metric.");
  using Limit = detail::option_of<detail::option::patience, Patience<10>, Options...>;
  using Metric = detail::option_of<detail::option::watch, WatchLoss, Options...>;

 public:
  static constexpr std::string_view name = "plateau";
  static_assert(Factor.value() > 0 && Factor.value() < 1,
                "frugal: Plateau<factor>: the factor of the learning rate must be above 0 and "
                "below 1. Write Plateau<0.1>.");
  using watches = Metric;
  /// The form in which a checkpoint names it, whatever the order of its options.
  using canonical = Plateau<Factor, Limit, Metric>;

  double factor = Factor.value();     ///< of the learning rate, at each reduction
  int patience = Limit::validations;  ///< validations without improvement
  double threshold = 1e-4;            ///< a change must be larger than this
  bool relative = true;               ///< whether the threshold is a fraction of the best value
  bool by_magnitude = false;          ///< the fraction is of the best value's magnitude
  int cooldown = 0;               ///< validations after a reduction before patience counts again
  double min_factor = 0.0;        ///< lower bound of the factor
  double smallest_change = 1e-8;  ///< smaller reductions of the factor are skipped

  void numbers(auto&& f) const {
    f("factor", factor), f("patience", patience), f("threshold", threshold);
    f("relative", relative), f("by_magnitude", by_magnitude), f("cooldown", cooldown);
    f("min_factor", min_factor), f("smallest_change", smallest_change);
  }

  /// SettingsError for numbers that are out of range.
  void check() const {
    if (factor > 0 && factor < 1 && patience >= 0) return;
    throw SettingsError({.what = "factor is " + detail::general(factor, 6) + ", and patience " +
                                 std::to_string(patience),
                         .where = "Plateau",
                         .why = "each reduction lowers the rate, after some validations",
                         .fix = "Give a factor above 0 and below 1, and a patience of 0 or more."});
  }

  /// The part that survives a resume.
  struct Memory {
    double scale = 1.0;
    double best = worst();
    int bad = 0;
    int cooling = 0;

    template <class Archive>
    void persist(Archive& archive) {
      archive("scale", scale);
      archive("best", best);
      archive("bad", bad);
      archive("cooling", cooling);
    }
    /// It was measured on other validation data.
    void forget_best() {
      best = worst();
      bad = 0;
    }
  };

  void observe(double value, Memory& memory) const {
    if (better(value, memory.best)) {
      memory.best = value;
      memory.bad = 0;
    } else {
      ++memory.bad;
    }
    if (memory.cooling > 0) {
      --memory.cooling;
      memory.bad = 0;
    }
    if (memory.bad > patience) {
      double const lowered = std::fmax(memory.scale * factor, min_factor);
      if (memory.scale - lowered > smallest_change) memory.scale = lowered;
      memory.cooling = cooldown;
      memory.bad = 0;
    }
  }

  /// Whether the threshold takes a worse value as better, as in PyTorch: the best one is negative.
  bool misjudges(Memory const& memory) const {
    return relative && !by_magnitude && threshold > 0 && std::isfinite(memory.best) &&
           memory.best < 0;
  }

 private:
  static constexpr double worst() {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return Metric::better == Better::lower ? infinity : -infinity;
  }
  bool better(double value, double best) const {
    if (!relative || std::isinf(best)) {
      return Metric::improves(value, best, relative ? 0 : threshold);
    }
    if (by_magnitude) return Metric::improves(value, best, threshold * std::fabs(best));
    double const bar =
        Metric::better == Better::lower ? best * (1 - threshold) : best * (1 + threshold);
    return Metric::improves(value, bar, 0);
  }
};

namespace detail {

template <class Part>
inline constexpr bool is_plateau = requires {
  typename Part::watches;
  typename Part::Memory;
};

}  // namespace detail
}  // namespace frugal

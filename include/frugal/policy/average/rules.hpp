// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include <frugal/compose/rational.hpp>
#include <frugal/error.hpp>
#include <frugal/run/counters.hpp>

namespace frugal {

/// A moment from which on something is done: `From<1000>` optimizer steps, `From<10, Epoch>`.
template <std::uint64_t N, class Unit = OptimizerStep>
struct From {
  static constexpr std::uint64_t count = N;
  using unit = Unit;

  /// Have so many of the unit been completed?
  static constexpr bool reached(Counters const& now) {
    if constexpr (std::same_as<Unit, OptimizerStep>) {
      return now.step >= count;
    } else if constexpr (std::same_as<Unit, Epoch>) {
      return now.epoch >= count;
    } else if constexpr (std::same_as<Unit, MicroBatch>) {
      return now.micro_batch >= count;
    } else if constexpr (std::same_as<Unit, Sample>) {
      return now.sample >= count;
    } else {
      static_assert(std::same_as<Unit, Token>,
                    "frugal: From counts OptimizerStep, MicroBatch, Sample, Token or Epoch. Write "
                    "From<10, Epoch>.");
      return now.token >= count;
    }
  }
};

namespace detail {

template <class T>
inline constexpr bool is_from = false;
template <std::uint64_t N, class Unit>
inline constexpr bool is_from<From<N, Unit>> = true;

}  // namespace detail

/// How weights are averaged, for Average.
///
/// `cadence`          when the present weights are taken into the average
/// `begun(counters)`  from when on; the first weights that are taken are the average
/// `weight(taken)`    the share of the present weights in the new average, when `taken` are in the
///                    old one; the rest is the old one's
/// `steady`           optional; it has begun from the first step on, and its weight is always the
///                    same, so that Graph may capture it
/// `check()`          throws SettingsError for run-time settings without sense
template <class Rule>
concept AverageRule = std::default_initializable<Rule> && std::copyable<Rule> &&
                      requires(Rule const& rule, Counters const& now, std::uint64_t taken) {
                        typename Rule::cadence;
                        { rule.begun(now) } -> std::convertible_to<bool>;
                        { rule.weight(taken) } -> std::convertible_to<double>;
                        rule.check();
                      };

/// Exponential moving average: the average keeps the share `Decay` of itself at each update.
template <Rational Decay = 0.999_r, class Cadence = Every<1>>
struct Ema {
  static_assert(
      Decay.value() > 0 && Decay.value() < 1,
      "frugal: Ema keeps a share of the average that lies between 0 and 1, both left out. "
      "Write Ema<0.999_r>.");
  using cadence = Cadence;
  static constexpr bool steady = true;

  double decay = Decay.value();  ///< the share that is kept

  bool begun(Counters const&) const { return true; }
  double weight(std::uint64_t) const { return 1 - decay; }
  void check() const {
    if (decay > 0 && decay < 1) return;
    throw SettingsError({.what = "Ema has a decay of " + std::to_string(decay),
                         .where = "Average::rule.decay",
                         .why = "it is the share of the average that is kept",
                         .fix = "Give a number between 0 and 1, such as 0.999."});
  }
};

/// Stochastic weight averaging: from a moment on, the mean of the weights at a cadence.
template <class Start, class Cadence = Every<1, Epoch>>
struct Swa {
  static_assert(detail::is_from<Start>,
                "frugal: Swa is told from when on it averages. Write Swa<From<10, Epoch>>, or "
                "Swa<From<5000>, Every<100>>.");
  using cadence = Cadence;

  bool begun(Counters const& now) const { return Start::reached(now); }
  double weight(std::uint64_t taken) const { return 1.0 / (static_cast<double>(taken) + 1.0); }
  void check() const {}
};

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>

#include <frugal/base/number_text.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/options.hpp>

namespace frugal {

/// A start: `From<1000>` optimizer steps, `From<10, Epoch>`.
///
/// N is the default of a number that a program may set: `Swa<From<1000>>{.from = 500}`.
template <std::uint64_t N, class Unit = OptimizerStep>
class From {
 public:
  using unit = Unit;

  constexpr From() = default;
  // Implicit on purpose: a start is set by its number.
  template <std::integral T>
  constexpr From(T count)  // NOLINT(google-explicit-constructor)
      : count_(count == 0 ? 0 : detail::counted(count, "From")) {}

  constexpr std::uint64_t count() const { return count_; }

  /// Whether that many units have been completed.
  constexpr bool reached(Counters const& now) const {
    if constexpr (std::same_as<Unit, OptimizerStep>) {
      return now.step >= count_;
    } else if constexpr (std::same_as<Unit, Epoch>) {
      return now.epoch >= count_;
    } else if constexpr (std::same_as<Unit, MicroBatch>) {
      return now.micro_batch >= count_;
    } else if constexpr (std::same_as<Unit, Sample>) {
      return now.sample >= count_;
    } else {
      static_assert(std::same_as<Unit, Token>,
                    "frugal: From counts OptimizerStep, MicroBatch, Sample, Token or Epoch. Write "
                    "From<10, Epoch>.");
      return now.token >= count_;
    }
  }

 private:
  std::uint64_t count_ = N;
};

namespace detail {

template <class T>
inline constexpr bool is_from = false;
template <std::uint64_t N, class Unit>
inline constexpr bool is_from<From<N, Unit>> = true;

namespace option {

struct from {
  template <class O>
  static constexpr bool has = is_from<O>;
};

}  // namespace option

}  // namespace detail

/// How weights are averaged, for Average.
///
/// `cadence`          when the current weights enter the average
/// `begun(counters)`  whether averaging has begun; the first weights taken are the average
/// `weight(taken)`    the share of the current weights in the new average, if the old one contains
///                   `taken` weights; the old average has the rest
/// `every`            optional; a value of `cadence`, if its number may be set at run time
/// `steady`           optional; it averages from the first step on, with a constant weight, so that
///                   CudaGraph can capture it
/// `check()`          throws SettingsError for invalid run-time settings
/// `numbers(f)`       optional; calls `f(name, value)` for each number: a resumed run says which have changed
template <class Rule>
concept AverageRule = std::default_initializable<Rule> && std::copyable<Rule> &&
                      requires(Rule const& rule, Counters const& now, std::uint64_t taken) {
                        typename Rule::cadence;
                        { rule.begun(now) } -> std::convertible_to<bool>;
                        { rule.weight(taken) } -> std::convertible_to<double>;
                        rule.check();
                      };

/// Exponential moving average: each update keeps the fraction `Decay` of the old average.
template <Rational Decay = 0.999, class Cadence = Every<1>>
struct Ema {
  static_assert(Decay.value() > 0 && Decay.value() < 1,
                "frugal: Ema<decay>: the decay must be above 0 and below 1. Write Ema<0.999>.");
  using cadence = Cadence;
  static constexpr bool steady = true;

  double decay = Decay.value();  ///< the fraction that is kept
  Cadence every{};

  bool begun(Counters const&) const { return true; }
  double weight(std::uint64_t) const { return 1 - decay; }
  void numbers(auto&& f) const { f("decay", decay), f("every", every); }
  void check() const {
    if (decay > 0 && decay < 1) return;
    throw SettingsError({.what = "Ema has a decay of " + detail::general(decay, 6),
                         .where = "Average::rule.decay",
                         .why = "it is the fraction of the average that is kept",
                         .fix = "Give a number between 0 and 1, such as 0.999."});
  }
};

/// Stochastic weight averaging: from a given start, the mean of the weights at a cadence.
/// Options, in any order: From<...>, which is required, and a cadence.
template <class... Options>
struct Swa {
 private:
  using classes = list<detail::option::from, detail::option::cadence>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: Swa<...>: unknown option. Options: From<N> or From<N, Epoch>, and a "
                "cadence such as Every<1, Epoch>.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: Swa<...>: the same option twice. Keep one From and one cadence.");
  static_assert((false || ... || detail::option::from::has<Options>),
                "frugal: Swa needs the moment from which it averages. Write Swa<From<10, Epoch>>, "
                "or Swa<From<5000>, Every<100>>.");
  using Start = detail::option_of<detail::option::from, From<0>, Options...>;

 public:
  using cadence = detail::option_of<detail::option::cadence, Every<1, Epoch>, Options...>;

  Start from{};
  cadence every{};

  bool begun(Counters const& now) const { return from.reached(now); }
  double weight(std::uint64_t taken) const { return 1.0 / (static_cast<double>(taken) + 1.0); }
  void numbers(auto&& f) const { f("from", from), f("every", every); }
  void check() const {}

  /// For a start in steps or epochs that the run does not reach; otherwise empty.
  std::string outlook(RunLimits const& horizon) const {
    using Unit = typename Start::unit;
    std::string const start = std::to_string(from.count());
    if constexpr (std::same_as<Unit, OptimizerStep>) {
      if (!horizon.total_steps || *horizon.total_steps >= from.count()) return {};
      return "Swa averages from step " + start + " on, and the run ends at step " +
             std::to_string(*horizon.total_steps);
    } else if constexpr (std::same_as<Unit, Epoch>) {
      if (horizon.complete_epochs() >= from.count()) return {};
      return "Swa averages from epoch " + start + " on, and the run ends after epoch " +
             std::to_string(horizon.complete_epochs());
    }
    return {};
  }
};

}  // namespace frugal

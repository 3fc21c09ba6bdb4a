// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <tuple>

#include <frugal/core/compose/options.hpp>
#include <frugal/core/run/counters.hpp>

// Classes of options that several policies take; core/compose/options.hpp explains how they are
// identified.
namespace frugal::detail::option {

/// Every<500>, Every<1, Epoch>; or a user-defined cadence with the same members, static or not.
struct cadence {
  template <class O>
  static constexpr bool has = requires(O const& cadence, Counters const& now) {
    { O::per_epoch } -> std::convertible_to<bool>;
    { cadence.due_at_step(now) } -> std::same_as<bool>;
    { cadence.due_at_epoch_end(now) } -> std::same_as<bool>;
  };
};

/// Patience<3>.
struct patience {
  template <class O>
  static constexpr bool has = requires {
    { O::validations } -> std::convertible_to<int>;
  };
};

/// GraceEpochs<5>.
struct grace_epochs {
  template <class O>
  static constexpr bool has = requires {
    { O::grace_epochs } -> std::convertible_to<int>;
  };
};

/// WatchLoss, WatchAccuracy, Watch<"name", Better::lower>.
struct watch {
  template <class O>
  static constexpr bool has = requires {
    O::name;
    O::better;
    { O::improves(0.0, 0.0, 0.0) } -> std::same_as<bool>;
  };
};

/// A metric of Validate; core/run/metric.hpp has the protocol, and a sentence for one without result().
struct metric {
  template <class O>
  static constexpr bool has = requires(O const& measured) { measured.result(); } ||
                              (requires { O::name; } && !watch::has<O>);
};

}  // namespace frugal::detail::option

namespace frugal::detail {

/// FitBegin::compare_in_processes for the numbers that a part of a policy (a rule, a curve) lists by `numbers(f)`, which
/// calls `f(name, value)`, and for its `steps`.
template <class Part>
void compare_numbers(auto& fit_begin, std::string const& place, Part const& part) {
  auto const each = [&](char const* name, auto const& value) {
    if constexpr (requires { value.begin(); }) {
      fit_begin.compare_in_processes(place + "number of " + name,
                                     static_cast<double>(value.size()));
      for (std::size_t i = 0; i < value.size(); ++i) {
        fit_begin.compare_in_processes(place + name + ' ' + std::to_string(i + 1),
                                       static_cast<double>(value[i]));
      }
    } else if constexpr (requires { value.count(); }) {
      fit_begin.compare_in_processes(place + name, static_cast<double>(value.count()));
    } else if constexpr (std::convertible_to<decltype(value), double>) {
      fit_begin.compare_in_processes(place + name, static_cast<double>(value));
    }
  };
  if constexpr (requires { part.steps; }) each("steps", part.steps);
  if constexpr (requires { part.numbers(each); }) part.numbers(each);
}

/// The same of several parts.
template <class... Parts>
void compare_numbers_of(auto& fit_begin, std::string const& policy,
                        std::tuple<Parts...> const& parts) {
  std::size_t at = 0;
  auto const each = [&]<class Part>(Part const& part) {
    std::string place = policy + ", part " + std::to_string(++at);
    if constexpr (requires { Part::name; }) place += ", " + std::string(Part::name);
    compare_numbers(fit_begin, place + ": ", part);
  };
  std::apply([&](auto const&... part) { (each(part), ...); }, parts);
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>

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

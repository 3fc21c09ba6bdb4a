// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include <frugal/core/compose/fixed_string.hpp>

namespace frugal {

/// The number of consecutive validations without improvement that are tolerated.
template <int Validations>
struct Patience {
  static_assert(Validations >= 1,
                "frugal: Patience<0> would give up before the first validation. Write Patience<1>, "
                "or leave the policy out.");
  static constexpr int validations = Validations;
};

/// Epochs at the start of a run whose validations are not watched: neither a best value nor
/// patience comes of them. Without this option there are none.
template <int Epochs>
struct GraceEpochs {
  static_assert(
      Epochs >= 1,
      "frugal: GraceEpochs<0> is the default. Leave it out, or write GraceEpochs<1> or more.");
  static constexpr int grace_epochs = Epochs;
};

enum class Better { lower, higher };

/// The watched validation metric, and which direction is better.
template <fixed_string Name, Better Direction>
struct Watch {
  static constexpr std::string_view name = Name;
  static constexpr Better better = Direction;

  /// Whether `candidate` is better than `best` by more than `margin`. Never true for a NaN.
  static constexpr bool improves(double candidate, double best, double margin) {
    return Direction == Better::lower ? candidate < best - margin : candidate > best + margin;
  }
};

using WatchLoss = Watch<"loss", Better::lower>;
using WatchAccuracy = Watch<"accuracy", Better::higher>;
template <>
inline constexpr std::string_view alias_name<WatchLoss> = "WatchLoss";
template <>
inline constexpr std::string_view alias_name<WatchAccuracy> = "WatchAccuracy";

}  // namespace frugal

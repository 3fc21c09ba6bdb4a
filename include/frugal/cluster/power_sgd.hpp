// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cmath>
#include <cstdint>
#include <string>

#include <frugal/base/number_text.hpp>
#include <frugal/cluster/replicate_options.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// What a checkpoint keeps of the errors of PowerSGD, of which each process has its own.
enum class SavedErrors {
  each,  ///< those of each process: the same number of processes goes on in the same bits
  mean,  ///< their mean: each process goes on with that one, and the weights differ by rounding
};

/// Settings of Wire<PowerSGD<R>>; the defaults are those of PyTorch's PowerSGDState.
struct PowerSGDSettings {
  /// Steps whose gradients travel as they are: the first ones suffer most from compression.
  std::uint64_t start_step = 1000;
  /// A matrix is compressed if that makes it smaller by more than this factor.
  double min_compression_rate = 2;
  /// Whether a process adds what it could not send to its gradients of the next step.
  bool error_feedback = true;
  /// Whether a step begins with the factor Q of the last one, and not with a random one.
  bool warm_start = true;
  /// Added to the norms of columns in the Gram-Schmidt process, which serves R of 1 and 2.
  double orthogonalization_epsilon = 0;
  int rank = 0;            ///< columns of the factors; 0: R of the type
  std::uint32_t seed = 0;  ///< of the first Q
  SavedErrors saved_errors = SavedErrors::each;
};

/// Format of Wire: a matrix of gradients travels as two factors of `R` columns, P and Q.
///
/// Source  Vogels et al., "PowerSGD: Practical Low-Rank Gradient Compression for Distributed
///         Optimization" (2019).
template <int R>
struct PowerSGD {
  static_assert(R >= 1,
                "frugal: PowerSGD<R> sends factors of R columns, so R is at least 1. Write "
                "PowerSGD<4>.");
  static constexpr int rank = R;
};

namespace detail {

FRUGAL_DIAGNOSTIC(
    power_sgd_and_rollback,
    "frugal: Rollback keeps a copy of the run, and with Wire<PowerSGD<R>> each process would have "
    "errors of its own in it, which no checkpoint can hold. Remove Wire or Rollback.");

FRUGAL_DIAGNOSTIC(
    power_sgd_and_alternate,
    "frugal: Wire<PowerSGD<R>> adds to a gradient what the last step has left of it, and Alternate "
    "trains other parameters in each turn. Remove Wire, or use Replicate<Exact>.");

/// SettingsError for settings that mean nothing.
inline void require_power_sgd(PowerSGDSettings const& settings) {
  auto const refuse = [](char const* name, double value, char const* why, char const* fix) {
    throw SettingsError({.what = std::string(name) + " is " + detail::general(value, 6),
                         .where = "Wire<PowerSGD<R>>",
                         .why = why,
                         .fix = fix});
  };
  if (settings.rank < 0) {
    refuse("rank", settings.rank, "factors have at least one column",
           "Set 1 or more, or 0 for R of PowerSGD<R>.");
  }
  if (!(settings.min_compression_rate >= 0) || !std::isfinite(settings.min_compression_rate)) {
    refuse("min_compression_rate", settings.min_compression_rate,
           "it is the factor by which a matrix has to become smaller", "Set 2, or another factor.");
  }
  if (!(settings.orthogonalization_epsilon >= 0) ||
      !std::isfinite(settings.orthogonalization_epsilon)) {
    refuse("orthogonalization_epsilon", settings.orthogonalization_epsilon,
           "it is added to norms before a division", "Set 0, or a small number such as 1e-8.");
  }
}

}  // namespace detail

template <int R>
struct Wire<PowerSGD<R>> {
  using Settings = PowerSGDSettings;
  using conflicts = list<conflict<kinds::rollback, detail::power_sgd_and_rollback>,
                         conflict<kinds::alternate, detail::power_sgd_and_alternate>>;
  static constexpr c10::ScalarType type = c10::ScalarType::Undefined;
  static constexpr int rank = PowerSGD<R>::rank;
};

}  // namespace frugal

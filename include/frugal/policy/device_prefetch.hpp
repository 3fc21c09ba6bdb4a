// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <type_traits>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/policy/device_prefetch/copied_ahead.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Batches on the device at a time: the current one, and those being copied.
template <std::size_t N>
struct Depth {
  static_assert(N >= 1,
                "frugal: Depth<N>: N is the number of batches on the device at a time, at least 1. "
                "Write Depth<2>.");
  static constexpr std::size_t value = N;
};

namespace detail {

template <class T>
inline constexpr bool is_depth = false;
template <std::size_t N>
inline constexpr bool is_depth<Depth<N>> = true;

}  // namespace detail

/// Copies the next batch to the run's device during the current step. Settings::device names the
/// device.
///
/// Lever   hours per run: the device does not wait for copies.
/// Cost    Depth batches of device memory and as much page-locked memory; on the host one copy of
///         each batch into it. No host sync. On the CPU a comparison per batch.
/// State   none: batches that were copied ahead are not consumed; a resumed run reads them again.
/// Errors  A batch type whose batch_traits do not show its tensors does not compile.
///
///     Trainer trainer{net, CrossEntropy{}, Settings{.device = "cuda:1"}, Optimize<AdamW>{},
///     DevicePrefetch<>{}};
template <class D = Depth<2>>
struct DevicePrefetch {
  static_assert(
      detail::is_depth<D>,
      "frugal: DevicePrefetch<...>: unknown option. Options: Depth<N>, the number of batches on "
      "the device at a time. Write DevicePrefetch<Depth<2>>.");
  using kind = kinds::device;
  using listens = list<on::fit_begin>;
  using provides = list<service::placement>;

  static constexpr About about{Term::hours_per_run, "one copy of each batch on the host"};

  /// The device of the run, unchanged: only Settings::device decides it.
  c10::Device chosen(c10::Device device) const { return device; }

  /// Calls `fit(train, valid)` with sources that copy ahead. `Valid` is void without validation.
  template <class Valid, class Train, class Fit>
  static auto surround(Train& train, std::add_pointer_t<Valid> valid, Fit&& fit) {
    CopiedAhead<Train> ahead(train, D::value);
    if constexpr (std::is_void_v<Valid>) {
      return fit(ahead, valid);
    } else {
      // If both are one source, keep one: a validation moves its position, and the fit must see
      // that.
      if constexpr (std::is_same_v<Train, Valid>) {
        if (&train == valid) return fit(ahead, &ahead);
      }
      CopiedAhead<Valid> watched(*valid, D::value);
      return fit(ahead, &watched);
    }
  }

  class State {
   public:
    using transient = void;
    explicit State(DevicePrefetch const&) {}

    void on_fit_begin(FitBegin& phase) {
      if (!phase.settings().device.is_cpu()) return;
      phase.warn("DevicePrefetch: this run is on the CPU, where there is nothing to copy");
    }
  };
};

}  // namespace frugal

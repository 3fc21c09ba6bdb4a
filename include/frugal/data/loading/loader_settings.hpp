// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#if __has_include(<sched.h>)
#endif

namespace frugal {

/// What a loader does about a sample that cannot be read.
enum class OnError {
  Fail,  ///< ends the run at the sample's batch
  Skip,  ///< leaves out damaged samples (DataError, FormatError), and counts them; others still
         ///< fail
};

/// How a loader makes batches.
struct LoaderSettings {
  /// Threads; by default max(4, 4 x GPUs), at most the cores that the process may use. 0: batches
  /// are made in next().
  std::optional<int> workers{};
  std::size_t depth = 4;  ///< batches made ahead, in addition to one in each worker; at least 1
  /// How long a worker may be at one sample, or at making a batch of those that it has. A batch of
  /// many samples may take longer.
  std::chrono::duration<double> patience = std::chrono::seconds(60);
  int threads = 1;  ///< cores that one operator of a worker may use; 0: LibTorch's own setting
  OnError on_error = OnError::Fail;
  /// Share of an epoch's samples that may be skipped, 0 to 1, of those that this process reads.
  double skip_limit = 0.01;
  /// Batches lie in page-locked memory, which a device copies from without a wait. No effect where
  /// there is no such device.
  bool pin_memory = false;
  std::string name{};  ///< the set's name in errors; empty: its type
};

namespace detail {

/// The cores that this thread may run on: a container or taskset may leave few of many.
int cores_here();

/// The default of LoaderSettings::workers.
constexpr int default_workers(int gpus, int cores) {
  return std::min(std::max(4, 4 * gpus), cores);
}

void require_loadable(LoaderSettings const& settings);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/loading/loader_settings.ipp>
#endif

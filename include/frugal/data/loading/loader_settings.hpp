// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#if __has_include(<sched.h>)
#include <sched.h>
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
FRUGAL_INLINE int cores_here() {
#if __has_include(<sched.h>) && defined(CPU_COUNT)
  cpu_set_t mine;
  if (::sched_getaffinity(0, sizeof mine, &mine) == 0) return std::max(1, CPU_COUNT(&mine));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// The default of LoaderSettings::workers.
constexpr int default_workers(int gpus, int cores) {
  return std::min(std::max(4, 4 * gpus), cores);
}

FRUGAL_INLINE void require_loadable(LoaderSettings const& settings) {
  auto const refuse = [](std::string what, std::string where, std::string fix) {
    throw SettingsError(
        {.what = std::move(what), .where = std::move(where), .why = "", .fix = std::move(fix)});
  };
  if (settings.workers && *settings.workers < 0) {
    refuse(std::to_string(*settings.workers) + " workers", "LoaderSettings::workers",
           "Set it to 0 or more, or leave it out.");
  }
  if (settings.depth == 0) refuse("a depth of 0", "LoaderSettings::depth", "Set it to 1 or more.");
  if (!(settings.patience.count() > 0)) {
    refuse("a patience of " + std::to_string(settings.patience.count()) + " s",
           "LoaderSettings::patience", "Set it above 0.");
  }
  if (!(settings.skip_limit >= 0 && settings.skip_limit <= 1)) {
    refuse("a skip limit of " + detail::general(settings.skip_limit, 6),
           "LoaderSettings::skip_limit", "Set it to a share of the samples, 0 to 1.");
  }
}

}  // namespace detail
}  // namespace frugal

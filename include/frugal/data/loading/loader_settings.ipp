// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/loading/loader_settings.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sched.h>

#include <thread>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE int cores_here() {
#if __has_include(<sched.h>) && defined(CPU_COUNT)
  cpu_set_t mine;
  if (::sched_getaffinity(0, sizeof mine, &mine) == 0) return std::max(1, CPU_COUNT(&mine));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
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

}  // namespace frugal::detail

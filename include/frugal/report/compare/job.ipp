// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/compare/job.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cmath>
#include <filesystem>
#include <string>
#include <system_error>

namespace frugal {

FRUGAL_INLINE void CompareSettings::require(bool validates) const {
  if (repeats < 1) {
    throw SettingsError({.what = "the comparison has no repeats",
                         .where = "CompareSettings::repeats",
                         .why = "nothing would be run",
                         .fix = "Set 1 or more; 3 show a spread."});
  }
  if (dollars_per_hour && !(*dollars_per_hour >= 0 && std::isfinite(*dollars_per_hour))) {
    throw SettingsError({.what = "the price is " + detail::general(*dollars_per_hour, 6),
                         .where = "CompareSettings::dollars_per_hour",
                         .why = "no machine costs that",
                         .fix = "Give US dollars per hour of the whole machine, 0 or more."});
  }
  target.require();
  if (target.given() && !validates) {
    throw SettingsError({.what = "the target " + target.text() + " cannot be reached",
                         .where = "CompareSettings::target",
                         .why = "the job has no validation data to measure it on",
                         .fix = "Give the job a source after the one that it trains on."});
  }
  std::error_code unknown;
  if (!settings.run_dir.empty() && std::filesystem::exists(settings.run_dir, unknown) &&
      !std::filesystem::is_empty(settings.run_dir, unknown)) {
    throw SettingsError({.what = "the folder of the comparison is not empty",
                         .where = settings.run_dir.string(),
                         .why = "a recipe with Checkpoint would resume from an earlier run",
                         .fix = "Name another folder, or delete this one."});
  }
}

}  // namespace frugal

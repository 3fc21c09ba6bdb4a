// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/options.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <utility>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE void require_checkpoint_settings(Settings const& settings, Retention const& retention,
                                               double share,
                                               std::optional<double> machine_lifetime) {
  auto const fail = [](std::string what, std::string where, std::string fix) {
    throw SettingsError(
        {.what = std::move(what), .where = std::move(where), .why = "", .fix = std::move(fix)});
  };
  if (settings.run_dir.empty()) {
    fail("Checkpoint has nowhere to write", "Settings::run_dir",
         "Set Settings::run_dir to a folder.");
  }
  if (retention.last == 0) {
    fail("no newest checkpoint is kept", "Checkpoint::keep", "Keep 1 or more.");
  }
  for (BestBy const& best : retention.best) {
    if (best.count != 0) continue;
    fail("no best checkpoint by " + best.metric + " is kept", "Checkpoint::keep_best",
         "Keep 1 or more, or leave KeepBest out.");
  }
  if (!(share > 0 && share < 1)) {
    fail("the fraction of time for checkpoints is " + detail::general(share, 6),
         "Checkpoint::share", "Give a number between 0 and 1, such as 0.035.");
  }
  if (machine_lifetime && !(*machine_lifetime > 0)) {
    fail("a machine's lifetime is " + std::to_string(*machine_lifetime),
         "Checkpoint::machine_lifetime", "Give seconds, more than 0.");
  }
}

}  // namespace frugal::detail

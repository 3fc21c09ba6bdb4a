// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/log_keys.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <string>

namespace frugal::detail {

FRUGAL_INLINE void require_log_name(std::string_view what, std::string_view name,
                                    std::string_view where) {
  if (!name.empty() && !is_log_key(name)) return;
  throw SettingsError(
      {.what = std::string(what) + " is called '" + std::string(name) + "'",
       .where = std::string(where),
       .why = name.empty() ? "a log's line has to name it" : std::string(log_key_taken),
       .fix = "Give it another name."});
}

}  // namespace frugal::detail

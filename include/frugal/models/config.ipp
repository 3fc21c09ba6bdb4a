// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/models/config.hpp>

#include <string>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void require_config(ModelConfig const& config, char const* key, char const* text) {
  std::string const found = config.get<std::string>(key, text);
  if (found == text) return;
  throw SettingsError({.what = std::string(key) + " is \"" + found + '"',
                       .where = config.name(),
                       .why = std::string("the model computes with \"") + text + "\" alone",
                       .fix = "Use a module of your own for this file."});
}

FRUGAL_INLINE void require_config_off(ModelConfig const& config, char const* key, bool standard) {
  if (config.get<bool>(key, standard) == standard) return;
  throw SettingsError({.what = std::string(key) + " is " + (standard ? "false" : "true"),
                       .where = config.name(),
                       .why = std::string("the model computes as if it were ") +
                              (standard ? "true" : "false"),
                       .fix = "Use a module of your own for this file."});
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/notify/command.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void NotifyCommand::require_valid(std::string const& owner) const {
  if (words.empty() || words[0].empty()) {
    throw SettingsError({.what = "there is no program to run",
                         .where = owner + "::command.words",
                         .why = "it is empty",
                         .fix = R"(Set it, as in {"notify-send", "{text}"}.)"});
  }
  if (patience <= std::chrono::seconds(0)) {
    throw SettingsError({.what = "the program has " + std::to_string(patience.count()) + " s",
                         .where = owner + "::command.patience",
                         .why = "it would be killed before it begins",
                         .fix = "Give more than 0 s; 30 s is the default."});
  }
  delivery.require_valid(owner + "::command");
}

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace frugal {

/// An interrupted event: its hook, and which policies have completed it. A resumed run emits it to
/// all others, even if the recipe has changed.
struct Unfinished {
  std::string hook{};                       ///< the hook's name; empty: none
  std::vector<std::string> completed_by{};  ///< scope names of the policies that completed it

  template <class Archive>
  void persist(Archive& archive) {
    archive.scope("broken_off", [&](auto& inner) {
      inner("hook", hook);
      inner("told", completed_by);
    });
  }
};

}  // namespace frugal

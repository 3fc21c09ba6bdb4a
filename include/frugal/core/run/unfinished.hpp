// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <frugal/core/compose/hooks.hpp>

namespace frugal {

/// An interrupted event: its hook, and which policies have completed it. A resumed run emits it to
/// all others, even if the recipe has changed.
struct Unfinished {
  std::string hook{};                       ///< the hook's name; empty: none
  std::vector<std::string> completed_by{};  ///< scope names of the policies that completed it
  /// From an older checkpoint, without names: how many policies, in order, have completed it.
  std::optional<std::uint64_t> first{};

  template <class Archive>
  void persist(Archive& archive) {
    if constexpr (Archive::loading) {
      *this = {};
      if (archive.has("unfinished")) {
        load_numbers(archive);
        return;
      }
    }
    archive.scope("broken_off", [&](auto& inner) {
      inner("hook", hook);
      inner("told", completed_by);
    });
  }

 private:
  /// Older checkpoints store numbers instead of names, for the hook and the subscriber.
  template <class Archive>
  void load_numbers(Archive& archive) {
    constexpr std::uint64_t step_was = 7;
    constexpr std::uint64_t epoch_end_was = 10;
    std::uint64_t number = 0;
    std::uint64_t subscriber = 0;
    archive.scope("unfinished", [&](auto& inner) {
      inner("hook", number);
      inner("subscriber", subscriber);
    });
    if (number == step_was) hook = on::step::name;
    if (number == epoch_end_was) hook = on::epoch_end::name;
    first = subscriber;
  }
};

}  // namespace frugal

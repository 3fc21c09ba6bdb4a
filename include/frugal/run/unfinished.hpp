// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <frugal/compose/hooks.hpp>

namespace frugal {

/// An event that was broken off: which, and who has heard all of it. A resumed run tells the rest,
/// whoever they are by then.
struct Unfinished {
  std::string hook{};               ///< its name; empty: none
  std::vector<std::string> told{};  ///< by the names of their scopes
  /// In a checkpoint that has numbers in place of names: how many of the order have heard it.
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
      inner("told", told);
    });
  }

 private:
  /// Checkpoints from before names were saved have numbers, of the hook and of the subscriber.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/state/state_reader.hpp>
#include <frugal/state/state_writer.hpp>

namespace frugal {

/// Calls persist() of a recipe's States without knowing the recipe: one overload for each of the
/// two archives.
class PolicyStates {
 public:
  template <class Engine>
  static PolicyStates of(Engine& engine) {
    PolicyStates states;
    states.engine_ = &engine;
    states.save_ = &call<Engine, StateWriter>;
    states.load_ = &call<Engine, StateReader>;
    return states;
  }

  void persist(StateWriter& archive) const { save_(engine_, archive, false); }
  void persist(StateReader& archive) const { load_(engine_, archive, false); }
  /// Of the slots alone.
  void persist_slots(StateWriter& archive) const { save_(engine_, archive, true); }
  void persist_slots(StateReader& archive) const { load_(engine_, archive, true); }

 private:
  template <class Engine, class Archive>
  static void call(void* engine, Archive& archive, bool slots_alone) {
    static_cast<Engine*>(engine)->persist(archive, slots_alone);
  }

  void* engine_ = nullptr;
  void (*save_)(void*, StateWriter&, bool) = nullptr;
  void (*load_)(void*, StateReader&, bool) = nullptr;
};

}  // namespace frugal

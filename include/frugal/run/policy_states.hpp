// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/state/memory_reader.hpp>
#include <frugal/state/memory_writer.hpp>

namespace frugal {

/// The persist() of a recipe's states, for those who do not know the recipe: one call for each of
/// the two archives that there are.
class PolicyStates {
 public:
  template <class Engine>
  static PolicyStates of(Engine& engine) {
    PolicyStates states;
    states.engine_ = &engine;
    states.save_ = &call<Engine, MemoryWriter>;
    states.load_ = &call<Engine, MemoryReader>;
    return states;
  }

  void persist(MemoryWriter& archive) const { save_(engine_, archive, false); }
  void persist(MemoryReader& archive) const { load_(engine_, archive, false); }
  /// Of the slots alone.
  void persist_slots(MemoryWriter& archive) const { save_(engine_, archive, true); }
  void persist_slots(MemoryReader& archive) const { load_(engine_, archive, true); }

 private:
  template <class Engine, class Archive>
  static void call(void* engine, Archive& archive, bool slots_alone) {
    static_cast<Engine*>(engine)->persist(archive, slots_alone);
  }

  void* engine_ = nullptr;
  void (*save_)(void*, MemoryWriter&, bool) = nullptr;
  void (*load_)(void*, MemoryReader&, bool) = nullptr;
};

}  // namespace frugal

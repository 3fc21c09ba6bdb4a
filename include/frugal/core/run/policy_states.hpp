// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/compose/scope.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>

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
    states.scopes_ = &Engine::saved_scopes;
    states.first_ = &Engine::names_of_first;
    return states;
  }

  void persist(StateWriter& archive) const { save_(engine_, archive, false, {}); }
  void persist(StateReader& archive) const { load_(engine_, archive, false, {}); }
  /// Persists the slots alone.
  void persist_slots(StateWriter& archive) const { save_(engine_, archive, true, {}); }
  void persist_slots(StateReader& archive) const { load_(engine_, archive, true, {}); }
  /// Persists one policy, by the name of its scope.
  void persist_one(StateWriter& archive, std::string_view scope) const {
    save_(engine_, archive, false, scope);
  }
  void persist_one(StateReader& archive, std::string_view scope) const {
    load_(engine_, archive, false, scope);
  }
  /// The scopes of all that persist() visits, in its order.
  std::vector<detail::SavedScope> scopes() const { return scopes_(); }
  /// The scope names of the first `count` policies in order.
  std::vector<std::string> names_of_first(std::size_t count) const { return first_(count); }

 private:
  template <class Engine, class Archive>
  static void call(void* engine, Archive& archive, bool slots_alone, std::string_view only) {
    static_cast<Engine*>(engine)->persist(archive, slots_alone, only);
  }

  void* engine_ = nullptr;
  void (*save_)(void*, StateWriter&, bool, std::string_view) = nullptr;
  void (*load_)(void*, StateReader&, bool, std::string_view) = nullptr;
  std::vector<detail::SavedScope> (*scopes_)() = nullptr;
  std::vector<std::string> (*first_)(std::size_t) = nullptr;
};

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/base/function_ref.hpp>
#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/compose/recipe_facts.hpp>
#include <frugal/core/compose/scope.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/error.hpp>

namespace frugal {

struct RunState;
struct CheckpointPhase;

/// The events of a recipe at which its run may end, and what its policies answer, for the part of the loop that
/// does not know the recipe. A null function stands for a recipe without subscribers.
class PolicyEvents {
 public:
  /// Gets the kind of each policy that asks for the end.
  using Asking = FunctionRef<void(std::string_view)>;

  /// An event that may be interrupted, and is completed by the subscribers whose names are not in `done`.
  struct Interruptible {
    std::string_view name{};
    flow (*emit)(void* engine, RunState& run, std::vector<std::string>& done, std::size_t& current,
                 Asking asking) = nullptr;
    bool own_verdicts = false;  ///< a policy may ask for the end in one process alone
  };

  template <class Engine>
  static PolicyEvents of(Engine& engine) {
    PolicyEvents events;
    events.engine_ = &engine;
    events.step = interruptible<Engine, on::step>();
    events.epoch_end = interruptible<Engine, on::epoch_end>();
    events.saver = Engine::template provider_index<service::save>();
    if constexpr (Engine::template has_subscribers<query::stop_requested>) {
      events.ask_ = &ask<Engine, query::stop_requested>;
    }
    if constexpr (Engine::template has_subscribers<on::preempt>) {
      events.preempt_ = &preempt<Engine>;
    }
    if constexpr (Engine::template provides<service::recover>) events.recover_ = &recover<Engine>;
    return events;
  }

  flow emit(Interruptible const& event, RunState& run, std::vector<std::string>& done,
            std::size_t& current, Asking asking) const {
    return event.emit == nullptr ? flow::proceed : event.emit(engine_, run, done, current, asking);
  }
  /// Whether a policy asks for a preemption (query::stop_requested).
  bool ask(RunState& run, Asking asking) const {
    return ask_ != nullptr && ask_(engine_, run, asking);
  }
  void emit_preempt(Preemption& phase) const {
    if (preempt_ != nullptr) preempt_(engine_, phase);
  }
  bool recovers() const { return recover_ != nullptr; }
  bool recover(CheckpointPhase& at, LossError const& error) const {
    return recover_(engine_, at, error);
  }

  Interruptible step{};
  Interruptible epoch_end{};
  std::size_t saver = 0;  ///< the position, in order, of the policy that saves

 private:
  template <class Engine, class Hook>
  static Interruptible interruptible() {
    Interruptible event{.name = Hook::name,
                        .own_verdicts = Engine::template has_own_verdicts<Hook> ||
                                        Engine::template has_own_verdicts<on::validated>};
    if constexpr (Engine::template has_subscribers<Hook>) event.emit = &emit_to_rest<Engine, Hook>;
    return event;
  }
  template <class Engine, class Hook>
  static flow emit_to_rest(void* engine, RunState& run, std::vector<std::string>& done,
                           std::size_t& current, Asking asking) {
    typename Hook::phase phase(run);
    return static_cast<Engine*>(engine)->template emit_to_others<Hook>(done, current, phase,
                                                                       asking);
  }
  template <class Engine, class Hook>
  static bool ask(void* engine, RunState& run, Asking asking) {
    typename Hook::phase phase(run);
    return static_cast<Engine*>(engine)->template ask<Hook>(phase, asking);
  }
  template <class Engine>
  static void preempt(void* engine, Preemption& phase) {
    static_cast<Engine*>(engine)->template emit<on::preempt>(phase);
  }
  template <class Engine>
  static bool recover(void* engine, CheckpointPhase& at, LossError const& error) {
    return static_cast<Engine*>(engine)->template provider<service::recover>().recover(at, error);
  }

  void* engine_ = nullptr;
  bool (*ask_)(void*, RunState&, Asking) = nullptr;
  void (*preempt_)(void*, Preemption&) = nullptr;
  bool (*recover_)(void*, CheckpointPhase&, LossError const&) = nullptr;
};

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

/// Whom a run reaches: its policies, the loop, other processes, and the policies that save it and capture its
/// steps. Set before the first event. A run outside of a fit has the facts of its recipe alone.
class RunLinks {
 public:
  RunLinks() = default;
  explicit RunLinks(RecipeFacts const& of) : facts_(of) {}

  /// The States of a recipe, which must outlive this, and its events.
  void to_policies(PolicyStates states, PolicyEvents events) {
    policies_ = states;
    events_ = events;
  }
  void to_loop(LoopInterface& loop) { loop_ = &loop; }
  void to_processes(ProcessesInterface* others) { others_ = others; }
  void to_saver(SaverInterface& saver) { saver_ = &saver; }
  void to_capture(CaptureInterface& capture) { capture_ = &capture; }

  /// The optimizer updates these; null: the parameters.
  void update_parts(ParameterParts const* parts) { parts_ = parts; }

  RecipeFacts const& facts() const { return facts_; }
  PolicyStates const& policies() const { return policies_; }
  PolicyEvents const& events() const { return events_; }
  LoopInterface* loop() const { return loop_; }
  ProcessesInterface* others() const { return others_; }  ///< null in a run of one process
  SaverInterface* saver() const { return saver_; }        ///< null without a policy that saves
  CaptureInterface* capture() const {
    return capture_;
  }  ///< null without a policy that captures steps
  /// This process's parts of the parameters, where the provider of service::share divides them; otherwise null.
  ParameterParts const* parts() const { return parts_; }

 private:
  RecipeFacts facts_{};
  PolicyStates policies_{};
  PolicyEvents events_{};
  LoopInterface* loop_ = nullptr;
  ProcessesInterface* others_ = nullptr;
  SaverInterface* saver_ = nullptr;
  CaptureInterface* capture_ = nullptr;
  ParameterParts const* parts_ = nullptr;
};

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/base/function_ref.hpp>
#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/run/services.hpp>
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

}  // namespace frugal

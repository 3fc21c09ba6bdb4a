// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/recipe_facts.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/policy_events.hpp>
#include <frugal/core/run/policy_states.hpp>

namespace frugal {

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

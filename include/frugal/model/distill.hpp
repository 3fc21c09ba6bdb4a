// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/model/distill/objective.hpp>
#include <frugal/model/distill/teacher.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Trains a small model to agree with a trained one (knowledge distillation): in its outputs, in
/// hidden states and attention maps of named layers, with one teacher or several.
///
/// Lever   hours per run, and what the model costs when it is used: a smaller one for the same
///         accuracy.
/// Cost    a forward pass of each teacher per micro-batch, or what CachedTeacher reads of its disk.
/// State   the identity of the teachers: a resume with others is an error. The projections are
///         parameters of the student.
/// Errors  SettingsError for impossible settings, and for a layer that is not there; ShapeError for
///         outputs that do not fit; ModuleError for a layer that is not called once in a forward
///         pass.
/// Source  Hinton, Vinyals and Dean, "Distilling the knowledge in a neural network" (2015); Romero
///         et al., "FitNets" (2015); Zagoruyko and Komodakis, "Paying more attention to attention"
///         (2017); Wang et al., "MiniLM" (2020).
///
///     Distill<Temperature<4>> const distill{.teachers = {Teacher(big)}, .alpha = 0.9};
///     Trainer trainer{net, distill.objective(CrossEntropy{}), Settings{}, Optimize<AdamW>{}, distill};
template <class Option = Temperature<1>>
struct Distill {
  static_assert(detail::is_temperature<Option> || std::same_as<Option, SquaredError>,
                "frugal: Distill<...>: unknown option. Write Distill<Temperature<4>> for logits of "
                "classes, or Distill<SquaredError> for other outputs.");

  using kind = kinds::distill;
  using listens = list<on::module>;

  FRUGAL_DIAGNOSTIC(
      and_importance,
      "frugal: Distill does not weigh its losses by how Importance draws the samples, "
      "so their mean would be biased. Remove one of them.");
  using conflicts = list<conflict<kinds::importance, and_importance>>;

  static constexpr About about{Term::hours_per_run, "a forward pass of each teacher"};
  std::vector<Teacher> teachers{};  ///< none: batches have their outputs (CachedTeacher)
  /// Share of the teachers in the loss; that of the objective is 1 - alpha.
  double alpha = 0.5;
  /// Softens logits of classes; of SquaredError 0.
  double temperature = [] {
    if constexpr (detail::is_temperature<Option>) return Option::value;
    return 0.0;
  }();
  std::vector<HiddenStates> hidden{};      ///< added to the loss
  std::vector<AttentionMaps> attention{};  ///< added to the loss
  std::shared_ptr<detail::Lessons> lessons = std::make_shared<detail::Lessons>();

  /// The objective of the student.
  template <class Objective>
  DistillObjective<Option, Objective> objective(Objective objective) const {
    return {std::move(objective), settings(), lessons};
  }

  detail::DistillSettings settings() const {
    detail::require_temperature(temperature, detail::is_temperature<Option>);
    return {.teachers = teachers,
            .alpha = alpha,
            .temperature = temperature,
            .hidden = hidden,
            .attention = attention};
  }

  class State {
   public:
    explicit State(Distill const& policy) : policy_(policy) {}
    State(State const&) = delete;
    State& operator=(State const&) = delete;
    ~State() {
      if (lesson_) policy_.lessons->end(*student_, lesson_.get());
    }

    void on_module(ModuleSetup& phase) {
      student_ = &base_module(phase.module());
      lesson_ = policy_.lessons->begin(*student_, policy_.settings(), /*adapts=*/true);
      identity_ = lesson_->identity;
    }

    template <class Archive>
    void persist(Archive& archive) {
      std::string saved = identity_;
      archive("teachers", saved);
      if constexpr (Archive::loading) {
        if (saved == identity_) return;
        throw StateError({.what = "the run began with another teacher",
                          .where = "Distill::teachers",
                          .why = "it was " + shown(saved) + ", and is " + shown(identity_),
                          .fix = "Load the weights of the first teacher, or begin another run."});
      }
    }

   private:
    static std::string shown(std::string const& identity) {
      return identity.empty() ? "none" : identity;
    }

    Distill policy_;
    torch::nn::Module* student_ = nullptr;
    std::shared_ptr<detail::Lesson const> lesson_;
    std::string identity_;
  };
};

/// Does what Distill does when a fit begins, for a module that is trained otherwise, or whose
/// weights are loaded before: registers the projections that its hidden states need. Once is
/// enough.
template <class Module, class Option>
void adapt(Module& module, Distill<Option> const& distill) {
  distill.lessons->begin(base_module(module), distill.settings(), /*adapts=*/true);
}

/// Removes the projections of a Distill: the student has its own parameters again, and no others.
template <class Module>
void remove_projection(Module& module) {
  torch::nn::Module& root = base_module(module);
  if (root.named_children().contains(detail::projection_name)) {
    root.unregister_module(detail::projection_name);
  }
}

}  // namespace frugal

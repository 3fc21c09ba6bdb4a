// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/libtorch/module_hold.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/libtorch/statistics_layers.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/model/where.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// The parameters with a name that a pattern selects: frozen for good in this module, until unfix_tensor()
/// or Unfreeze. A tied tensor is frozen by each of its names. A layer of BatchNorm whose parameters are all
/// frozen keeps its statistics in every fit, and so does one without parameters if a pattern selects its
/// running mean. SettingsError for a pattern that selects none.
void freeze(torch::nn::Module& module, NamePatterns const& patterns);

/// Trains only the other parameters.
///
/// Lever   hours per run: no gradient and no update of the frozen layers; memory: none of their
///         gradients and moments, and no activations below the first trained layer.
/// Cost    none. A checkpoint hashes the frozen parameters once per fit, and does not store them.
/// State   none: what is frozen belongs to the module, in this fit and in those that follow.
/// Errors  SettingsError for a pattern that selects no parameter; ModuleError if all are frozen;
///         StateError on a resume over other frozen weights than those of the checkpoint's run.
/// Source  requires_grad = False and eval() of the layers in PyTorch.
///
/// Patterns are those of parameters' names (Where): Freeze<Where<"encoder.*">>. A frozen BatchNorm layer
/// normalizes by its statistics and keeps them, whatever calls train(): see freeze().
template <class Names>
struct Freeze {
  using kind = kinds::freeze;
  using listens = list<>;
  using properties = list<property::adapts, property::capturable>;
  static constexpr About about{Term::hours_per_run, "none"};

  static void adapt(torch::nn::Module& module) { freeze(module, Names()); }
};

/// Gradual unfreezing: parts of the module are frozen at first, and trained later, one after the
/// other.
///
/// Lever   hours per run: early steps pay for the last layers alone. Runs to convergence: a new head
///         does not destroy pretrained layers while it is still random.
/// Cost    one comparison per step.
/// State   none: what is frozen follows from the run's counters, so that a resumed run, and one that
///         Rollback has taken back, freezes what it froze then. After a fit these parameters are trained
///         by others, also those that it did not come to.
/// Errors  SettingsError for a pattern that selects no parameter.
/// Source  Howard and Ruder, "Universal language model fine-tuning for text classification" (2018).
///
/// The first pattern is unfrozen when the cadence is first due, the second one the next time:
/// Unfreeze<Where<"layer.11.*", "layer.10.*">, Every<1, Epoch>> trains layer 11 from the second
/// epoch, and layer 10 from the third. Freeze may name the same parameters, and more.
template <class Names, class Cadence = PerEpoch>
struct Unfreeze {
  using unit = typename Cadence::unit;
  static_assert(std::same_as<unit, Epoch> || std::same_as<unit, OptimizerStep> ||
                    std::same_as<unit, Sample> || std::same_as<unit, Token>,
                "frugal: Unfreeze counts epochs, optimizer steps, samples or tokens. Write "
                "Every<1, Epoch> or Every<500>.");
  FRUGAL_DIAGNOSTIC(and_graph,
                    "frugal: CudaGraph captures one step for the whole run, and Unfreeze changes "
                    "which parameters a step trains. Remove one of them.");

  using kind = kinds::unfreeze;
  using listens = list<on::module, on::fit_begin, on::ready, on::window>;
  using after = list<kinds::freeze, kinds::lora>;
  using conflicts = list<conflict<kinds::execution, and_graph>>;
  using properties = list<property::adapts>;
  static constexpr About about{Term::hours_per_run, "one comparison per step"};

  Cadence every{};

  /// Outside of its fits these parameters are trained and saved like others, whatever Freeze or Lora
  /// has fixed: a fit holds those whose time has not come, and lets them go when it ends.
  static void adapt(torch::nn::Module& module, detail::Adaptation& all) {
    std::vector<std::string> names;
    for (auto const& item : module.named_parameters()) names.push_back(item.key());
    NamePatterns(Names()).require_in(names, "Unfreeze", "parameters");
    for (auto const& item : module.named_parameters()) {
      if (item.value().defined() && Names::matches(item.key())) all.train(item.value());
    }
    for (detail::StatisticsLayer const& each : detail::statistics_layers(module)) {
      if (!Names::matches(detail::running_mean_of(each))) continue;
      for (at::Tensor const& tensor : each.statistics) unfix_tensor(tensor);
    }
  }
  static void adapt(torch::nn::Module& module) {
    detail::Adaptation alone(module);
    adapt(module, alone);
    alone.keep();
  }

  class State {
   public:
    using transient = void;  // the counters have it
    explicit State(Unfreeze const& settings) : every_(settings.every) {}

    /// Before anything asks which parameters are trained.
    void on_module(ModuleSetup& phase) {
      find(base_module(phase.module()));
      for (auto const& part : tensors_) phase.hold(part);
    }
    void on_fit_begin(FitBegin& phase) { apply(phase, unfrozen_at(phase.counters())); }
    // A resumed run continues where it was.
    void on_ready(Ready& phase) { apply(phase, unfrozen_at(phase.counters())); }
    void on_window(WindowBegin& phase) {
      std::size_t const wanted = unfrozen_at(phase.counters());
      if (wanted != unfrozen_) [[unlikely]]
        apply(phase, wanted);
    }

   private:
    static constexpr auto parts = Names::patterns;

    /// The first pattern that selects a name, or their number.
    static std::size_t part_of(std::string_view name) {
      auto const selects = [&](std::string_view pattern) {
        return detail::matches_pattern(pattern, name);
      };
      return static_cast<std::size_t>(std::ranges::find_if(parts, selects) - parts.begin());
    }

    std::size_t unfrozen_at(Counters const& now) const {
      std::uint64_t counted = now.epoch;
      if constexpr (std::same_as<unit, OptimizerStep>) counted = now.step;
      if constexpr (std::same_as<unit, Sample>) counted = now.sample;
      if constexpr (std::same_as<unit, Token>) counted = now.token;
      return std::min<std::uint64_t>(counted / every_.count(), parts.size());
    }

    /// A tensor with several names is unfrozen with the first of them.
    void find(torch::nn::Module& module) {
      std::unordered_map<at::TensorImpl const*, std::size_t> first;
      std::vector<std::pair<at::Tensor, std::size_t>> found;
      auto const look = [&](std::string const& name, at::Tensor const& tensor) {
        std::size_t const part = part_of(name);
        if (!tensor.defined() || part == parts.size()) return;
        auto const [place, is_new] = first.try_emplace(tensor.unsafeGetTensorImpl(), part);
        if (is_new) found.emplace_back(tensor, part);
        place->second = std::min(place->second, part);
      };
      for (auto const& item : module.named_parameters()) look(item.key(), item.value());
      for (detail::StatisticsLayer const& each : detail::statistics_layers(module)) {
        if (!each.parameters.empty()) continue;  // these say whether it is trained
        for (at::Tensor const& tensor : each.statistics) {
          look(detail::running_mean_of(each), tensor);
        }
      }
      for (auto const& [tensor, part] : found) {
        tensors_[first.at(tensor.unsafeGetTensorImpl())].push_back(tensor);
      }
    }

    template <class Phase>
    void apply(Phase& phase, std::size_t wanted) {
      detail::ModuleHold& hold = phase.run_state().hold;
      for (std::size_t part = 0; part < parts.size(); ++part) {
        part < wanted ? hold.let_go(tensors_[part]) : hold.hold(tensors_[part]);
        if (part >= unfrozen_ && part < wanted) {
          phase.record({"unfreeze", {{"parameters", std::string(parts[part])}}});
        }
      }
      unfrozen_ = wanted;
    }

    Cadence every_;
    std::array<std::vector<at::Tensor>, parts.size()> tensors_;
    std::size_t unfrozen_ = 0;
  };
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/freeze.ipp>
#endif

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
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/fixed_tensors.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/model/frozen_statistics.hpp>
#include <frugal/model/where.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Gradual unfreezing: parts of the module are frozen at first, and trained later, one after the
/// other.
///
/// Lever   hours per run: early steps pay for the last layers alone. Runs to convergence: a new head
///         does not destroy pretrained layers while it is still random.
/// Cost    one comparison per step.
/// State   none: what is frozen follows from the run's counters, so that a resumed run, and one that
///         Rollback has taken back, freezes what it froze then.
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
  using listens = list<on::fit_begin, on::ready, on::window, around::forward>;
  using after = list<kinds::freeze>;
  using conflicts = list<conflict<kinds::execution, and_graph>>;
  static constexpr bool adapts = true;
  static constexpr About about{Term::hours_per_run, "one comparison per step"};

  /// These parameters are saved with a run, although they are frozen at first.
  static void adapt(torch::nn::Module& module) {
    std::vector<std::string> names;
    for (auto const& item : module.named_parameters()) names.push_back(item.key());
    NamePatterns(Names()).require_in(names, "Unfreeze", "parameters");
    for (auto const& item : module.named_parameters()) {
      if (!item.value().defined() || !Names::matches(item.key())) continue;
      if (is_released(item.value())) continue;
      fix_tensor(item.value());
      unfix_tensor(item.value());
    }
  }

  template <class Context>
  class State {
   public:
    using transient = void;  // the counters have it
    explicit State(Unfreeze const&) {}

    void on_fit_begin(FitBegin<Context>& phase) {
      torch::nn::Module& module = base_module(phase.module());
      for (auto const& item : module.named_parameters()) {
        if (!item.value().defined()) continue;
        std::size_t const part = part_of(item.key());
        if (part < parts.size()) parameters_[part].push_back(item.value());
      }
      for (std::size_t part = 0; part < parts.size(); ++part) {
        statistics_[part].find(module,
                               [&](std::string const& name) { return part_of(name) == part; });
      }
      apply(phase, unfrozen_at(phase.counters()));
    }
    // A resumed run continues where it was.
    void on_ready(Ready<Context>& phase) { apply(phase, unfrozen_at(phase.counters())); }
    void on_window(WindowBegin<Context>& phase) {
      std::size_t const wanted = unfrozen_at(phase.counters());
      if (wanted != unfrozen_) [[unlikely]]
        apply(phase, wanted);
    }

    template <class Next>
    Loss around_forward(Forward<Context>& phase, Next&& next) {
      if (phase.training) {
        for (std::size_t part = unfrozen_; part < parts.size(); ++part) statistics_[part].hold();
      }
      return next();
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

    static std::size_t unfrozen_at(Counters const& now) {
      std::uint64_t counted = now.epoch;
      if constexpr (std::same_as<unit, OptimizerStep>) counted = now.step;
      if constexpr (std::same_as<unit, Sample>) counted = now.sample;
      if constexpr (std::same_as<unit, Token>) counted = now.token;
      return std::min<std::uint64_t>(counted / Cadence::count, parts.size());
    }

    template <class Phase>
    void apply(Phase& phase, std::size_t wanted) {
      for (std::size_t part = 0; part < parts.size(); ++part) {
        for (at::Tensor const& each : parameters_[part]) {
          each.set_requires_grad(part < wanted);
          if (part >= wanted) each.mutable_grad().reset();
        }
        if (part >= unfrozen_ && part < wanted) {
          phase.record({"unfreeze", {{"parameters", std::string(parts[part])}}});
        }
      }
      unfrozen_ = wanted;
    }

    std::array<std::vector<at::Tensor>, parts.size()> parameters_;
    std::array<detail::FrozenStatistics, parts.size()> statistics_;
    std::size_t unfrozen_ = 0;
  };
};

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include <frugal/base/gradient_exchange.hpp>
#include <frugal/cluster/agreement/joined_processes.hpp>
#include <frugal/cluster/agreement/knows_ranks.hpp>
#include <frugal/cluster/agreement/window_share.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/divided_windows.hpp>
#include <frugal/cluster/local_steps.hpp>
#include <frugal/cluster/local_steps/state.hpp>
#include <frugal/cluster/replicate/state.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/replicate/none.hpp>

namespace frugal {

/// Trains one module in several processes, which exchange weights once in H steps instead of
/// gradients in each: DiLoCo. Each process makes H steps with its own share of the micro-batches and
/// its own moments. Then the outer optimizer moves the weights of the round's start towards the mean
/// of all processes' weights, and all go on from there.
///
/// `Accumulate<N>` is the number of micro-batches of a step in all processes together. Rank r of W
/// trains the N/W from r N/W on. The mean counts a process by the weight of the losses that it has
/// trained in the round; these are equal, but for masks and the end of an epoch.
///
/// Bits    those of the same number of processes; another number trains otherwise.
/// Cost    sends 2 (W - 1) / W of the weights' bytes once in H steps, and one small message per step;
///         memory: the trained weights once more, their momentum (Outer<Nesterov>), and three copies
///         of the weights during an outer step.
/// State   the momentum of the outer steps; in the middle of a round the weights of each process, and
///         always the moments of each.
/// Errors  those of Replicate<Exact>; N may be any multiple of the processes. SettingsError for an lr
///         or a momentum out of range. ModuleError for two parameters over the same memory, or one
///         that moves during fit. NonFiniteWeightsError when a process would save weights that are
///         not finite.
/// Source  Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models"
///         (2023).
template <std::uint64_t H, class... Options>
struct Replicate<LocalSteps<H>, Options...> {
  using options = detail::LocalStepsOptions<Options...>;
  using outer_type = typename options::outer;
  using kind = kinds::replicate;
  using listens = list<around::fit, on::fit_begin, on::ready, on::fit_end, around::micro_batch,
                       on::update, on::epoch_end, on::validated>;
  using after = list<kinds::clip, kinds::optimizer>;  // their States are loaded before its own
  using provides = list<service::reduce, service::share>;
  using strategy = DividedWindows;
  using demands = list<detail::KnowsRanks>;
  using conflicts = typename options::conflicts;
  using canonical = Replicate<LocalSteps<H>, outer_type>;

  static constexpr bool has_ranks = true;
  static constexpr About about{Term::hours_per_run, "an exchange of all weights once in H steps"};

  /// The processes; null: those that the launcher has started (World::from_environment).
  std::shared_ptr<Communicator> with{};
  outer_type outer{};

  MicroBatches own(int micro_batches) const {
    return detail::equal_share(communicator().world(), micro_batches, "Replicate<LocalSteps>");
  }
  Communicator& communicator() const { return detail::communicator_of(with); }
  void const* exchanges() const { return detail::exchanges_of(communicator()); }
  /// For plan_ranks.
  GradientExchange exchange() const { return {.sum = GradientSum::local_steps, .local_steps = H}; }

  template <class Context>
  struct State : detail::LocalStepsState<Context, H, outer_type> {
    explicit State(Replicate const& settings)
        : detail::LocalStepsState<Context, H, outer_type>(
              settings.communicator(), settings.own(detail::traits_of<Context>::batches),
              settings.outer) {}
  };
};

}  // namespace frugal

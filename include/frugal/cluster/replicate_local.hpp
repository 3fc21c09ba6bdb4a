// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include <frugal/base/gradient_exchange.hpp>
#include <frugal/cluster/agreement/joined_processes.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/divided_windows.hpp>
#include <frugal/cluster/local_steps/outer_optimizer.hpp>
#include <frugal/cluster/local_steps/state.hpp>
#include <frugal/cluster/replicate/state.hpp>
#include <frugal/cluster/replicate_options.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/replicate/none.hpp>

namespace frugal {

/// Option of Replicate: each process makes H optimizer steps with weights of its own, and then all
/// processes make one outer step together (Outer).
template <std::uint64_t H>
struct LocalSteps {
  static_assert(H > 0,
                "frugal: LocalSteps<H> counts the optimizer steps between two outer steps. Write "
                "LocalSteps<64>.");
};

namespace detail {

FRUGAL_DIAGNOSTIC(local_steps_and_unfreeze,
                  "frugal: LocalSteps exchanges the weights that are trained from the first step "
                  "on, and Unfreeze "
                  "adds others later. Remove Unfreeze, or use Replicate<Exact>.");

FRUGAL_DIAGNOSTIC(local_steps_and_alternate,
                  "frugal: LocalSteps exchanges the weights that every step trains, and Alternate "
                  "trains others in each turn. Remove Alternate, or use Replicate<Exact>.");

FRUGAL_DIAGNOSTIC(
    local_steps_and_rollback,
    "frugal: Rollback keeps a copy of the run, and with LocalSteps each process would have another "
    "one, which no checkpoint can hold. Add SkipNonFinite instead, or use Replicate<Exact>.");

/// What the options of Replicate<LocalSteps<H>, ...> say.
template <class... Options>
struct LocalStepsOptions {
  using all = ReplicateOptions<Options...>;
  static_assert(!all::shards,
                "frugal: Shard<States> updates a part of the weights in each process, and with "
                "LocalSteps each process updates all of its own. Remove Shard, or use "
                "Replicate<Exact, Shard<States>>.");
  static_assert(
      std::is_same_v<typename all::wire, NoWire>,
      "frugal: Wire<...> rounds gradients on their way, and with LocalSteps weights travel "
      "instead. Remove Wire, or use Replicate<Ring, Wire<BF16>>.");
  static_assert(options_known<list<outer_option, shard_option, wire_option>, Options...> &&
                    options_unique<list<outer_option>, Options...>,
                "frugal: Replicate<LocalSteps<H>, ...>: unknown option, or one twice. Options: "
                "Outer<Nesterov>, Outer<SGD>.");

  using outer = option_of<outer_option, Outer<Nesterov>, Options...>;
  using conflicts = list<conflict<kinds::unfreeze, local_steps_and_unfreeze>,
                         conflict<kinds::alternate, local_steps_and_alternate>,
                         conflict<kinds::rollback, local_steps_and_rollback>>;
};

}  // namespace detail
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

  using properties = list<property::has_ranks>;
  static constexpr About about{Term::hours_per_run, "an exchange of all weights once in H steps"};

  /// The processes; null: those that the launcher has started (World::from_environment).
  std::shared_ptr<Communicator> with{};
  outer_type outer{};
  std::uint64_t steps = H;  ///< between two outer steps

  MicroBatches own(int micro_batches) const {
    return detail::equal_share(communicator().world(), micro_batches, "Replicate<LocalSteps>");
  }
  Communicator& communicator() const { return detail::communicator_of(with); }
  void const* exchanges() const { return detail::exchanges_of(communicator()); }
  /// For plan_ranks.
  GradientExchange exchange() const {
    return {.sum = GradientSum::local_steps, .local_steps = static_cast<int>(steps)};
  }

  template <class Context>
  struct State : detail::LocalStepsState<Context, outer_type> {
    State(Replicate const& settings, RecipeFacts const& facts)
        : detail::LocalStepsState<Context, outer_type>(
              settings.communicator(), settings.own(facts.batches), settings.outer,
              detail::counted(settings.steps, "Replicate<LocalSteps>::steps")) {}
  };
};

}  // namespace frugal

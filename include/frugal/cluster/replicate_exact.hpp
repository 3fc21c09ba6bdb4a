// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <type_traits>

#include <frugal/base/gradient_exchange.hpp>
#include <frugal/cluster/agreement/joined_processes.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/divided_windows.hpp>
#include <frugal/cluster/replicate/state.hpp>
#include <frugal/cluster/replicate_options.hpp>
#include <frugal/cluster/shard/scattered_gradients.hpp>
#include <frugal/cluster/tensors/exact_sum.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/replicate/none.hpp>

namespace frugal {

/// Trains one module in several processes, which share each window's micro-batches: the same weights
/// come out, bit for bit, of 1, 2, 4 or 8 processes.
///
/// `Accumulate<N>` is the number of micro-batches of a step in all processes together. Rank r of W
/// trains the N/W from r N/W on. Gradients are added up in a fixed tree over the N micro-batches,
/// random numbers are keyed by seed, position and micro-batch, and losses are added in the window's
/// order. So schedules, cadences, cursors and losses do not depend on the number of processes.
///
/// Bits    equal if micro-batches, thread counts (OMP_NUM_THREADS) and kernels are equal: the same
///         kind of processor, or of GPU.
/// Cost    sends 2 (W - 1) / W of the gradients' bytes per step; memory: two copies of the
///         gradients, and log2(N / W) more.
/// State   none.
/// Errors  SettingsError for an N that the processes cannot share, ClusterError for ranks with other
///         seeds, data, recipes or weights, for one that ends, and if a module's buffers come out
///         different. A policy that knows no ranks does not compile.
template <class... Options>
struct Replicate<Exact, Options...> {
  using options = detail::ReplicateOptions<Options...>;
  static_assert(options::known && options::unique,
                "frugal: Replicate<Exact, ...>: unknown option, or one twice. Options: "
                "Shard<States>, Shard<States, Grads>, Shard<States, Grads, Params>.");
  static_assert(
      std::is_same_v<typename options::wire, detail::NoWire>,
      "frugal: Replicate<Exact> promises the same bits for every number of processes, and "
      "Wire<...> rounds or compresses what each process sends. Use Replicate<Ring, Wire<BF16>>.");
  static_assert(
      std::is_same_v<typename options::batch_norms, detail::BatchNormStatistics>,
      "frugal: Replicate<Exact> promises the same bits for every number of processes, and "
      "SyncBatchNorm joins the micro-batches that processes train at the same time. Leave "
      "it out, for statistics of each micro-batch, or use Replicate<Ring, "
      "SyncBatchNorm>.");
  using kind = kinds::replicate;
  using listens = list<around::fit, on::fit_begin, on::ready, on::fit_end, around::micro_batch>;
  using provides = list<service::reduce, service::share>;
  using strategy = DividedWindows;
  using demands = typename options::demands;
  using conflicts = typename options::conflicts;
  using canonical = Replicate<Exact>;  // a run may go on with other options

  using properties = list<property::has_ranks>;
  static constexpr About about{Term::hours_per_run, "an exchange of all gradients per step"};

  /// The processes; null: those that the launcher has started (World::from_environment).
  std::shared_ptr<Communicator> with{};
  /// With Shard<States, Grads>: of gradients that travel together.
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  /// With Shard<States, Grads, Params>: elements; smaller weights of layers are whole in each process.
  std::int64_t whole_below = std::int64_t{1} << 16;

  MicroBatches own(int micro_batches) const {
    return detail::exact_share(communicator().world(), micro_batches, options::scatters);
  }
  Communicator& communicator() const { return detail::communicator_of(with); }
  void const* exchanges() const { return detail::exchanges_of(communicator()); }
  /// For plan_ranks.
  GradientExchange exchange() const {
    return {.sum = GradientSum::exact,
            .shards_states = options::shards,
            .scatters = options::scatters,
            .bucket_bytes = bucket_bytes};
  }

  template <class Context>
  struct State : detail::ReplicateState<Context, detail::ExactGradients, options::shards> {
    using transient = void;
    State(Replicate const& settings, RecipeFacts const& facts)
        : detail::ReplicateState<Context, detail::ExactGradients, options::shards>(
              settings.communicator(), settings.own(facts.batches), "Replicate<Exact>", {},
              options::shards ? detail::BlockNorms::block : FlatLayout::grid) {}
  };
  template <class Context>
    requires options::scatters
  struct State<Context> : detail::scattering_state<Context, options::gathers> {
    State(Replicate const& settings, RecipeFacts const& facts)
        : detail::scattering_state<Context, options::gathers>(settings, settings.own(facts.batches),
                                                              "Replicate<Exact>") {}
  };
};

}  // namespace frugal

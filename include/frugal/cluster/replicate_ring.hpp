// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include <frugal/base/gradient_exchange.hpp>
#include <frugal/cluster/agreement/joined_processes.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/divided_windows.hpp>
#include <frugal/cluster/power_sgd/state.hpp>
#include <frugal/cluster/replicate/ring_gradients.hpp>
#include <frugal/cluster/replicate/state.hpp>
#include <frugal/cluster/replicate_options.hpp>
#include <frugal/cluster/shard/scattered_gradients.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/replicate/none.hpp>

namespace frugal {

/// Option of Replicate: the backend adds up gradients while the backward pass goes on.
struct Ring;

namespace detail {

template <class Context, bool shards, class BatchNorms>
struct RingState : ReplicateState<Context, RingGradients, shards, BatchNorms> {
  using transient = void;

  RingState(Communicator& all, MicroBatches own, char const* name,
            RingGradients::Settings const& settings)
      : ReplicateState<Context, RingGradients, shards, BatchNorms>(all, own, name, {}, settings) {}
};

template <class Context, class Options>
using ring_state =
    std::conditional_t<Options::wire::rank == 0,
                       RingState<Context, Options::shards, typename Options::batch_norms>,
                       PowerSGDState<Context, Options::shards, typename Options::batch_norms>>;

}  // namespace detail

/// Trains one module in several processes, which share each window's micro-batches. Gradients are
/// added up in buckets while the backward pass of a process's last micro-batch goes on.
///
/// `Accumulate<N>` is the number of micro-batches of a step in all processes together. Rank r of W
/// trains the N/W from r N/W on.
///
/// Bits    those of the same number of processes; other numbers differ by the order of sums. Losses,
///         random numbers, schedules, cadences and cursors do not depend on the number, so a run may
///         go on with another one.
/// Cost    sends 2 (W - 1) / W of the gradients' bytes per step, most of it during the backward pass;
///         memory: one copy of the gradients.
/// State   none; with Wire<PowerSGD<R>> the errors and factors of each matrix.
/// Errors  those of Replicate<Exact>; N may be any multiple of the processes. ModuleError for a
///         parameter that gets two gradients in one micro-batch, because the objective calls
///         backward() itself; `overlaps = false` allows it.
/// Source  Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training"
///         (2020).
template <class... Options>
struct Replicate<Ring, Options...> {
  using options = detail::ReplicateOptions<Options...>;
  static_assert(options::known && options::unique,
                "frugal: Replicate<Ring, ...>: unknown option, or one twice. Options: "
                "Shard<States>, Shard<States, Grads>, Shard<States, Grads, Params>, SyncBatchNorm, "
                "Wire<BF16>, Wire<PowerSGD<R>>.");
  static_assert(!options::scatters || options::wire::rank == 0,
                "frugal: Wire<PowerSGD<R>> sends the sum of a window's gradients as factors, and "
                "Shard<States, Grads> sends each micro-batch's by itself. Use Shard<States> or "
                "Wire<BF16>.");
  static_assert(
      !options::scatters || !options::syncs,
      "frugal: SyncBatchNorm waits for the other processes in a layer's forward and backward "
      "pass, and so does Shard<States, Grads> for its exchanges: their order would depend on "
      "the data. Use Shard<States>.");
  using kind = kinds::replicate;
  using listens = list<around::fit, on::fit_begin, on::ready, on::fit_end, around::micro_batch>;
  using provides = list<service::reduce, service::share>;
  using strategy = DividedWindows;
  using demands = typename options::demands;
  using conflicts = typename options::conflicts;
  using canonical = Replicate<Ring>;  // a run may go on with other options

  using properties =
      std::conditional_t<options::gathers, list<property::has_ranks, property::works_in_layers>,
                         list<property::has_ranks>>;
  static constexpr About about{Term::hours_per_run,
                               "the part of the sums that backward does not hide"};

  /// The processes; null: those that the launcher has started (World::from_environment).
  std::shared_ptr<Communicator> with{};
  std::int64_t bucket_bytes = std::int64_t{25} << 20;
  /// Whether sums begin before the backward pass has ended.
  bool overlaps = true;
  /// With Shard<States, Grads, Params>: elements; smaller weights of layers are whole in each process.
  std::int64_t whole_below = std::int64_t{1} << 16;
  /// With Wire<PowerSGD<R>>: PowerSGDSettings.
  [[no_unique_address]] typename options::wire::Settings wire{};

  MicroBatches own(int micro_batches) const {
    World const& world = communicator().world();
    MicroBatches const equal = detail::equal_share(world, micro_batches, "Replicate<Ring>");
    return options::scatters ? detail::striped_share(world, equal) : equal;
  }
  Communicator& communicator() const { return detail::communicator_of(with); }
  void const* exchanges() const { return detail::exchanges_of(communicator()); }
  /// For plan_ranks.
  GradientExchange exchange() const {
    GradientExchange found{.sum = overlaps ? GradientSum::ring : GradientSum::ring_after_backward,
                           .bf16 = options::wire::type != c10::ScalarType::Undefined,
                           .shards_states = options::shards,
                           .scatters = options::scatters,
                           .power_sgd = rank(),
                           .bucket_bytes = bucket_bytes};
    if constexpr (options::wire::rank != 0) found.compression_rate = wire.min_compression_rate;
    return found;
  }

  /// Columns of PowerSGD's factors; 0 without it.
  int rank() const {
    if constexpr (options::wire::rank == 0) {
      return 0;
    } else {
      return wire.rank == 0 ? options::wire::rank : wire.rank;
    }
  }

  auto gradients(int micro_batches) const {
    detail::RingGradients::Settings const ring{.bucket = bucket_bytes,
                                               .overlaps = overlaps,
                                               .wire = options::wire::type,
                                               .micro_batches = own(micro_batches).count};
    if constexpr (options::wire::rank == 0) {
      return ring;
    } else {
      return detail::PowerSGDGradients::Settings{.ring = ring, .power = wire, .rank = rank()};
    }
  }

  template <class Context>
  struct State : detail::ring_state<Context, options> {
    State(Replicate const& settings, RecipeFacts const& facts)
        : detail::ring_state<Context, options>(settings.communicator(), settings.own(facts.batches),
                                               "Replicate<Ring>",
                                               settings.gradients(facts.batches)) {}
  };
  template <class Context>
    requires options::scatters
  struct State<Context> : detail::scattering_state<Context, options::gathers> {
    State(Replicate const& settings, RecipeFacts const& facts)
        : detail::scattering_state<Context, options::gathers>(
              settings, settings.own(facts.batches), "Replicate<Ring>", options::wire::type) {}
  };
};

}  // namespace frugal

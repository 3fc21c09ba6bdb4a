// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <frugal/cluster/agreement/joined_processes.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/divided_windows.hpp>
#include <frugal/cluster/pipeline/executor.hpp>
#include <frugal/cluster/pipeline/layers.hpp>
#include <frugal/cluster/pipeline/schedule.hpp>
#include <frugal/cluster/pipeline/state.hpp>
#include <frugal/cluster/replicate_options.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::kinds {

struct pipeline : optional_kind {
  static constexpr std::string_view name = "Pipeline";
  static constexpr std::string_view page = "cluster/pipeline.md";
  static constexpr Stage stage = Stage::transform;
  using properties = list<property::knows_ranks, property::knows_stages>;
};

}  // namespace frugal::kinds

namespace frugal::detail {

// Pipeline's demand on every policy of its recipe, user-defined policies included.

FRUGAL_DIAGNOSTIC(
    knows_no_stages,
    "frugal: with Pipeline a process has the layers of its own stages alone, and a policy of this "
    "recipe needs the whole module: Rollback, Recompute, Activations, Lora, Freeze and "
    "others. The compiler's note names the policy. Remove it or Pipeline, or write `using "
    "properties = frugal::list<frugal::property::knows_stages>;` in a policy of your own that is "
    "right with a part of the module.");

FRUGAL_DIAGNOSTIC(
    pipeline_and_replicate,
    "frugal: Pipeline and Replicate would both divide the micro-batches of a step. Remove "
    "Replicate. "
    "For several copies of a pipeline write Pipeline<OneForwardOneBackward, Exact>{.with = "
    "grid.stages, .copies = grid.data}, with a Grid.");
using PipelineConflicts = list<conflict<kinds::replicate, pipeline_and_replicate>>;

struct KnowsStages {
  using sentence = knows_no_stages;
  template <class P>
  static constexpr bool met =
      is_null<P> || is_once_per_run<typename P::kind>() || has_property<property::knows_stages, P>;
};

}  // namespace frugal::detail

namespace frugal {

namespace detail {

template <class S>
inline constexpr bool is_pipeline_schedule = false;
template <>
inline constexpr bool is_pipeline_schedule<OneForwardOneBackward> = true;
template <int V>
inline constexpr bool is_pipeline_schedule<Interleaved<V>> = true;

template <class... Options>
inline constexpr bool are_pipeline_options = sizeof...(Options) == 0;
template <>
inline constexpr bool are_pipeline_options<Exact> = true;

}  // namespace detail

/// Divides a module's layers among several processes, through which the micro-batches of a step flow:
/// for a module that does not fit into one.
///
/// The layers are those of the module's one Sequential, or of its one ModuleList over which forward
/// iterates with frugal::each; each stage is a stretch of them. Every process makes the whole module
/// from the same seed, and frees the layers of the others when the first fit begins. What is outside of
/// the list stays in all processes, and they add up its gradients.
///
/// With the option Exact and a Grid several copies of the module, each divided among `with`, share a
/// window's micro-batches, as with Replicate<Exact>: 1, 2, 4 or 8 copies come to the same bits.
///
/// Lever   memory: weights, gradients and moments of 1/p of the layers.
/// Cost    of p processes with v stages each, and `Accumulate<m>`, each waits (p - 1) / (v m + p - 1)
///         of a step, and sends an activation and a gradient for each micro-batch and stage.
/// State   a mark: a recipe without Pipeline draws other random numbers.
/// Errors  ModuleError for a module without one list of layers, for fewer trained layers than stages,
///         for a parameter that two stages share, and for an activation that is not one tensor;
///         SettingsError for `layers` or `copies` that do not fit, and for micro-batches that the copies
///         cannot share; ClusterError as Replicate has. A policy that needs the whole module does not
///         compile.
/// Source  see OneForwardOneBackward and Interleaved.
template <class Schedule = OneForwardOneBackward, class... Options>
struct Pipeline {
  static_assert(detail::is_pipeline_schedule<Schedule>,
                "frugal: Pipeline<...>: unknown schedule. Write Pipeline<OneForwardOneBackward> or "
                "Pipeline<Interleaved<2>>.");
  static_assert(
      detail::are_pipeline_options<Options...>,
      "frugal: Pipeline<Schedule, ...>: unknown option, or one twice. Its option is Exact, for "
      "several copies of the module.");
  /// Whether gradients are added up in an order that does not depend on the number of copies.
  static constexpr bool is_exact = sizeof...(Options) != 0;
  using kind = kinds::pipeline;
  using listens = list<on::module, around::fit, on::fit_begin, on::ready, on::fit_end>;
  using provides = list<service::reduce, service::share, service::execution>;
  using strategy = DividedWindows;
  using demands = list<detail::KnowsStages>;
  using conflicts = detail::PipelineConflicts;

  using properties = list<property::has_ranks, property::works_in_layers>;
  static constexpr About about{Term::memory,
                               "waits (p - 1) / (v m + p - 1) of a step, and sends activations"};

  /// The processes; null: those that the launcher has started (World::from_environment).
  std::shared_ptr<Communicator> with{};
  int chunks = Schedule::chunks;  ///< stages of each process, with Interleaved
  /// Number of layers of each stage, in the order of the list. Empty: stages have about as many
  /// parameters each. Not used by one process.
  std::vector<int> layers{};
  /// With Exact: the processes that have the same stages of the other copies, `data` of a Grid whose
  /// `stages` is `with`. Null: one copy.
  std::shared_ptr<Communicator> copies{};

  MicroBatches own(int micro_batches) const {
    if (!copies) return {.first = 0, .count = static_cast<std::uint64_t>(micro_batches)};
    return detail::exact_share(copies->world(), micro_batches, /*scatters=*/false,
                               "Pipeline<..., Exact>");
  }

  void const* exchanges() const { return detail::exchanges_of(detail::communicator_of(with)); }

  static int chunks_of(Pipeline const& settings) {
    bool const fits = std::is_same_v<Schedule, OneForwardOneBackward> ? settings.chunks == 1
                                                                      : settings.chunks >= 1;
    if (fits) return settings.chunks;
    throw SettingsError({.what = "each process has " + std::to_string(settings.chunks) + " stages",
                         .where = "Pipeline::chunks",
                         .why = "OneForwardOneBackward has one, and Interleaved at least one",
                         .fix = "Write Pipeline<Interleaved<2>> for several."});
  }

  template <class Passes>
  using Executor = detail::PipelineExecutor<Passes>;

  template <class Context>
  struct State : detail::PipelineState<Context> {
    State(Pipeline const& settings, RecipeFacts const& facts)
        : detail::PipelineState<Context>(
              detail::PipelineProcesses::of(
                  settings.with ? settings.with : detail::communicator_of_environment(),
                  settings.copies, is_exact),
              settings.own(facts.batches), chunks_of(settings), settings.layers) {}
  };
};

/// Copies the weights and buffers of a module that Pipeline has divided into `whole`, which the same
/// code has made. All processes call it together, and the first one of each copy has the result; in the
/// others `whole` may be any module of this kind, and stays as it is.
///
/// Errors  ModuleError if the module is not divided, or if `whole` has other tensors.
void gather_stages(torch::nn::Module& divided, torch::nn::Module& whole);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/pipeline.ipp>
#endif

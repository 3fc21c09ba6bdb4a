// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <type_traits>

#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/options.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/formats.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::detail {

// Replicate's demand on every policy of its recipe, user-defined policies included.

FRUGAL_DIAGNOSTIC(
    knows_no_ranks,
    "frugal: Replicate runs a recipe in several processes, and a policy of this recipe does not "
    "know of the others: it would write the same file in each, or come to another state in each. "
    "The compiler's note names the policy. Remove it or Replicate, or write `using "
    "properties = frugal::list<frugal::property::knows_ranks>;` in a policy of your own that does "
    "the same in every process.");

struct KnowsRanks {
  using sentence = knows_no_ranks;
  template <class P>
  static constexpr bool met =
      is_null<P> || is_once_per_run<typename P::kind>() || has_property<property::knows_ranks, P>;
};

}  // namespace frugal::detail

namespace frugal {

/// Option of Replicate and of Pipeline: gradients are added up in one fixed order, whatever the number of
/// processes that share a window's micro-batches.
struct Exact;

/// Of Shard: the optimizer's moments.
struct States;
/// Of Shard: the sums of gradients.
struct Grads;
/// Of Shard: the weights of layers.
struct Params;

/// Option of Replicate: each process holds one part of what is named, and all the rest is in every
/// one. `Shard<States>`: a process has the moments of its part, updates that, and collects the other
/// parts of the weights (ZeRO, stage 1). `Shard<States, Grads>`: nor does it have the sums of other
/// parts' gradients (stage 2). `Shard<States, Grads, Params>`: nor other parts of the weights of Linear,
/// Conv2d and Embedding, but while the layer computes (stage 3).
template <class... What>
struct Shard;

namespace detail {

struct shard_option {
  template <class O>
  static constexpr bool has =
      std::is_same_v<O, Shard<States>> || std::is_same_v<O, Shard<States, Grads>> ||
      std::is_same_v<O, Shard<States, Grads, Params>>;
};

/// What a recipe without Shard has.
struct NoShard;

FRUGAL_DIAGNOSTIC(
    shard_and_unfreeze,
    "frugal: Shard divides the parameters that are trained from the first step on, and Unfreeze "
    "adds others later. Remove Shard or Unfreeze.");

FRUGAL_DIAGNOSTIC(
    shard_and_alternate,
    "frugal: Shard divides the parameters that every step trains, and Alternate trains others in "
    "each turn. Remove Shard or Alternate.");

FRUGAL_DIAGNOSTIC(
    shard_and_rollback,
    "frugal: Rollback keeps a copy of the run, and with Shard each process would have its part of "
    "that alone, which no checkpoint can hold. Remove Shard or Rollback.");

FRUGAL_DIAGNOSTIC(
    not_on_parts,
    "frugal: Shard<States> gives each process a part of the elements of gradients and weights, "
    "and a policy of this recipe takes whole tensors when it clips or updates. The compiler's note "
    "names the policy. Use ClipNorm, ClipValue, and Optimize with AdamW, Adam, SGD or Adagrad, or "
    "remove Shard; in a policy of your own that treats each element by itself, write `using "
    "properties = frugal::list<frugal::property::works_on_parts>;`, and in an optimizer call "
    "`phase.collect_parts()` after the update.");

FRUGAL_DIAGNOSTIC(
    reads_weights,
    "frugal: with Shard<States, Grads, Params> a process has the weights of a layer while that "
    "computes, and a policy of this recipe reads weights at other times. The compiler's note names "
    "the policy. Remove it, or use Shard<States, Grads>; in a policy of your own that looks at no "
    "weights, write `using properties = frugal::list<frugal::property::reads_no_weights>;`.");

/// The demand of Shard<States, Grads, Params> on every policy.
struct WorksWithoutWeights {
  using sentence = reads_weights;
  template <class P>
  static constexpr bool met = is_null<P> || is_once_per_run<typename P::kind>() ||
                              has_property<property::reads_no_weights, P>;
};

using ShardConflicts = list<conflict<kinds::unfreeze, shard_and_unfreeze>,
                            conflict<kinds::alternate, shard_and_alternate>,
                            conflict<kinds::rollback, shard_and_rollback>>;

/// Shard's demand on every policy that may look at gradients.
struct WorksOnParts {
  using sentence = not_on_parts;
  template <class P>
  static constexpr bool met =
      is_null<P> || has_property<property::works_on_parts, P> ||
      !(contains<on::gradients, typename P::listens> || contains<on::update, typename P::listens>);
};

}  // namespace detail
namespace detail {

/// Of a wire that has none.
struct NoWireSettings {};

}  // namespace detail

/// Option of Replicate<Ring>: the format in which gradients travel between processes. BF16: they are
/// rounded once before the sum, and added up in this format. PowerSGD<R> (power_sgd.hpp): a matrix
/// travels as two factors.
template <class Format>
struct Wire {
  static_assert(
      std::is_same_v<Format, BF16>,
      "frugal: Wire<...> takes BF16, which has the range of float, or PowerSGD<R>: FP16 cannot "
      "hold sums of gradients that are weighted by samples. Write Wire<BF16>.");
  using Settings = detail::NoWireSettings;
  using conflicts = list<>;
  static constexpr c10::ScalarType type = detail::scalar_type_of<BF16>;
  static constexpr int rank = 0;  ///< of the factors that travel; 0: gradients do
};

namespace detail {

template <class O>
inline constexpr bool is_wire = false;
template <class Format>
inline constexpr bool is_wire<Wire<Format>> = true;

struct wire_option {
  template <class O>
  static constexpr bool has = is_wire<O>;
};

/// What a recipe without Wire sends: gradients as they are.
struct NoWire {
  using Settings = NoWireSettings;
  using conflicts = list<>;
  static constexpr c10::ScalarType type = c10::ScalarType::Undefined;
  static constexpr int rank = 0;
};

}  // namespace detail
/// Option of Replicate<Ring>: BatchNorm layers in training use the mean and the variance over the
/// micro-batches that the processes train at the same time, as torch.nn.SyncBatchNorm does.
struct SyncBatchNorm;

namespace detail {

struct sync_batch_norm_option {
  template <class O>
  static constexpr bool has = std::is_same_v<O, SyncBatchNorm>;
};

FRUGAL_DIAGNOSTIC(
    sync_batch_norm_and_recompute,
    "frugal: Recompute calls layers a second time in the backward pass, and SyncBatchNorm "
    "exchanges "
    "statistics in each call, which a process without a micro-batch would count twice. Remove one "
    "of them.");

using SyncBatchNormConflicts = list<conflict<kinds::recompute, sync_batch_norm_and_recompute>>;

}  // namespace detail
}  // namespace frugal

namespace frugal::detail {

class BatchNormStatistics;
class SyncedBatchNorms;

/// What Replicate's options say, whatever the way of adding up gradients.
template <class... Options>
struct ReplicateOptions {
  using classes = list<shard_option, wire_option, sync_batch_norm_option>;
  static constexpr bool known = options_known<classes, Options...>;
  static constexpr bool unique = options_unique<classes, Options...>;
  using shard = option_of<shard_option, NoShard, Options...>;
  static constexpr bool shards = !std::is_same_v<shard, NoShard>;
  static constexpr bool gathers = std::is_same_v<shard, Shard<States, Grads, Params>>;
  static constexpr bool scatters = gathers || std::is_same_v<shard, Shard<States, Grads>>;
  static constexpr bool syncs = (false || ... || sync_batch_norm_option::has<Options>);
  using batch_norms = std::conditional_t<syncs, SyncedBatchNorms, BatchNormStatistics>;
  using wire = option_of<wire_option, NoWire, Options...>;

  using demands = std::conditional_t<
      gathers, list<KnowsRanks, WorksOnParts, WorksWithoutWeights>,
      std::conditional_t<shards, list<KnowsRanks, WorksOnParts>, list<KnowsRanks>>>;
  using conflicts = concat<concat<std::conditional_t<shards, ShardConflicts, list<>>,
                                  std::conditional_t<syncs, SyncBatchNormConflicts, list<>>>,
                           typename wire::conflicts>;
};

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include <frugal/cluster/agreement/knows_ranks.hpp>
#include <frugal/cluster/batch_norm/statistics.hpp>
#include <frugal/cluster/batch_norm/synced_batch_norms.hpp>
#include <frugal/cluster/shard.hpp>
#include <frugal/cluster/sync_batch_norm.hpp>
#include <frugal/cluster/wire.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/options.hpp>

namespace frugal::detail {

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

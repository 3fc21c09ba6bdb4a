// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include <frugal/cluster/knows_ranks.hpp>
#include <frugal/cluster/shard.hpp>
#include <frugal/cluster/wire.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/options.hpp>

namespace frugal::detail {

/// What Replicate's options say, whatever the way of adding up gradients.
template <class... Options>
struct ReplicateOptions {
  using classes = list<shard_option, wire_option>;
  static constexpr bool known = options_known<classes, Options...>;
  static constexpr bool unique = options_unique<classes, Options...>;
  static constexpr bool shards = (false || ... || shard_option::has<Options>);
  using wire = option_of<wire_option, NoWire, Options...>;

  using demands = std::conditional_t<shards, list<KnowsRanks, WorksOnParts>, list<KnowsRanks>>;
  using conflicts =
      concat<std::conditional_t<shards, ShardConflicts, list<>>, typename wire::conflicts>;
};

}  // namespace frugal::detail

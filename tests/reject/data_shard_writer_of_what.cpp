// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: ShardWriter cannot store this type of sample.
#include <frugal/data/shards/shard_writer.hpp>

#include <vector>

#ifdef FRUGAL_REJECT
using Sample = std::vector<at::Tensor>;  // of any number
#else
using Sample = std::array<at::Tensor, 2>;
#endif

inline void add(frugal::ShardWriter& writer, Sample const& sample) { writer.add(sample); }

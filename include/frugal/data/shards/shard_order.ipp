// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/shard_order.hpp>

#include <frugal/inline.hpp>

#include <limits>
#include <utility>

namespace frugal {

FRUGAL_INLINE std::vector<std::uint64_t> blocks_of(std::uint64_t samples, std::uint64_t block) {
  std::vector<std::uint64_t> sizes(block == 0 ? 1 : samples / block, block);
  if (block == 0) sizes[0] = samples;
  if (block != 0 && samples % block != 0) sizes.push_back(samples % block);
  return sizes;
}

FRUGAL_INLINE void ShardOrder::seek(Cursor const& cursor) {
  pass_.seek(cursor);
  in_order_ = cursor.in_order;
  if (cursor.seed == cursor_.seed && cursor.epoch == cursor_.epoch) return;
  cursor_ = {.seed = cursor.seed, .epoch = cursor.epoch};
  arrange();
}

FRUGAL_INLINE std::size_t ShardOrder::shards_at_once() const {
  std::size_t most = 1;
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    most = std::max(most, ends_[i].shard - (i == 0 ? 0 : ends_[i - 1].shard));
  }
  return most;
}

FRUGAL_INLINE void ShardOrder::identify(DataIdentity& to) const {
  pass_.identify(to, "ShardOrder", loading_.shuffle);
  if (!loading_.shuffle) return;
  to.add("window", window_.samples != 0 ? std::to_string(window_.samples) + " samples"
                                        : std::to_string(window_.shards) + " shards");
  // Where each shard begins, and the number of all samples.
  to.add("shards", std::span<std::uint64_t const>(begins_));
}

FRUGAL_INLINE std::vector<std::uint64_t> ShardOrder::sums(std::vector<std::uint64_t> const& sizes) {
  std::vector<std::uint64_t> out{0};
  out.reserve(sizes.size() + 1);
  for (std::uint64_t const size : sizes) out.push_back(out.back() + size);
  return out;
}

FRUGAL_INLINE Pass ShardOrder::make_pass(std::string const& name) const {
  LoaderOptions loading = loading_;
  loading.shuffle = false;
  return Pass(begins_.back(), loading, name);
}

FRUGAL_INLINE void ShardOrder::arrange() {
  ends_.clear();
  places_.clear();
  shards_.clear();
  if (!loading_.shuffle) return;
  std::size_t const count = begins_.size() - 1;
  Permutation const order(key(0), cursor_.epoch, count);
  shards_.resize(count);
  order.fill(0, std::span(shards_));
  std::uint64_t place = 0;
  std::uint64_t const most =
      window_.samples != 0 ? std::numeric_limits<std::uint64_t>::max() : window_.shards;
  std::size_t in_window = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t const begin = ends_.empty() ? 0 : ends_.back().place;
    place += size_of(shards_[i]);
    places_.push_back(place);
    ++in_window;
    bool const full =
        in_window == most || (window_.samples != 0 && place - begin >= window_.samples);
    if (!full && i + 1 != count) continue;
    in_window = 0;
    // Empty shards alone make no window.
    if (place != begin) {
      ends_.push_back({place, i + 1});
    }
  }
  if (!ends_.empty()) ends_.back().shard = count;
}

FRUGAL_INLINE std::size_t ShardOrder::part(std::vector<End> const& ends, std::uint64_t place) {
  auto const at = std::partition_point(ends.begin(), ends.end(),
                                       [&](End const& end) { return end.place <= place; });
  return static_cast<std::size_t>(at - ends.begin());
}

}  // namespace frugal

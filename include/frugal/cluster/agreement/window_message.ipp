// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/agreement/window_message.hpp>

#include <frugal/inline.hpp>

#include <bit>
#include <string>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor WindowMessage::pack(std::vector<MicroBatchNumbers> const& own,
                                             std::vector<bool> const& has_gradient, bool preempts,
                                             bool fails, bool has_scalars, bool has_saved,
                                             WindowStamp const& stamp) const {
  at::Tensor message = at::zeros({static_cast<std::int64_t>(size())}, at::kLong);
  auto* at = message.mutable_data_ptr<std::int64_t>();
  *at++ = static_cast<std::int64_t>(own.size() | stamp.number << 32);
  *at++ =
      static_cast<std::int64_t>((preempts ? 1U : 0U) | (fails ? 2U : 0U) | (has_scalars ? 4U : 0U) |
                                (has_saved ? 8U : 0U) | stamp.place << 4);
  for (std::size_t i = 0; i < most_; ++i) {
    MicroBatchNumbers const& each = i < own.size() ? own[i] : MicroBatchNumbers{};
    *at++ = std::bit_cast<std::int64_t>(each.loss);
    *at++ = std::bit_cast<std::int64_t>(each.weight);
    *at++ = static_cast<std::int64_t>(each.samples);
    *at++ = static_cast<std::int64_t>(each.tokens);
  }
  for (std::size_t i = 0; i < has_gradient.size(); ++i) {
    if (has_gradient[i]) at[i / 63] |= std::int64_t{1} << (i % 63);
  }
  return message;
}

FRUGAL_INLINE WindowMessage::Part WindowMessage::unpack(at::Tensor const& row) const {
  auto const* at = row.const_data_ptr<std::int64_t>();
  Part part;
  auto const first = static_cast<std::uint64_t>(*at++);
  auto const flags = static_cast<std::uint64_t>(*at++);
  part.stamp = {.number = first >> 32, .place = flags >> 4};
  // More than a process has is no message of a window.
  part.micro_batches.resize(std::min<std::size_t>(first & 0xffffffff, most_));
  part.preempts = (flags & 1) != 0;
  part.fails = (flags & 2) != 0;
  part.has_scalars = (flags & 4) != 0;
  part.has_saved = (flags & 8) != 0;
  for (std::size_t i = 0; i < most_; ++i, at += 4) {
    if (i >= part.micro_batches.size()) continue;
    part.micro_batches[i] = {.loss = std::bit_cast<double>(at[0]),
                             .weight = std::bit_cast<double>(at[1]),
                             .samples = static_cast<std::uint64_t>(at[2]),
                             .tokens = static_cast<std::uint64_t>(at[3])};
  }
  part.has_gradient.resize(parameters_);
  for (std::size_t i = 0; i < parameters_; ++i) {
    part.has_gradient[i] = (at[i / 63] >> (i % 63) & 1) != 0;
  }
  return part;
}

FRUGAL_INLINE void require_one_window(Communicator& all,
                                      std::vector<WindowMessage::Part> const& parts,
                                      std::uint64_t consumed) {
  bool const same = std::ranges::all_of(
      parts, [&](WindowMessage::Part const& each) { return each.stamp == parts.front().stamp; });
  if (same) [[likely]]
    return;
  // A message has only a hash of the place. ClusterError if they are at different windows.
  at::Tensor const own = at::full({1}, static_cast<std::int64_t>(consumed), at::kLong);
  at::Tensor const read = all.gather(own, "the losses of a step");
  auto const named = [&](int rank) { return "rank " + std::to_string(all.rank_in_world(rank)); };
  std::string difference = "the number of windows differs, at " + all.place().text();
  auto const first = read[0].item<std::int64_t>();
  int rank = 1;
  while (rank + 1 < all.size() && read[rank].item<std::int64_t>() == first) ++rank;
  if (auto const there = read[rank].item<std::int64_t>(); there != first) {
    difference = "in the window at " + all.place().text() + ", " + named(rank) +
                 " has read up to sample " + std::to_string(there) + " of the epoch, and " +
                 named(0) + " up to " + std::to_string(first);
  }
  refuse_other_place(std::move(difference), all.hosts()[static_cast<std::size_t>(rank)]);
}

}  // namespace frugal::detail

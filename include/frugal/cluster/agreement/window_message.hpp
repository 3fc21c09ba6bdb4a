// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/communicator/control_frame.hpp>

namespace frugal::detail {

/// A micro-batch as it travels: its loss and counts.
struct MicroBatchNumbers {
  double loss = 0;
  double weight = 0;
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;
};

/// Which window a message is of: of all processes the same. Of the place a hash, so that messages are no
/// longer for it: they are parts of the buckets in which gradients travel.
struct WindowStamp {
  std::uint64_t number = 0;  ///< of the windows of this fit, in 32 bits
  std::uint64_t place = 0;   ///< in 60 bits
  bool operator==(WindowStamp const&) const = default;

  /// `consumed`: samples of the epoch up to the window's end, as this process has read them.
  static WindowStamp of(std::uint64_t number, PlaceInRun const& at, std::uint64_t consumed) {
    std::array<std::uint64_t, 4> const all{at.epoch, at.position, at.step, consumed};
    return {.number = number & 0xffffffff, .place = Hash::of(std::as_bytes(std::span(all))) >> 4};
  }
};

/// What a process says of its part of a window: its micro-batches, which parameters have got a
/// gradient, whether it asks for a preemption, whether it has a bad loss, whether its losses have
/// scalars, and whether it has saved a checkpoint since the window before. Of a fixed size, so that no other message has to say how long it is.
class WindowMessage {
 public:
  /// `most`: micro-batches of a process.
  WindowMessage(std::size_t most, std::size_t parameters) : most_(most), parameters_(parameters) {}

  at::Tensor pack(std::vector<MicroBatchNumbers> const& own, std::vector<bool> const& has_gradient,
                  bool preempts, bool fails, bool has_scalars = false, bool has_saved = false,
                  WindowStamp const& stamp = {}) const {
    at::Tensor message = at::zeros({static_cast<std::int64_t>(size())}, at::kLong);
    auto* at = message.mutable_data_ptr<std::int64_t>();
    *at++ = static_cast<std::int64_t>(own.size() | stamp.number << 32);
    *at++ = static_cast<std::int64_t>((preempts ? 1U : 0U) | (fails ? 2U : 0U) |
                                      (has_scalars ? 4U : 0U) | (has_saved ? 8U : 0U) |
                                      stamp.place << 4);
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

  /// A row of the gathered messages.
  struct Part {
    std::vector<MicroBatchNumbers> micro_batches{};
    std::vector<bool> has_gradient{};
    bool preempts = false;
    bool fails = false;
    bool has_scalars = false;
    bool has_saved = false;
    WindowStamp stamp{};
    /// Whether a micro-batch of it has a gradient.
    bool counts() const { return std::ranges::find(has_gradient, true) != has_gradient.end(); }
  };
  Part unpack(at::Tensor const& row) const {
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

  /// Numbers of 64 bits.
  std::size_t size() const { return 2 + 4 * most_ + (parameters_ + 62) / 63; }

 private:
  std::size_t most_;
  std::size_t parameters_;
};

/// Throws ClusterError, in every process, unless the messages are of one window. `all` have exchanged
/// `parts`, one of each in their order; `consumed`: of this process (SharedWindow).
inline void require_one_window(Communicator& all, std::vector<WindowMessage::Part> const& parts,
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace frugal::detail {

/// A micro-batch as it travels: its loss and counts.
struct MicroBatchNumbers {
  double loss = 0;
  double weight = 0;
  std::uint64_t samples = 0;
  std::uint64_t tokens = 0;
};

/// What a process says of its part of a window: its micro-batches, which parameters have got a
/// gradient, whether it asks for a preemption, whether it has a bad loss, and whether its losses have
/// scalars. Of a fixed size, so that no other message has to say how long it is.
class WindowMessage {
 public:
  /// `most`: micro-batches of a process.
  WindowMessage(std::size_t most, std::size_t parameters) : most_(most), parameters_(parameters) {}

  at::Tensor pack(std::vector<MicroBatchNumbers> const& own, std::vector<bool> const& has_gradient,
                  bool preempts, bool fails, bool has_scalars = false) const {
    at::Tensor message = at::zeros({static_cast<std::int64_t>(size())}, at::kLong);
    auto* at = message.mutable_data_ptr<std::int64_t>();
    *at++ = static_cast<std::int64_t>(own.size());
    *at++ = (preempts ? 1 : 0) | (fails ? 2 : 0) | (has_scalars ? 4 : 0);
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
    /// Whether a micro-batch of it has a gradient.
    bool counts() const { return std::ranges::find(has_gradient, true) != has_gradient.end(); }
  };
  Part unpack(at::Tensor const& row) const {
    auto const* at = row.const_data_ptr<std::int64_t>();
    Part part;
    part.micro_batches.resize(static_cast<std::size_t>(*at++));
    std::int64_t const flags = *at++;
    part.preempts = (flags & 1) != 0;
    part.fails = (flags & 2) != 0;
    part.has_scalars = (flags & 4) != 0;
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

}  // namespace frugal::detail

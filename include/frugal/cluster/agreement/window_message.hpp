// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
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
                  WindowStamp const& stamp = {}) const;

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
  Part unpack(at::Tensor const& row) const;

  /// Numbers of 64 bits.
  std::size_t size() const { return 2 + 4 * most_ + (parameters_ + 62) / 63; }

 private:
  std::size_t most_;
  std::size_t parameters_;
};

/// Throws ClusterError, in every process, unless the messages are of one window. `all` have exchanged
/// `parts`, one of each in their order; `consumed`: of this process (SharedWindow).
void require_one_window(Communicator& all, std::vector<WindowMessage::Part> const& parts,
                        std::uint64_t consumed);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/agreement/window_message.ipp>
#endif

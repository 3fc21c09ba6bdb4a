// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include <frugal/core/run/loss_accumulator.hpp>

namespace frugal::detail {

/// Flags that a device computes and the host reads `lag` windows later, without waiting.
///
/// A flag in host memory is read at once, with a lag of 0. A flag on a device is copied to
/// page-locked memory, ordered after the work that computes it, and read `lag` windows later: by
/// then it has arrived, unless the host is further ahead than that. The lag is a number of windows
/// rather than a time, so that two runs count alike.
class FlagQueue {
 public:
  explicit FlagQueue(std::size_t lag = 0) : lag_(lag) {}

  /// Enqueues this window's flag, and returns the one from `lag` windows ago: false if there is
  /// none.
  bool next(at::Tensor const& flag);

  /// Waits for flags still in flight.
  template <class Archive>
  void persist(Archive& archive) {
    std::vector<double> flags;
    if (!Archive::loading) {
      for (Waiting const& each : waiting_) flags.push_back(value(each) ? 1 : 0);
    }
    archive("waiting", flags);
    if (!Archive::loading) return;
    waiting_.clear();
    for (double const flag : flags) waiting_.push_back({.known = flag != 0});
  }

 private:
  struct Waiting {
    std::optional<bool> known{};
    std::size_t slot = 0;
  };
  /// Destination of a flag's copy. There is one more than can be in flight, allocated once and used
  /// in turn.
  struct Slot {
    at::Tensor host;
    c10::Event copied;
  };

  std::size_t begin_reading(at::Tensor const& flag);

  bool value(Waiting const& waiting) const;

  std::size_t lag_;
  std::deque<Waiting> waiting_;
  std::vector<Slot> slots_;
  std::size_t turn_ = 0;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/precision/flag_queue.ipp>
#endif

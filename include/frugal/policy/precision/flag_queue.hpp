// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include <frugal/loop/ledger.hpp>

namespace frugal::detail {

/// Flags that a device makes and the host reads `lag` windows later, so that it need not wait.
///
/// A flag of host memory is read at once, with a lag of 0. One of a device is copied to page-locked
/// memory behind the work that makes it, and looked at when the host is `lag` windows further: by
/// then it has come, unless the host runs further ahead than that. The lag is a number of windows
/// and not a matter of time, so that two runs count alike.
class FlagQueue {
 public:
  explicit FlagQueue(std::size_t lag = 0) : lag_(lag) {}

  /// Takes the flag of this window, and returns that of `lag` windows ago: false while there is
  /// none.
  bool next(at::Tensor const& flag) {
    if (lag_ == 0 && flag.is_cpu()) return host_scalar(flag) != 0;
    waiting_.push_back(begin_reading(flag));
    if (waiting_.size() <= lag_) return false;
    bool const set = value(waiting_.front());
    waiting_.pop_front();
    return set;
  }

  /// Waits for what is still on its way.
  template <class Archive>
  void persist(Archive& archive) {
    std::vector<double> flags;
    if (!Archive::loading) {
      for (Reading const& each : waiting_) flags.push_back(value(each) ? 1 : 0);
    }
    archive("waiting", flags);
    if (!Archive::loading) return;
    waiting_.clear();
    for (double const flag : flags) waiting_.push_back({at::full({}, flag, at::kFloat), {}});
  }

 private:
  struct Reading {
    at::Tensor host;
    std::optional<c10::Event> copied;
  };

  static Reading begin_reading(at::Tensor const& flag) {
    if (flag.is_cpu()) return {flag.clone(), {}};
    Reading reading{at::empty({}, flag.options().device(at::kCPU).pinned_memory(true)), {}};
    reading.host.copy_(flag, /*non_blocking=*/true);
    c10::impl::VirtualGuardImpl const device(flag.device().type());
    reading.copied.emplace(flag.device().type());
    reading.copied->record(device.getStream(flag.device()));
    return reading;
  }

  static bool value(Reading const& reading) {
    if (reading.copied) reading.copied->synchronize();
    return reading.host.item<float>() != 0.0F;
  }

  std::size_t lag_;
  std::deque<Reading> waiting_;
};

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/autocast_mode.h>

#include <utility>
#include <vector>

#include <frugal/core/libtorch/acting.hpp>

namespace frugal::detail {

/// The global state that a computation depends on, besides its inputs: generator states, autocast,
/// and whose layer hooks act.
class Surroundings {
 public:
  /// Captures the current state, of the CPU and of these devices.
  explicit Surroundings(std::vector<c10::Device> const& devices);

  /// Captures the current state, of the same devices as another one.
  static Surroundings now_like(Surroundings const& other);

  void put_back() const;

 private:
  struct OfDevice {
    c10::Device device;
    at::Generator generator;
    at::Tensor state;
    bool autocast;
    at::ScalarType type;
  };

  void add(c10::Device device);

  std::vector<OfDevice> devices_;
  bool cached_ = at::autocast::is_autocast_cache_enabled();
  void const* acting_ = acting;
};

/// For its lifetime the state is as it was `then`, for a recomputation; afterwards as it was
/// before.
class [[nodiscard]] Within {
 public:
  explicit Within(Surroundings const& then)
      : now_(Surroundings::now_like(then)), recomputed_(std::exchange(recomputing, true)) {
    then.put_back();
    at::autocast::increment_nesting();
  }
  Within(Within const&) = delete;
  Within& operator=(Within const&) = delete;
  ~Within() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    now_.put_back();
    recomputing = recomputed_;
  }

 private:
  Surroundings now_;
  bool recomputed_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/recompute/surroundings.ipp>
#endif

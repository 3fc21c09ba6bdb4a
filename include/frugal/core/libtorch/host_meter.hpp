// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace frugal::detail {

/// Counts the bytes of the process's CPU tensors, and fails allocations of one thread above a
/// limit.
///
/// Wraps LibTorch's allocator. It does not count what was allocated before its installation, and it
/// stays installed. Each block has a header of 64 bytes, which is also LibTorch's alignment; it
/// holds the size for the deallocation, in any thread. Memory that libraries below LibTorch
/// allocate for themselves (oneDNN's scratch pads) is not counted, nor is wrapped memory.
class HostMeter final : public c10::Allocator {
 public:
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  /// Throws SettingsError if another allocator has a higher priority.
  static void install();

  static std::int64_t live() { return live_.load(std::memory_order_relaxed); }
  static std::int64_t peak() { return peak_.load(std::memory_order_relaxed); }
  static void forget_peak() { peak_.store(live(), std::memory_order_relaxed); }
  /// Whether this block is counted.
  static bool counts(c10::DataPtr const& block) { return block.get_deleter() == &release; }

  /// For its lifetime, an allocation of this thread that would raise the process's live bytes above
  /// the limit throws c10::OutOfMemoryError. Nested limits: the lower one holds.
  class [[nodiscard]] Limit {
   public:
    explicit Limit(std::int64_t most) : before_(std::exchange(most_, std::min(most, most_))) {}
    Limit(Limit const&) = delete;
    Limit& operator=(Limit const&) = delete;
    ~Limit() { most_ = before_; }

   private:
    std::int64_t before_;
  };

  c10::DataPtr allocate(std::size_t bytes) override {
    if (bytes == 0) return below_->allocate(0);
    auto const size = static_cast<std::int64_t>(bytes);
    std::int64_t const now = live_.fetch_add(size, std::memory_order_relaxed) + size;
    if (now > most_) [[unlikely]] {
      live_.fetch_sub(size, std::memory_order_relaxed);
      refuse(size, now);
    }
    c10::DataPtr block;
    try {
      block = below_->allocate(bytes + in_front);
    } catch (...) {
      live_.fetch_sub(size, std::memory_order_relaxed);
      throw;
    }
    std::int64_t known = peak_.load(std::memory_order_relaxed);
    while (now > known && !peak_.compare_exchange_weak(known, now, std::memory_order_relaxed)) {
    }
    auto* const front = static_cast<std::byte*>(block.get());
    c10::DeleterFnPtr const free = block.get_deleter();
    new (front) Front{block.release_context(), free, size};
    void* const data = front + in_front;
    return {data, data, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, void const* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  struct Front {
    void* context;
    c10::DeleterFnPtr free;
    std::int64_t size;
  };
  static constexpr std::size_t in_front = 64;
  static_assert(sizeof(Front) <= in_front);

  HostMeter() = default;

  static HostMeter& instance() {
    // Never destroyed: its tensors may outlive every static.
    static HostMeter* const meter = new HostMeter;
    return *meter;
  }

  /// Whether the installed allocator forwards to this one, having been installed after it. Putting
  /// this one on top of it would recurse without end.
  static bool comes_here(c10::Allocator& other);

  static void release(void* data);

  [[noreturn]] static void refuse(std::int64_t size, std::int64_t now);

  static inline std::atomic<std::int64_t> live_{0};
  static inline std::atomic<std::int64_t> peak_{0};
  static inline thread_local std::int64_t most_ = unlimited;

  c10::Allocator* below_ = nullptr;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/host_meter.ipp>
#endif

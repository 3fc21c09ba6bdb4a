// SPDX-License-Identifier: Apache-2.0
// Peak of live tensor bytes: on the CPU from a counting allocator, on a device from its own.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace frugal_bench {

/// Counts LibTorch's CPU memory in all threads, by malloc's actual block sizes.
class CountingAllocator final : public c10::Allocator {
 public:
  /// Replaces the process's CPU allocator. Existing tensors are freed by the previous one, so call
  /// this first.
  static CountingAllocator& install() {
    static CountingAllocator allocator;
    c10::SetAllocator(c10::kCPU, &allocator, /*priority=*/100);
    return allocator;
  }

  c10::DataPtr allocate(std::size_t bytes) override {
    void* const data = c10::alloc_cpu(bytes);
    std::int64_t const now = (now_ += size_of(data));
    std::int64_t peak = peak_;
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
    return {data, data, &free, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free; }
  void copy_data(void* to, void const* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  std::int64_t now() const { return now_; }
  std::int64_t peak() const { return peak_; }
  void forget_peak() { peak_ = now_.load(); }

 private:
  static std::int64_t size_of(void* data) {
    return static_cast<std::int64_t>(malloc_usable_size(data));
  }
  static void free(void* data) {
    now_ -= size_of(data);
    c10::free_cpu(data);
  }

  static inline std::atomic<std::int64_t> now_{0};
  static inline std::atomic<std::int64_t> peak_{0};
};

/// Peak bytes on a device since construction, minus the bytes live at construction.
class PeakBytes {
 public:
  PeakBytes(CountingAllocator& host, c10::Device device) : host_(host), device_(device) {
    if (device.is_cpu()) {
      host_.forget_peak();
    } else {
      caching().resetPeakStats(index());
    }
    begin_ = at_present();
  }
  std::int64_t above_start() const {
    return (device_.is_cpu() ? host_.peak() : of_device().peak) - begin_;
  }

 private:
  c10::DeviceIndex index() const {
    return device_.has_index() ? device_.index() : c10::DeviceIndex{0};
  }
  c10::DeviceAllocator& caching() const { return *c10::getDeviceAllocator(device_.type()); }
  c10::CachingAllocator::Stat of_device() const {
    return caching().getDeviceStats(index()).allocated_bytes[0];
  }
  std::int64_t at_present() const { return device_.is_cpu() ? host_.now() : of_device().current; }

  CountingAllocator& host_;
  c10::Device device_;
  std::int64_t begin_ = 0;
};

}  // namespace frugal_bench

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <cstdint>
#include <thread>

#include <frugal/core/libtorch/host_meter.hpp>

namespace frugal_test::libtorch_host_meter {

using frugal::detail::HostMeter;

TEST_CASE("the meter counts CPU tensors to the byte, and a limit refuses larger allocations") {
  HostMeter::install();
  HostMeter::install();
  std::int64_t const before = HostMeter::live();
  {
    at::Tensor const a = at::empty({1000}, at::kByte);
    CHECK(HostMeter::live() == before + 1000);
    CHECK(reinterpret_cast<std::uintptr_t>(a.data_ptr()) % 64 == 0);
    CHECK(HostMeter::counts(a.storage().data_ptr()));
    HostMeter::Limit const limit(before + 3000);
    at::Tensor const b = at::empty({2000}, at::kByte);
    CHECK_THROWS_AS(at::empty({1}, at::kByte), c10::OutOfMemoryError);
    HostMeter::Limit const wider(before + 9000);
    CHECK_THROWS_AS(at::empty({1}, at::kByte), c10::OutOfMemoryError);
    std::thread([&] { CHECK(at::empty({5000}, at::kByte).defined()); }).join();
    CHECK(HostMeter::live() == before + 3000);
    CHECK(HostMeter::peak() >= before + 8000);
    HostMeter::forget_peak();
    CHECK(HostMeter::peak() == before + 3000);
  }
  CHECK(HostMeter::live() == before);
  at::Tensor grows = at::empty({10}, at::kByte);
  grows.resize_({100});
  CHECK(HostMeter::live() == before + 100);
  CHECK(at::empty({0}).numel() == 0);
}

/// Allocates with the previous allocator.
class Around final : public c10::Allocator {
 public:
  explicit Around(c10::Allocator* below) : below_(below) {}
  c10::DataPtr allocate(std::size_t bytes) override { return below_->allocate(bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return below_->raw_deleter(); }
  void copy_data(void* to, void const* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  c10::Allocator* below_;
};

TEST_CASE("a meter below another allocator is not installed above it") {
  HostMeter::install();
  static Around around(c10::GetCPUAllocator());
  c10::SetCPUAllocator(&around);
  HostMeter::install();
  CHECK(c10::GetCPUAllocator() == &around);
  std::int64_t const before = HostMeter::live();
  at::Tensor const tensor = at::empty({1000}, at::kByte);
  CHECK(HostMeter::live() == before + 1000);
}

}  // namespace frugal_test::libtorch_host_meter

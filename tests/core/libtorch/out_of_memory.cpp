// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <new>
#include <stdexcept>
#include <thread>

#include <frugal/core/libtorch/host_meter.hpp>
#include <frugal/core/libtorch/out_of_memory.hpp>
#include <frugal/error.hpp>

namespace frugal_test::libtorch_out_of_memory {

TEST_CASE("out-of-memory errors are recognised by type, by text, and nested in other errors") {
  auto const is = [](auto&& body) {
    try {
      body();
    } catch (...) {
      return frugal::detail::is_out_of_memory(std::current_exception());
    }
    return false;
  };
  CHECK(is([] { throw std::bad_alloc(); }));
  CHECK(is([] { TORCH_CHECK_WITH(OutOfMemoryError, false, "no"); }));
  CHECK(is([] { TORCH_CHECK(false, "DefaultCPUAllocator: can't allocate memory: you tried"); }));
  CHECK(is([] { TORCH_CHECK(false, "CUDA error: out of memory"); }));
  CHECK(is([] { TORCH_CHECK(false, "CUDNN_STATUS_ALLOC_FAILED when calling"); }));
  // The error of LibTorch 2.11 on a GPU whose NVML does not answer, instead of "out of memory".
  CHECK(is([] { TORCH_CHECK(false, "NVML_SUCCESS == r INTERNAL ASSERT FAILED at \"x.cpp\":1"); }));
  CHECK(is([] { at::empty({std::int64_t{1} << 60}, at::kByte); }));
  CHECK_FALSE(is([] { TORCH_CHECK(false, "sizes do not match"); }));
  CHECK_FALSE(is([] { throw std::runtime_error("out of memory, says somebody"); }));
  CHECK_FALSE(is([] { throw 3; }));
  CHECK(is([] {
    try {
      throw std::bad_alloc();
    } catch (...) {
      std::throw_with_nested(frugal::ModuleError({.what = "a", .where = "", .why = "", .fix = ""}));
    }
  }));
}

TEST_CASE(
    "an allocation that fails is noted, whoever catches its error, and those of other threads are "
    "not") {
  auto const fails = [] {
    try {
      at::empty({std::int64_t{1} << 60}, at::kByte);
    } catch (c10::Error const&) {
    }
  };
  frugal::detail::AllocationWatch const watch;
  std::thread(fails).join();
  at::ones({100}).sum();
  CHECK_FALSE(watch.failed());
  {
    frugal::detail::AllocationWatch const inner;
    fails();
    CHECK(inner.failed());
  }
  CHECK_FALSE(watch.failed());
  fails();
  CHECK(watch.failed());
}

TEST_CASE("the meter's own limit is noted as well") {
  frugal::detail::HostMeter::install();
  frugal::detail::AllocationWatch const watch;
  frugal::detail::HostMeter::Limit const limit(frugal::detail::HostMeter::live() + 1000);
  CHECK_THROWS_AS(at::empty({4000}, at::kByte), c10::OutOfMemoryError);
  CHECK(watch.failed());
}

}  // namespace frugal_test::libtorch_out_of_memory

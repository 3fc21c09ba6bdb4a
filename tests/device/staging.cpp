// SPDX-License-Identifier: Apache-2.0
// Repeated copies to a device through the same page-locked memory.
#include <doctest/doctest.h>

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <set>

#include <frugal/core/libtorch/staging.hpp>
#include <frugal/policy/skipped_windows.hpp>

#include "support/fake_device.hpp"

namespace frugal_test::device_staging {

using frugal::detail::FlagQueue;
using frugal::detail::Staging;

TEST_CASE("a slot is written again when its copy is done, and keeps its memory") {
  c10::impl::VirtualGuardImpl const guard(fake::type);
  c10::Stream const side = guard.getStreamFromGlobalPool(fake::device(), false);
  Staging staging(fake::type, 2);
  std::vector<at::Tensor> there;
  std::set<void const*> places;
  {
    c10::StreamGuard const on_side(side);
    for (int i = 0; i < 6; ++i) {
      std::size_t const slot = staging.open();
      at::Tensor const host = staging.locked(at::full({3}, i, at::kFloat));
      CHECK(host.is_pinned());
      places.insert(host.const_data_ptr());
      there.push_back(at::empty({3}, at::TensorOptions().device(fake::device())));
      there.back().copy_(host, /*non_blocking=*/true);
      staging.close(side);
      staging.let_wait(guard.getDefaultStream(fake::device()), slot);
    }
  }
  CHECK(places.size() == 2);
  for (int i = 0; i < 6; ++i)
    CHECK(there[static_cast<std::size_t>(i)].sum().item<double>() == 3 * i);
  guard.synchronizeDevice(0);
  CHECK(fake::complaints().empty());
}

TEST_CASE("a page-locked tensor is used directly") {
  Staging staging(fake::type, 2);
  staging.open();
  at::Tensor const locked = at::empty({3}, at::TensorOptions().pinned_memory(true));
  CHECK(staging.locked(locked).is_same(locked));
}

TEST_CASE("flags of a device arrive a lag later, through memory that is allocated once") {
  FlagQueue queue(2);
  std::size_t const before = fake::world().pinned.size();
  std::vector<bool> seen;
  for (int i = 0; i < 12; ++i) {
    seen.push_back(queue.next(at::full({}, i % 3 == 0 ? 1 : 0, at::kFloat).to(fake::device())));
    CHECK(fake::world().pinned.size() <= before + 3);
  }
  for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == (i >= 2 && (i - 2) % 3 == 0));
  CHECK(fake::complaints().empty());
}

}  // namespace frugal_test::device_staging

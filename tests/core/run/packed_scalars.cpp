// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/ATen.h>

#include <frugal/core/run/packed_scalars.hpp>

#include <cstddef>
#include <cstdint>

namespace frugal_test::run_packed_scalars {

using frugal::detail::PackedScalars;

at::Tensor number(std::size_t value) {
  return at::scalar_tensor(static_cast<double>(value), at::kFloat);
}

TEST_CASE("scalars are taken out oldest first, as doubles, over chunks") {
  PackedScalars scalars;
  constexpr std::size_t count = 2 * PackedScalars::a_chunk + 3;
  for (std::size_t i = 0; i < count; ++i) scalars.push(number(i));
  at::Tensor const all = scalars.take();
  CHECK((all.scalar_type() == at::kDouble));
  CHECK(at::equal(all, at::arange(static_cast<std::int64_t>(count), at::kDouble)));
  scalars.push(number(7));
  CHECK(scalars.take().item<double>() == 7);
}

TEST_CASE("the newest are removed, also those that are packed") {
  PackedScalars scalars;
  for (std::size_t i = 0; i < PackedScalars::a_chunk + 2; ++i) scalars.push(number(i));
  for (int i = 0; i < 5; ++i) scalars.pop();
  at::Tensor const left = scalars.take();
  CHECK(left.size(0) == static_cast<std::int64_t>(PackedScalars::a_chunk) - 3);
  CHECK(left[-1].item<double>() == static_cast<double>(PackedScalars::a_chunk) - 4);
}

TEST_CASE("cleared scalars do not come back") {
  PackedScalars scalars;
  for (std::size_t i = 0; i < PackedScalars::a_chunk + 2; ++i) scalars.push(number(i));
  scalars.clear();
  scalars.push(number(1));
  CHECK(scalars.take().numel() == 1);
}

}  // namespace frugal_test::run_packed_scalars

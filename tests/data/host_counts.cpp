// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/host_counts.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace frugal_test::data_host_counts {

struct Counted {
  at::Tensor data{};
  at::Tensor lengths{};
  at::Tensor counts{};
  void each_tensor(auto&& f) { f(data); }
};

at::Tensor numbers(std::vector<std::int64_t> const& values) {
  return at::tensor(values, at::TensorOptions(at::kLong));
}

TEST_CASE("numbers on the host are added up") {
  CHECK(frugal::detail::host_sum(numbers({})) == 0);
  CHECK(frugal::detail::host_sum(numbers({3, -100, 7})) == -90);
}

TEST_CASE("a part of a batch has its part of the lengths and counts") {
  Counted const all{
      .data = at::arange(4), .lengths = numbers({1, 2, 3, 4}), .counts = numbers({5, 6, 7, 8})};
  Counted const part = frugal::detail::narrow_with_counts(all, 1, 2);
  CHECK(at::equal(part.data, numbers({1, 2})));
  CHECK(at::equal(part.lengths, numbers({2, 3})));
  CHECK(at::equal(part.counts, numbers({6, 7})));
}

}  // namespace frugal_test::data_host_counts

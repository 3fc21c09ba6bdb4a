// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/tables/batch_columns.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

using frugal::Cell;
using frugal::Dtype;
using frugal::Numbers;
using frugal::Row;

namespace {

template <class T>
Numbers packed(Dtype dtype, std::vector<T> const& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {.dtype = dtype, .bytes = bytes};
}

at::Tensor tensor(Cell cell) { return Row({{"x", std::move(cell)}}).tensor("x"); }

bool same(at::Tensor const& a, at::Tensor const& b) {
  return a.scalar_type() == b.scalar_type() && at::equal(a, b);
}

}  // namespace

TEST_CASE("a list of numbers is a tensor of its type") {
  CHECK(same(tensor(packed<std::uint8_t>(Dtype::u8, {1, 255})), at::tensor({1, 255}, at::kByte)));
  CHECK(same(tensor(packed<std::int16_t>(Dtype::i16, {-1, 7})), at::tensor({-1, 7}, at::kShort)));
  CHECK(same(tensor(packed<float>(Dtype::f32, {0.5F, -2.0F})), at::tensor({0.5F, -2.0F})));
  CHECK(same(tensor(packed<std::int64_t>(Dtype::i64, {})), at::empty({0}, at::kLong)));
  CHECK(
      same(tensor(packed<std::uint8_t>(Dtype::boolean, {1, 0})), at::tensor({1, 0}).to(at::kBool)));
}

TEST_CASE("unsigned integers above 8 bits are widened, and checked at 64") {
  CHECK(same(tensor(packed<std::uint16_t>(Dtype::u16, {65535, 1})),
             at::tensor({65535, 1}, at::kInt)));
  CHECK(same(tensor(packed<std::uint32_t>(Dtype::u32, {4294967295U})),
             at::tensor({std::int64_t{4294967295}}, at::kLong)));
  CHECK(same(tensor(packed<std::uint64_t>(Dtype::u64, {7})),
             at::tensor({std::int64_t{7}}, at::kLong)));
  CHECK_THROWS_AS(tensor(packed<std::uint64_t>(Dtype::u64, {std::uint64_t{1} << 63})),
                  frugal::DataError);
}

TEST_CASE("bytes, numbers and booleans are tensors, and the rest is not") {
  CHECK(same(tensor(std::string("\1\xff")), at::tensor({1, 255}, at::kByte)));
  CHECK(same(tensor(std::int64_t{7}), at::scalar_tensor(7, at::kLong)));
  CHECK(same(tensor(0.5), at::scalar_tensor(0.5, at::kFloat)));
  CHECK(same(tensor(true), at::scalar_tensor(true, at::kBool)));
  CHECK_THROWS_AS(tensor(Cell()), frugal::DataError);
  CHECK_THROWS_WITH_AS(tensor(std::vector<std::string>{"a"}), doctest::Contains("a list of texts"),
                       frugal::DataError);
}

TEST_CASE("a number beyond float32 is no tensor of it") {
  CHECK_THROWS_WITH_AS(tensor(1e300), doctest::Contains("row 0, column x"), frugal::DataError);
  CHECK(std::isinf(tensor(std::numeric_limits<double>::infinity()).item<float>()));
}

using frugal::Batch;
using frugal::BatchColumns;
using frugal::Cell;
using frugal::Row;

TEST_CASE(
    "integers up to 2^24 are joined as float32, and those beyond are refused with their row") {
  BatchColumns const columns{.data = {"id", "x"}};
  auto const rows = [](std::int64_t id) {
    return std::vector<Row>{Row({{"id", Cell(id)}, {"x", Cell(0.5)}}),
                            Row({{"id", Cell(std::int64_t{0})}, {"x", Cell(1.5)}})};
  };
  for (std::int64_t const id : {16777216, -16777216}) {
    Batch const batch = columns(rows(id));
    CHECK(batch.data[0][0].item<double>() == static_cast<double>(id));
    CHECK(batch.data[1][1].item<double>() == 1.5);
  }
  for (std::int64_t const id :
       {std::int64_t{16777217}, std::int64_t{-16777217}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    CHECK_THROWS_WITH_AS(columns(rows(id)), doctest::Contains("row 0 and others"),
                         frugal::DataError);
    CHECK(BatchColumns{.data = {"id"}}(rows(id)).data[0].item<std::int64_t>() == id);
  }
}

TEST_CASE("a column of doubles becomes float32, but no number becomes infinite") {
  BatchColumns const columns{.data = {"x"}};
  double const infinity = std::numeric_limits<double>::infinity();
  at::Tensor const good = at::tensor({0.25, -infinity}, at::kDouble);
  CHECK(at::equal(columns.batch({good}, {}).data, at::tensor({0.25F, -float(infinity)})));
  CHECK_THROWS_WITH_AS(columns.batch({at::tensor({0.5, 1e300}, at::kDouble)}, {}, "a.parquet"),
                       doctest::Contains("(a.parquet, column x): it is 1e+300"), frugal::DataError);
  BatchColumns const labelled{.data = {"x"}, .target = "y"};
  CHECK_THROWS_WITH_AS(labelled.batch({good}, at::tensor({0.5, -1e300}, at::kDouble)),
                       doctest::Contains("column y"), frugal::DataError);
}

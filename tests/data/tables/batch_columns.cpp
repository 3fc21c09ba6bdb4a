// SPDX-License-Identifier: Apache-2.0
#include <frugal/data/tables/batch_columns.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <vector>

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

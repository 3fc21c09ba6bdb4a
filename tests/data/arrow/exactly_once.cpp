// SPDX-License-Identifier: Apache-2.0
// needs: arrow
// The matrix of tests/data/loading/matrix.cpp for rows of Parquet and CSV files.
#include "data/loading/exactly_once.hpp"

#include <frugal/data/arrow/csv.hpp>
#include <frugal/data/arrow/parquet_batches.hpp>
#include <frugal/data/arrow/parquet_set.hpp>
#include <frugal/data/arrow/parquet_writer.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace frugal_test::arrow_matrix {

using exactly_once::check_set;
using exactly_once::check_source;
using support::TemporaryFolder;

/// Two files with row groups of 7 rows.
std::filesystem::path parquet() {
  static TemporaryFolder const folder;
  static bool const written = [] {
    for (std::int64_t file = 0; file < 2; ++file) {
      frugal::ParquetWriter writer(folder / (file == 0 ? "a.parquet" : "b.parquet"),
                                   {.rows_per_group = 7});
      for (std::int64_t i = 0; i < 25; ++i)
        writer.add(frugal::Row({{"n", frugal::Cell(25 * file + i)}}));
      writer.close();
    }
    return true;
  }();
  REQUIRE(written);
  return folder.path();
}

/// With a cache of two groups or so, so that groups come and go between the workers.
struct ParquetCase {
  static auto set() { return frugal::ParquetSet(parquet(), {.cache_bytes = 150}); }
  static std::int64_t id(frugal::Row const& row) { return row.integer("n"); }
};

struct CsvCase {
  static auto set() {
    static TemporaryFolder const folder;
    static bool const written = [] {
      std::ofstream file(folder / "a.csv");
      file << "n\n";
      for (int i = 0; i < 41; ++i) file << i << '\n';
      return true;
    }();
    REQUIRE(written);
    return frugal::read_csv(folder / "a.csv");
  }
  static std::int64_t id(frugal::Row const& row) { return row.integer("n"); }
};

TEST_CASE_TEMPLATE("a table gives each row once, with any workers, kills and world sizes", Case,
                   ParquetCase, CsvCase) {
  check_set<Case>();
}

TEST_CASE("batches of columns give each row once, however the run is killed") {
  check_source(
      50, true,
      [](frugal::LoaderOptions loading) {
        return frugal::ParquetBatches({parquet()}, {.data = {"n"}, .target = "n"}, loading);
      },
      [](frugal::Batch const& batch) {
        CHECK(at::equal(batch.data, batch.target));
        auto const* const first = static_cast<std::int64_t const*>(batch.target.const_data_ptr());
        return exactly_once::Ids(first, first + batch.target.numel());
      });
}

}  // namespace frugal_test::arrow_matrix

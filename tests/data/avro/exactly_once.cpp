// SPDX-License-Identifier: Apache-2.0
// needs: avro
// The matrix of tests/data/loading/matrix.cpp for rows of Avro files.
#include "data/loading/exactly_once.hpp"

#include <frugal/data/avro/avro_set.hpp>
#include <frugal/data/avro/avro_writer.hpp>

#include <support/files.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace frugal_test::avro_matrix {

/// A file of blocks of 7 rows, and a cache of one or two of them.
struct AvroCase {
  static auto set() {
    static support::TemporaryFolder const folder;
    static bool const written = [] {
      frugal::AvroWriter writer(folder / "a.avro", R"("long")", {.block_bytes = 7});
      for (std::int64_t i = 0; i < 47; ++i) writer.add(frugal::Row({{"value", frugal::Cell(i)}}));
      writer.close();
      return true;
    }();
    REQUIRE(written);
    return frugal::AvroSet(folder / "a.avro", {.cache_bytes = 100});
  }
  static std::int64_t id(frugal::Row const& row) { return row.integer("value"); }
};

TEST_CASE("an Avro file gives each row once, with any workers, kills and world sizes") {
  exactly_once::check_set<AvroCase>();
}

}  // namespace frugal_test::avro_matrix

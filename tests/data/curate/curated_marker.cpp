// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/curate/curated_marker.hpp>

#include "support/files.hpp"

#include <fstream>
#include <string>

namespace frugal_test::data_curate_curated_marker {

TEST_CASE("a mark lies next to a file, and within a folder") {
  support::TemporaryFolder folder;
  std::ofstream(folder / "x.txt") << "x";
  CHECK(frugal::curated_marker_of(folder / "x.txt") == folder / "x.txt.curated");
  CHECK(frugal::curated_marker_of(folder.path()) == folder / ".curated");
}

TEST_CASE("a mark reads as it was written, and the last one counts") {
  support::TemporaryFolder folder;
  CHECK(!frugal::curated_mark(folder.path()));
  frugal::mark_curated(folder.path(), {.name = "a \"b\"\n", .why = ""});
  frugal::mark_curated(folder.path(), {.name = "gold", .why = "Zoë chose\n1 by 1"});
  auto const mark = frugal::curated_mark(folder.path());
  REQUIRE(mark);
  CHECK(mark->name == "gold");
  CHECK(mark->why == "Zoë chose\n1 by 1");
  CHECK(support::entries(folder.path()) == 1);
}

TEST_CASE("a marker that cannot be understood is an error, and no permission") {
  support::TemporaryFolder folder;
  for (std::string const text :
       {"", "gold", "{}", R"({"format":"frugal curated","name":""})",
        R"({"format":"frugal curated"})", R"({"format":"x","name":"gold"})"}) {
    std::ofstream(folder / ".curated") << text;
    CHECK_THROWS_AS(frugal::curated_mark(folder.path()), frugal::FormatError);
  }
}

TEST_CASE("a mark needs a name and a place") {
  support::TemporaryFolder folder;
  CHECK_THROWS_AS(frugal::mark_curated(folder.path(), {}), frugal::SettingsError);
  CHECK_THROWS_AS(frugal::mark_curated(folder / "no" / "file", {.name = "x", .why = ""}),
                  frugal::StoreError);
}

}  // namespace frugal_test::data_curate_curated_marker

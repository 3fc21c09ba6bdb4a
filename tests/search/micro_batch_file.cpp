// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/search/micro_batch_file.hpp>

#include "support/files.hpp"

#include <cstdint>

namespace frugal_test::search_micro_batch_file {

using frugal::detail::MicroBatchFile;
using support::TemporaryFolder;

std::int64_t read(MicroBatchFile const& file) {
  std::int64_t samples = -1;
  file.read_into(samples);
  return samples;
}

TEST_CASE("an architecture has the micro-batch that was found for it, and no other one") {
  TemporaryFolder folder;
  MicroBatchFile const wide(folder.path(), "width 64"), narrow(folder.path(), "width 8");
  CHECK(read(wide) == -1);
  wide.write(16, true);
  CHECK(read(wide) == 16);
  CHECK(read(narrow) == -1);
  narrow.write(0, true);
  CHECK(read(narrow) > 1'000'000);  // the whole batch, and nothing to search for
}

TEST_CASE("a search that was cut short writes nothing, and memory that ran out later does") {
  TemporaryFolder folder;
  MicroBatchFile const file(folder.path(), "width 64");
  file.write(1, false);
  CHECK(read(file) == -1);
  file.write(16, true);
  file.write(32, false);
  CHECK(read(file) == 16);
  file.write(0, false);
  CHECK(read(file) == 16);
  file.write(8, false);
  CHECK(read(file) == 8);
}

}  // namespace frugal_test::search_micro_batch_file

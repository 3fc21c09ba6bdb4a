// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/doctor/disk.hpp>

#include "support/files.hpp"

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace frugal_test::doctor_disk {

using frugal::doctor::Disk;
using frugal::doctor::probe_disk;
using frugal_test::support::entries;
using frugal_test::support::TemporaryFolder;

TEST_CASE("a folder's disk is written and read, and nothing is left") {
  TemporaryFolder const folder;
  for (std::uint64_t const bytes : {std::uint64_t{4096}, (std::uint64_t{8} << 20) + 512}) {
    Disk const disk = probe_disk(folder.path(), {.bytes = bytes});
    CHECK(disk.why_not == "");
    CHECK(disk.bytes == bytes);
    CHECK(disk.write_rate() > 0);
    CHECK(disk.read_rate() > 0);
    CHECK(disk.free > 0);
    CHECK(disk.file_system != "");
    CHECK(entries(folder.path()) == 0);
  }
}

TEST_CASE("a disk without time for all bytes is measured by fewer") {
  TemporaryFolder const folder;
  Disk const disk = probe_disk(folder.path(), {.bytes = std::uint64_t{16} << 20, .seconds = 0});
  CHECK(disk.why_not == "");
  CHECK(disk.bytes == 0);
  CHECK(disk.write_rate() == 0);
}

TEST_CASE("what is no folder, or cannot be written, is a reason and no error") {
  TemporaryFolder const folder;
  CHECK(probe_disk(folder / "none").why_not == "No such file or directory");
  std::ofstream(folder / "file") << "x";
  CHECK(probe_disk(folder / "file").why_not == "it is not a folder");
  CHECK(probe_disk("/proc/self").why_not != "");
  CHECK(probe_disk("").why_not != "");
}

TEST_CASE("a disk without room is not filled") {
  TemporaryFolder const folder;
  Disk const disk = probe_disk(folder.path(), {.bytes = std::uint64_t{1} << 60});
  CHECK(disk.why_not.find("MiB are free") != std::string::npos);
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("a file of the same name is not touched") {
  TemporaryFolder const folder;
  std::string const name = ".frugal_doctor-" + std::to_string(::getpid());
  std::ofstream(folder / name) << "mine";
  CHECK(probe_disk(folder.path(), {.bytes = 4096}).why_not == "File exists");
  CHECK(frugal_test::support::text_of(folder / name) == "mine");
}

TEST_CASE("file systems have names, and unknown ones a number") {
  CHECK(frugal::doctor::detail::file_system_name(0xEF53) == "ext4");
  CHECK(frugal::doctor::detail::file_system_name(0x01021994) == "tmpfs");
  CHECK(frugal::doctor::detail::file_system_name(0x12345) == "0x12345");
}

}  // namespace frugal_test::doctor_disk

// SPDX-License-Identifier: Apache-2.0
// The code of docs/checkpoint/archive.md, as a test; separate from the other pages because it needs
// libarchive.
#include <doctest/doctest.h>

#include "support/checkpoints.hpp"
#include "support/files.hpp"

#include <filesystem>
#include <iostream>

// [begin call]
#include <frugal/checkpoint/archive.hpp>

namespace fr = frugal;

void archive_old_ones(std::filesystem::path const& folder, fr::ColdStorage const& storage,
                      std::chrono::hours older_than) {
  fr::RunDirectory run(folder, fr::Access::maintain);
  fr::Archive archive(run, storage, {.older_than = older_than, .dry_run = false});
  fr::ArchiveReport const report = archive.move();
  for (fr::SavedCheckpoint const& each : report.moved) std::cout << each.folder << " is moved\n";
  for (fr::Damage const& each : report.stayed) std::cout << each.folder << ": " << each.why << '\n';
}
// [end call]

// [begin command]
fr::ColdCommand const s3{.put = {"aws", "s3", "cp", "{file}", "s3://bucket/demo/{name}"},
                         .get = {"aws", "s3", "cp", "s3://bucket/demo/{name}", "{file}"},
                         .verify = {}};
// [end command]

namespace frugal_test::docs_archive {

TEST_CASE("docs/checkpoint/archive.md: its calls move old checkpoints and restore them") {
  support::TemporaryFolder folder;
  fr::ColdFolder const cold{folder / "cold"};
  std::filesystem::create_directory(cold.folder);
  {
    fr::RunDirectory run(folder / "demo");
    for (std::uint64_t step = 1; step <= 3; ++step) support::save(run, step);
  }
  archive_old_ones(folder / "demo", cold, std::chrono::hours(24 * 90));
  CHECK(fr::RunDirectory(folder / "demo", fr::Access::read).list().whole.size() == 3);
  archive_old_ones(folder / "demo", cold, std::chrono::hours(0));
  fr::RunDirectory run(folder / "demo");
  CHECK(run.list().whole.size() == 1);
  // [begin restore]
  fr::SavedCheckpoint const restored = fr::Archive(run, cold).restore(2);
  // [end restore]
  CHECK_NOTHROW(fr::verify(restored));
  CHECK_NOTHROW(fr::detail::require_usable(s3));
}

}  // namespace frugal_test::docs_archive

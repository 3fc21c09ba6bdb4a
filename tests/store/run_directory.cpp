// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/store/run_directory.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>

namespace frugal_test::store_run_directory {

using frugal::Access;
using frugal::RunDirectory;
using frugal::SavedCheckpoint;
using support::save;
using support::TemporaryFolder;

TEST_CASE("a run directory is made with all folders above it, and starts without a checkpoint") {
  TemporaryFolder folder;
  RunDirectory run(folder / "runs" / "demo");
  CHECK(std::filesystem::is_directory(folder / "runs" / "demo" / "checkpoints"));
  CHECK_FALSE(run.newest_valid().checkpoint.has_value());
  CHECK(run.notes().empty());
}

TEST_CASE("a run directory is refused to a second trainer and open to readers") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  save(run, 7);
  CHECK_THROWS_AS(RunDirectory(folder / "run"), frugal::LockError);
  CHECK_THROWS_AS(RunDirectory(folder / "run", Access::maintain), frugal::LockError);
  RunDirectory reader(folder / "run", Access::read);
  CHECK(reader.newest_valid().checkpoint->step() == 7);
}

TEST_CASE("who reads changes nothing") {
  TemporaryFolder folder;
  {
    RunDirectory run(folder / "run");
  }
  std::filesystem::create_directory(folder / "run" / "checkpoints" / ".tmp-step-00000001-1-0");
  RunDirectory reader(folder / "run", Access::read);
  CHECK(std::filesystem::exists(folder / "run" / "checkpoints" / ".tmp-step-00000001-1-0"));
  CHECK_THROWS_AS(reader.begin(1), frugal::StoreError);
  CHECK_THROWS_AS(reader.remove({}), frugal::StoreError);
}

TEST_CASE("a run that is not there is not made for readers or maintenance") {
  TemporaryFolder folder;
  CHECK_THROWS_AS(RunDirectory(folder / "none", Access::read), frugal::IoError);
  CHECK_THROWS_AS(RunDirectory(folder / "none", Access::maintain), frugal::IoError);
  CHECK_FALSE(std::filesystem::exists(folder / "none"));
}

TEST_CASE("what a crash left is removed at the next start, and nothing else") {
  TemporaryFolder folder;
  {
    RunDirectory run(folder / "run");
    save(run, 7);
    auto const left = run.checkpoints_folder() / ".tmp-step-00000008-99-0";
    std::filesystem::create_directory(left);
    support::write_text(left / "model.safetensors", "half");
    std::filesystem::create_directory(run.checkpoints_folder() / ".snapshots");
    support::write_text(run.checkpoints_folder() / "notes", "mine");
  }
  RunDirectory run(folder / "run");
  REQUIRE(run.notes().size() == 1);
  CHECK(run.notes()[0].find(".tmp-step-00000008-99-0 was left by a crash and is removed") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(run.checkpoints_folder() / ".tmp-step-00000008-99-0"));
  CHECK(std::filesystem::exists(run.checkpoints_folder() / ".snapshots"));
  CHECK(std::filesystem::exists(run.checkpoints_folder() / "notes"));
  CHECK(run.newest_valid().checkpoint->step() == 7);
}

TEST_CASE("a damaged checkpoint is reported and the one before it used") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  save(run, 1);
  save(run, 2);
  support::flip_bit(save(run, 3).folder / "model.safetensors", 9);
  std::filesystem::remove(save(run, 4).folder / "manifest.json");
  auto const newest = run.newest_valid();
  CHECK(newest.checkpoint->step() == 2);
  REQUIRE(newest.damaged.size() == 2);
  CHECK(newest.damaged[0].folder.filename() == "step-00000004");
  CHECK(newest.damaged[1].folder.filename() == "step-00000003");
  CHECK(newest.damaged[1].why.find("model.safetensors") != std::string::npos);
}

TEST_CASE("a run of which every checkpoint is damaged has none, and says so of each") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  support::flip_bit(save(run, 1).folder / "state.json", 9);
  support::flip_bit(save(run, 2).folder / "manifest.json", 9);
  auto const newest = run.newest_valid();
  CHECK_FALSE(newest.checkpoint.has_value());
  CHECK(newest.damaged.size() == 2);
}

TEST_CASE("saves are numbered on after a restart, so that the later save of a step wins") {
  TemporaryFolder folder;
  std::uint64_t before = 0;
  {
    RunDirectory run(folder / "run");
    save(run, 1);
    before = save(run, 2).manifest.serial;
  }
  RunDirectory run(folder / "run");
  CHECK(save(run, 1).manifest.serial == before + 1);
}

TEST_CASE("a checkpoint that was known to be whole is not believed once a file of it was touched") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint const checkpoint = save(run, 1);
  CHECK(run.holds(checkpoint));
  support::flip_bit(checkpoint.folder / "state.json", 9);
  CHECK_FALSE(run.holds(checkpoint));
  support::flip_bit(checkpoint.folder / "state.json", 9);
  CHECK(run.holds(checkpoint));
}

TEST_CASE("gold is not removed, even when it was marked after the list was made") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint const one = save(run, 1);
  SavedCheckpoint const two = save(run, 2);
  support::write_text(one.folder / "gold", "");
  auto const removed = run.remove({one, two});
  REQUIRE(removed.size() == 1);
  CHECK(removed[0].step() == 2);
  REQUIRE(run.list().whole.size() == 1);
  CHECK(run.list().whole[0].gold);
}

std::size_t descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] auto const& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST_CASE("a thousand saves and resumes leave no descriptor and no temporary behind") {
  TemporaryFolder folder;
  std::size_t const before = descriptors();
  for (std::uint64_t step = 1; step <= 1000; ++step) {
    RunDirectory run(folder / "run");
    auto const newest = run.newest_valid();
    REQUIRE(newest.damaged.empty());
    REQUIRE((step == 1 || newest.checkpoint->step() == step - 1));
    save(run, step);
    if (newest.checkpoint) run.remove({*newest.checkpoint});
  }
  CHECK(descriptors() == before);
  auto const checkpoints = folder / "run" / "checkpoints";
  CHECK(std::distance(std::filesystem::directory_iterator(checkpoints), {}) == 1);
}

}  // namespace frugal_test::store_run_directory

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/checkpoint/run_directory.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>

namespace {
std::string unlink_refuses;  ///< a name that another process holds open
bool fsync_fails = false;
}  // namespace

// Replaces the C library's.
extern "C" int unlinkat(int folder, char const* path, int flags) noexcept {
  if (!unlink_refuses.empty() && path == unlink_refuses) {
    errno = EBUSY;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_unlinkat, folder, path, flags));
}
extern "C" int fsync(int descriptor) {
  if (fsync_fails) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}

namespace frugal_test::store_run_directory {

using frugal::Access;
using frugal::RunDirectory;
using frugal::SavedCheckpoint;
using support::save;
using support::TemporaryFolder;

TEST_CASE("a run directory is created with all parent folders, and starts without a checkpoint") {
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

TEST_CASE("reading changes nothing") {
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

TEST_CASE("a missing run is not created for readers or maintenance") {
  TemporaryFolder folder;
  CHECK_THROWS_AS(RunDirectory(folder / "none", Access::read), frugal::IoError);
  CHECK_THROWS_AS(RunDirectory(folder / "none", Access::maintain), frugal::IoError);
  CHECK_FALSE(std::filesystem::exists(folder / "none"));
}

TEST_CASE("remains of a crash are removed at the next start, and nothing else") {
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
  CHECK(run.notes()[0].find(".tmp-step-00000008-99-0 is a remnant of a crash and was removed") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(run.checkpoints_folder() / ".tmp-step-00000008-99-0"));
  CHECK(std::filesystem::exists(run.checkpoints_folder() / ".snapshots"));
  CHECK(std::filesystem::exists(run.checkpoints_folder() / "notes"));
  CHECK(run.newest_valid().checkpoint->step() == 7);
}

TEST_CASE("a damaged checkpoint is reported and the previous one used") {
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

TEST_CASE("a run with only damaged checkpoints has none, and reports each") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  support::flip_bit(save(run, 1).folder / "state.json", 9);
  support::flip_bit(save(run, 2).folder / "manifest.json", 9);
  auto const newest = run.newest_valid();
  CHECK_FALSE(newest.checkpoint.has_value());
  CHECK(newest.damaged.size() == 2);
}

TEST_CASE("serials continue after a restart, so that the later save of a step wins") {
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

/// Forges a manifest: another serial, with the matching hash.
void reseal(std::filesystem::path const& folder, std::uint64_t serial) {
  frugal::Manifest manifest = frugal::read_checkpoint(folder).manifest;
  manifest.serial = serial;
  support::write_text(folder / "manifest.json", manifest.text());
}

TEST_CASE("a serial beyond the largest is damage, and counting continues without it") {
  TemporaryFolder folder;
  {
    RunDirectory run(folder / "run");
    save(run, 1);
    reseal(save(run, 2).folder, frugal::Manifest::largest_serial + 1);
  }
  RunDirectory run(folder / "run");
  CHECK(run.newest_valid().checkpoint->step() == 1);
  CHECK(run.list().damaged.size() == 1);
  CHECK(save(run, 3).manifest.serial == 2);
}

TEST_CASE("after the largest serial no save is made that could not be read again") {
  TemporaryFolder folder;
  {
    RunDirectory run(folder / "run");
    reseal(save(run, 2).folder, frugal::Manifest::largest_serial);
  }
  RunDirectory run(folder / "run");
  CHECK(run.newest_valid().checkpoint->step() == 2);
  CHECK_THROWS_WITH_AS(run.begin(3), doctest::Contains("no serial number"), frugal::StoreError);
}

TEST_CASE("a checkpoint known to be valid is verified again after a file of it was touched") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint const checkpoint = save(run, 1);
  CHECK(run.holds(checkpoint));
  support::flip_bit(checkpoint.folder / "state.json", 9);
  CHECK_FALSE(run.holds(checkpoint));
  support::flip_bit(checkpoint.folder / "state.json", 9);
  CHECK(run.holds(checkpoint));
}

TEST_CASE("gold is not removed, even if it was marked after the list was made") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint const one = save(run, 1);
  SavedCheckpoint const two = save(run, 2);
  support::write_text(one.folder / "gold", "");
  auto const removal = run.remove({one, two});
  REQUIRE(removal.removed.size() == 1);
  CHECK(removal.removed[0].step() == 2);
  CHECK(removal.left.empty());
  REQUIRE(run.list().whole.size() == 1);
  CHECK(run.list().whole[0].gold);
}

/// All files in a folder, by path.
std::map<std::string, std::string> tree_of(std::filesystem::path const& folder) {
  std::map<std::string, std::string> tree;
  for (auto const& entry : std::filesystem::recursive_directory_iterator(folder)) {
    tree[entry.path().string()] = entry.is_regular_file() ? support::text_of(entry.path()) : "";
  }
  return tree;
}

TEST_CASE("a run whose folder was renamed does not touch the run that has the name now") {
  TemporaryFolder folder;
  RunDirectory old(folder / "a");
  SavedCheckpoint const one = save(old, 1);
  frugal::CheckpointWriter under_way = old.begin(2);
  under_way.add("state.json", [](auto& sink) { sink.write(support::bytes_of("{}")); });
  std::filesystem::rename(folder / "a", folder / "was");
  {
    RunDirectory next(folder / "a");
    save(next, 1);
    save(next, 2);
    auto const before = tree_of(folder / "a");
    CHECK_THROWS_AS(old.begin(3), frugal::LockError);
    CHECK_THROWS_AS(old.commit(under_way), frugal::LockError);
    CHECK_THROWS_AS(old.remove({one}), frugal::LockError);
    CHECK_THROWS_WITH_AS(old.require_lock(), doctest::Contains((folder / "a").string().c_str()),
                         frugal::LockError);
    CHECK(tree_of(folder / "a") == before);
  }
  CHECK(RunDirectory(folder / "was", Access::read).list().whole.size() == 1);
}

TEST_CASE("a checkpoint whose files cannot be deleted no longer counts, and is reported once") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint const one = save(run, 1);
  SavedCheckpoint const two = save(run, 2);
  SavedCheckpoint const three = save(run, 3);
  unlink_refuses = "model.safetensors";
  auto const first = run.remove({one, two});
  auto const again = run.remove({three});
  unlink_refuses.clear();
  CHECK(first.removed.size() == 2);
  REQUIRE(first.left.size() == 2);
  CHECK(first.left[0].why == "Device or resource busy");
  CHECK(first.left[0].folder.filename().string().starts_with(".tmp-step-00000001-"));
  CHECK(run.list().whole.empty());
  CHECK(again.removed.size() == 1);
  CHECK(again.left.size() == 3);
  CHECK(run.take_leftovers().size() == 3);
  CHECK(run.take_leftovers().empty());
}

TEST_CASE("files that could not be deleted are deleted by the next call that can") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint const one = save(run, 1);
  unlink_refuses = "model.safetensors";
  run.remove({one});
  unlink_refuses.clear();
  CHECK(support::entries(run.checkpoints_folder()) == 1);
  CHECK(run.remove({}).left.empty());
  CHECK(support::entries(run.checkpoints_folder()) == 0);
}

TEST_CASE(
    "a checkpoint that cannot be renamed stays, is reported, and does not hinder the others") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint one = save(run, 1);
  SavedCheckpoint const two = save(run, 2);
  // A name has at most 255 bytes, and deleting needs a longer one.
  auto const long_name = run.checkpoints_folder() / std::string(250, 'x');
  std::filesystem::rename(one.folder, long_name);
  one.folder = long_name;
  auto const removal = run.remove({one, two});
  REQUIRE(removal.removed.size() == 1);
  CHECK(removal.removed[0].step() == 2);
  REQUIRE(removal.left.size() == 1);
  CHECK(removal.left[0].folder == long_name);
  CHECK(removal.left[0].why == "File name too long");
  CHECK(run.holds(one));
}

TEST_CASE("files stay as long as the disk may still have their folder's name") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint const one = save(run, 1);
  fsync_fails = true;
  auto const removal = run.remove({one});
  fsync_fails = false;
  REQUIRE(removal.left.size() == 1);
  CHECK(support::entries(removal.left[0].folder) == 4);
}

TEST_CASE("gold that lost its name in a crash is not removed at the next start") {
  TemporaryFolder folder;
  {
    RunDirectory run(folder / "run");
    SavedCheckpoint const one = save(run, 1);
    support::write_text(one.folder / "gold", "");
    std::filesystem::rename(one.folder, run.checkpoints_folder() / ".tmp-step-00000001-1-0");
  }
  RunDirectory run(folder / "run");
  CHECK(support::entries(run.checkpoints_folder() / ".tmp-step-00000001-1-0") == 5);
  REQUIRE(run.notes().size() == 1);
  CHECK(run.notes()[0].find("gold") != std::string::npos);
}

std::size_t descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] auto const& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST_CASE("a thousand saves and resumes leak no descriptor and no temporary") {
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

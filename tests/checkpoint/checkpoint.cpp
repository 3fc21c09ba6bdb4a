// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/checkpoint/checkpoint.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace frugal_test::store_checkpoint {

using frugal::RunDirectory;
using frugal::SavedCheckpoint;
using support::save;
using support::TemporaryFolder;

std::vector<std::uint64_t> steps_of(std::vector<SavedCheckpoint> const& checkpoints) {
  std::vector<std::uint64_t> steps;
  for (SavedCheckpoint const& checkpoint : checkpoints) steps.push_back(checkpoint.step());
  return steps;
}

/// Whether reading the manifest or verifying the files detects a change to a checkpoint.
bool is_found(std::filesystem::path const& folder) {
  try {
    frugal::verify(frugal::read_checkpoint(folder));
  } catch (frugal::StoreError const& error) {
    return frugal::detail::is_damage(error);
  }
  return false;
}

TEST_CASE("every flipped bit in any file of a checkpoint is detected") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint const checkpoint = save(run, 500, {{"loss", 0.5}});
  CHECK_FALSE(is_found(checkpoint.folder));
  std::size_t flips = 0;
  for (auto const& file : std::filesystem::directory_iterator(checkpoint.folder)) {
    for (std::size_t bit = 0; bit < 8 * file.file_size(); ++bit, ++flips) {
      support::flip_bit(file.path(), bit);
      CAPTURE(file.path());
      CAPTURE(bit);
      CHECK(is_found(checkpoint.folder));
      support::flip_bit(file.path(), bit);
    }
  }
  CHECK(flips > 3500);
  CHECK_FALSE(is_found(checkpoint.folder));
}

TEST_CASE(
    "every file of a checkpoint that is truncated at any byte, or longer by one, is detected") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint const checkpoint = save(run, 500, {{"loss", 0.5}});
  for (auto const& file : std::filesystem::directory_iterator(checkpoint.folder)) {
    std::string const whole = support::text_of(file.path());
    for (std::size_t size = 0; size < whole.size(); ++size) {
      support::write_text(file.path(), whole.substr(0, size));
      CAPTURE(file.path());
      CAPTURE(size);
      CHECK(is_found(checkpoint.folder));
    }
    support::write_text(file.path(), whole + '\0');
    CHECK(is_found(checkpoint.folder));
    support::write_text(file.path(), whole);
  }
  CHECK_FALSE(is_found(checkpoint.folder));
}

TEST_CASE("a file that is missing, a folder or a pipe is detected without blocking") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  for (std::string const name : {"model.safetensors", "manifest.json"}) {
    CAPTURE(name);
    SavedCheckpoint const checkpoint = save(run, 500);
    std::filesystem::remove(checkpoint.folder / name);
    CHECK(is_found(checkpoint.folder));
    std::filesystem::create_directory(checkpoint.folder / name);
    CHECK(is_found(checkpoint.folder));
    std::filesystem::remove(checkpoint.folder / name);
    REQUIRE(::mkfifo((checkpoint.folder / name).c_str(), 0600) == 0);
    CHECK(is_found(checkpoint.folder));
  }
}

TEST_CASE("a manifest of absurd size is not read") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint const checkpoint = save(run, 500);
  std::filesystem::resize_file(checkpoint.folder / "manifest.json", std::uintmax_t{1} << 40);
  CHECK(is_found(checkpoint.folder));
}

TEST_CASE("the error of a damaged file names the file and both hashes") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint const checkpoint = save(run, 500);
  support::flip_bit(checkpoint.folder / "state.json", 3);
  try {
    frugal::verify(checkpoint);
    FAIL("not found");
  } catch (frugal::FormatError const& error) {
    CHECK(error.fault().where == (checkpoint.folder / "state.json").string());
    CHECK(error.fault().why.find(frugal::hex_of(checkpoint.manifest.files.back().hash)) !=
          std::string::npos);
  }
}

TEST_CASE("large files are read in parallel, and the first damaged one is named") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  frugal::CheckpointWriter writer = run.begin(500);
  std::string const text(std::size_t{frugal::detail::worth_a_thread}, 'w');
  for (char const* const name : {"a", "b", "c"}) {
    writer.add(name, [&](auto& sink) { sink.write(support::bytes_of(text)); });
  }
  SavedCheckpoint const checkpoint = run.commit(writer);
  CHECK_NOTHROW(frugal::verify(checkpoint));
  auto const named = [&] {
    try {
      frugal::verify(checkpoint);
      return std::string("nothing");
    } catch (frugal::FormatError const& error) {
      return std::filesystem::path(error.fault().where).filename().string();
    }
  };
  support::flip_bit(checkpoint.folder / "c", 8 * 70'000 + 1);
  CHECK(named() == "c");
  support::flip_bit(checkpoint.folder / "b", 5);
  CHECK(named() == "b");
}

TEST_CASE("files that the manifest does not name are ignored") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint const checkpoint = save(run, 500);
  support::write_text(checkpoint.folder / "notes.txt", "mine");
  CHECK_NOTHROW(frugal::verify(frugal::read_checkpoint(checkpoint.folder)));
}

TEST_CASE("checkpoints are listed newest first by the order in which they were saved") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  // At step 20 the run went back to step 3: what follows is the run.
  for (std::uint64_t const step : {3U, 20U, 5U}) save(run, step);
  CHECK(steps_of(run.list().whole) == std::vector<std::uint64_t>{5, 20, 3});
}

TEST_CASE("the names of folders do not decide which checkpoint is the newest") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  std::filesystem::rename(save(run, 3).folder, run.checkpoints_folder() / "zero loss");
  std::filesystem::rename(save(run, 20).folder, run.checkpoints_folder() / "best so far");
  auto const list = run.list();
  CHECK(steps_of(list.whole) == std::vector<std::uint64_t>{20, 3});
  CHECK(list.whole[0].folder.filename() == "best so far");
}

TEST_CASE("a folder whose name has another step than its manifest is damaged, and both are named") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  std::filesystem::rename(save(run, 3).folder, run.checkpoints_folder() / "step-00000999");
  std::filesystem::rename(save(run, 4).folder, run.checkpoints_folder() / "step-00000999.2");
  // Copies made by users, with their own names.
  for (std::string const name : {"step-5", "step-00000005.2", "step-00000999-copy", "step-", "5"}) {
    std::filesystem::rename(save(run, 5).folder, run.checkpoints_folder() / name);
  }
  auto const list = run.list();
  CHECK(list.whole.size() == 5);
  REQUIRE(list.damaged.size() == 2);
  CHECK(list.damaged[0].why.find("it is of step 3, and the folder's name says 999") !=
        std::string::npos);
}

TEST_CASE("neither times of files nor the time in the manifest decide which is the newest") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint const early = save(run, 3);
  SavedCheckpoint const late = save(run, 20);
  auto const now = std::filesystem::file_time_type::clock::now();
  for (auto const& file : std::filesystem::directory_iterator(late.folder)) {
    std::filesystem::last_write_time(file.path(), now - std::chrono::hours(24 * 365 * 40));
  }
  std::filesystem::last_write_time(late.folder, now - std::chrono::hours(24 * 365 * 40));
  frugal::Manifest manifest = late.manifest;
  manifest.saved_at = 1;  // the clock had been set back
  support::write_text(late.folder / "manifest.json", manifest.text());
  CHECK(steps_of(run.list().whole) == std::vector<std::uint64_t>{20, 3});
}

TEST_CASE("a folder without a manifest is reported, and the others are listed") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  save(run, 3);
  std::filesystem::create_directory(run.checkpoints_folder() / "step-00000009");
  support::write_text(run.checkpoints_folder() / "a file", "");
  auto const list = run.list();
  CHECK(steps_of(list.whole) == std::vector<std::uint64_t>{3});
  REQUIRE(list.damaged.size() == 1);
  CHECK(list.damaged[0].folder.filename() == "step-00000009");
  CHECK(list.damaged[0].why.find("No such file") != std::string::npos);
}

TEST_CASE("a checkpoint of a newer library is not silently skipped") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  save(run, 3);
  SavedCheckpoint const newer = save(run, 20);
  std::string const body = "{\"format\": \"frugal checkpoint\", \"version\": 2";
  support::write_text(newer.folder / "manifest.json",
                      body + ",\n  \"xxh3\": \"" +
                          frugal::hex_of(frugal::Hash::of(support::bytes_of(body))) + "\"\n}\n");
  CHECK_THROWS_AS(run.list(), frugal::NewerFormatError);
  CHECK_THROWS_AS(run.newest_valid(), frugal::NewerFormatError);
}

TEST_CASE("errors that say nothing about a checkpoint are not damage") {
  using frugal::detail::io_error;
  for (int const code : {EMFILE, ENFILE, EACCES, ENOMEM, ESTALE}) {
    CHECK_FALSE(frugal::detail::is_damage(io_error("open", "x", code)));
  }
  for (int const code : {EIO, ENOENT}) {
    CHECK(frugal::detail::is_damage(io_error("open", "x", code)));
  }
}

}  // namespace frugal_test::store_checkpoint

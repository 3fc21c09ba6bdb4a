// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/checkpoint/commit.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::store_commit {

using frugal::CheckpointWriter;
using frugal::RunDirectory;
using frugal::SavedCheckpoint;
using support::bytes_of;
using support::save;
using support::TemporaryFolder;

std::set<std::string> names_in(std::filesystem::path const& folder) {
  std::set<std::string> names;
  for (auto const& entry : std::filesystem::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

auto filling(std::string text) {
  return [text = std::move(text)](auto& sink) { sink.write(bytes_of(text)); };
}

TEST_CASE("a committed checkpoint stands under its step, with its files and a manifest of them") {
  TemporaryFolder folder;
  CheckpointWriter writer(folder.path(), 500, 1);
  writer.add("model.safetensors", filling("weights"));
  writer.add("empty", [](auto&) {});
  SavedCheckpoint const checkpoint = writer.commit({{"loss", 0.25}});
  CHECK(checkpoint.folder == folder / "step-00000500");
  CHECK(names_in(folder.path()) == std::set<std::string>{"step-00000500"});
  CHECK(names_in(checkpoint.folder) ==
        std::set<std::string>{"empty", "manifest.json", "model.safetensors"});
  CHECK(support::text_of(checkpoint.folder / "model.safetensors") == "weights");
  SavedCheckpoint const read = frugal::read_checkpoint(checkpoint.folder);
  CHECK(read.manifest.text() == checkpoint.manifest.text());
  CHECK(read.manifest.metrics.at("loss") == 0.25);
  frugal::verify(read);
}

TEST_CASE("steps of more than eight digits have names too") {
  TemporaryFolder folder;
  CHECK(CheckpointWriter(folder.path(), 123'456'789'012, 1).commit().folder.filename() ==
        "step-123456789012");
}

TEST_CASE("nothing of a checkpoint is visible before its commit") {
  TemporaryFolder folder;
  CheckpointWriter writer(folder.path(), 500, 1);
  writer.add("a", filling("x"));
  CHECK(frugal::list_checkpoints(folder.path()).whole.empty());
  CHECK(frugal::list_checkpoints(folder.path()).damaged.empty());
}

TEST_CASE("a writer without commit leaves nothing") {
  TemporaryFolder folder;
  auto const throwing = [&] {
    CheckpointWriter writer(folder.path(), 500, 1);
    writer.add("a", filling("x"));
    CheckpointWriter moved = std::move(writer);
    moved.add("b", [](auto&) { throw std::runtime_error("no more"); });
  };
  CHECK_THROWS_AS(throwing(), std::runtime_error);
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("a step that is saved again is replaced, and nothing of the older save stays") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  SavedCheckpoint const first = save(run, 500, {{"loss", 2.0}});
  SavedCheckpoint const second = save(run, 500, {{"loss", 1.0}});
  CHECK(second.folder == first.folder);
  CHECK(second.manifest.serial > first.manifest.serial);
  CHECK(names_in(run.checkpoints_folder()) == std::set<std::string>{"step-00000500"});
  CHECK(run.newest_valid().checkpoint->manifest.metrics.at("loss") == 1.0);
}

TEST_CASE(
    "a gold checkpoint is not replaced when its step is saved again, and the later one wins") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  support::write_text(save(run, 500, {{"loss", 2.0}}).folder / "gold", "");
  save(run, 500, {{"loss", 1.0}});
  CHECK(names_in(run.checkpoints_folder()) ==
        std::set<std::string>{"step-00000500", "step-00000500.2"});
  CHECK(run.newest_valid().checkpoint->manifest.metrics.at("loss") == 1.0);
}

TEST_CASE("a folder that is not a checkpoint keeps its name and its contents") {
  TemporaryFolder folder;
  RunDirectory run(folder / "run");
  auto const theirs = run.checkpoints_folder() / "step-00000500";
  std::filesystem::create_directory(theirs);
  std::ofstream(theirs / "thesis.tex") << "years of work";
  SavedCheckpoint const checkpoint = save(run, 500);
  CHECK(checkpoint.folder.filename() == "step-00000500.2");
  CHECK(support::text_of(theirs / "thesis.tex") == "years of work");
}

TEST_CASE("a file name that leads elsewhere, or is taken, is refused") {
  TemporaryFolder folder;
  CheckpointWriter writer(folder.path(), 500, 1);
  writer.add("a", filling("x"));
  for (std::string const name : {"a", "", ".", "..", ".hidden", "b/c", "/etc/passwd",
                                 "manifest.json", "gold", "line\nbreak", "no utf-8 \xff"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(writer.add(name, filling("y")), frugal::StoreError);
  }
  CHECK(writer.commit().manifest.files.size() == 1);
}

TEST_CASE("files that other processes have written there are adopted as they were described") {
  TemporaryFolder folder;
  CheckpointWriter writer(folder.path(), 500, 1);
  frugal::FileEntry const entry =
      CheckpointWriter::write(writer.folder(), "theirs", filling("abc"), 3);
  CHECK(entry.size == 3);
  writer.add("a", filling("x"));
  CHECK_THROWS_AS(writer.adopt(entry, "a"), frugal::StoreError);
  frugal::FileEntry longer = entry;
  longer.size = 4;
  CHECK_THROWS_WITH_AS(writer.adopt(longer, "b"),
                       doctest::Contains("it has 3 bytes here, and 4 there"), frugal::StoreError);
  CHECK_THROWS_AS(writer.adopt({.name = "missing", .size = 3, .hash = 0}, "b"), frugal::StoreError);
  // Names that lead elsewhere: that file is not moved into the checkpoint.
  std::ofstream(folder / "thesis.tex") << "abc";
  std::filesystem::create_symlink(folder / "thesis.tex", writer.folder() / "link");
  for (std::string const& name : std::vector<std::string>{
           "../thesis.tex", (folder / "thesis.tex").string(), "link", "", ".."}) {
    CAPTURE(name);
    CHECK_THROWS_WITH_AS(writer.adopt({.name = name, .size = 3, .hash = entry.hash}, "b"),
                         doctest::Contains("another process names a part of a checkpoint"),
                         frugal::StoreError);
  }
  CHECK(support::text_of(folder / "thesis.tex") == "abc");
  std::filesystem::remove(writer.folder() / "link");
  writer.adopt(entry, "b");
  SavedCheckpoint const saved = writer.commit();
  frugal::verify(frugal::read_checkpoint(saved.folder));
  CHECK((names_in(saved.folder) == std::set<std::string>{"a", "b", "manifest.json"}));
  CHECK(support::text_of(saved.folder / "b") == "abc");
}

TEST_CASE("commit returns what the next start reads") {
  TemporaryFolder folder;
  RunDirectory run(folder / "demo");
  double const infinite = std::numeric_limits<double>::infinity();
  auto const given =
      support::save(run, 5, {{"loss", 0.1}, {"worst", infinite}, {"no utf-8 \xff", 2.0}});
  auto const read = frugal::read_checkpoint(given.folder);
  CHECK(read.manifest.text() == given.manifest.text());
  CHECK(std::isnan(given.manifest.metrics.at("worst")));
  CHECK(given.manifest.metrics.at("no utf-8 \xef\xbf\xbd") == 2.0);
}

TEST_CASE("a checkpoint is committed once") {
  TemporaryFolder folder;
  CheckpointWriter writer(folder.path(), 500, 1);
  writer.commit();
  CHECK_THROWS_AS(writer.commit(), frugal::StoreError);
  CHECK_THROWS_AS(writer.add("late", filling("x")), frugal::StoreError);
}

}  // namespace frugal_test::store_commit

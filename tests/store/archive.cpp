// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
#include <doctest/doctest.h>

#include <frugal/store/archive.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace frugal_test::store_archive {

using frugal::Archive;
using frugal::ArchiveSettings;
using frugal::ColdCommand;
using frugal::ColdFolder;
using frugal::RunDirectory;
using frugal::SavedCheckpoint;
using support::save;
using support::TemporaryFolder;
using namespace std::chrono_literals;

using Steps = std::vector<std::uint64_t>;

/// A hundred days from now: everything that a test saves is old then.
std::chrono::system_clock::time_point later() {
  return std::chrono::system_clock::now() + 24h * 100;
}

constexpr ArchiveSettings for_real{.older_than = 24h * 90, .dry_run = false, .level = 3};

Steps steps_of(std::vector<SavedCheckpoint> const& checkpoints) {
  Steps steps;
  for (SavedCheckpoint const& checkpoint : checkpoints) steps.push_back(checkpoint.step());
  return steps;
}

std::set<std::string> names_in(std::filesystem::path const& folder) {
  std::set<std::string> names;
  for (auto const& path : frugal::entries_of(folder)) names.insert(path.filename().string());
  return names;
}

/// A run with checkpoints of steps 1 to 4.
struct Run {
  Run() {
    for (std::uint64_t step = 1; step <= 4; ++step) save(run, step, {{"loss", 1.0 / double(step)}});
  }
  std::filesystem::path of(std::uint64_t step) const {
    return run.checkpoints_folder() / frugal::detail::step_name(step);
  }

  TemporaryFolder folder;
  RunDirectory run{folder / "demo"};
  std::filesystem::path cold = folder / "cold";
};

ColdCommand copying(std::filesystem::path const& cold) {
  std::filesystem::create_directories(cold);
  return {.put = {"cp", "{file}", cold.string() + "/{name}"},
          .get = {"cp", cold.string() + "/{name}", "{file}"},
          .verify = {}};
}

TEST_CASE("by default nothing is moved, and what would be is said") {
  Run t;
  Archive archive(t.run, ColdFolder{t.cold});
  CHECK(steps_of(archive.move(later()).moved) == Steps{1, 2, 3});
  CHECK(steps_of(t.run.list().whole) == Steps{4, 3, 2, 1});
  CHECK_FALSE(std::filesystem::exists(t.cold));
  CHECK_FALSE(std::filesystem::exists(t.run.folder() / "archive"));
}

TEST_CASE("a dry run needs no lock") {
  Run t;
  RunDirectory reader(t.run.folder(), frugal::Access::read);
  CHECK(steps_of(Archive(reader, ColdFolder{t.cold}).move(later()).moved) == Steps{1, 2, 3});
  CHECK_THROWS_AS(Archive(reader, ColdFolder{t.cold}, for_real).move(later()), frugal::StoreError);
}

TEST_CASE("only what is older than the limit is moved") {
  Run t;
  auto const now = std::chrono::system_clock::now();
  CHECK(Archive(t.run, ColdFolder{t.cold}).plan(now).empty());
  CHECK(Archive(t.run, ColdFolder{t.cold}).plan(now + 24h * 89).empty());
  CHECK(Archive(t.run, ColdFolder{t.cold}).plan(now + 24h * 91).size() == 3);
  CHECK(Archive(t.run, ColdFolder{t.cold}, {.older_than = 0s, .dry_run = true, .level = 3})
            .plan(now + 1s)
            .size() == 3);
}

TEST_CASE("moved checkpoints are gone here, there in one file each, and in the index") {
  Run t;
  Archive archive(t.run, ColdFolder{t.cold}, for_real);
  CHECK(steps_of(archive.move(later()).moved) == Steps{1, 2, 3});
  CHECK(steps_of(t.run.list().whole) == Steps{4});
  auto const entries = archive.list();
  REQUIRE(entries.size() == 3);
  std::set<std::string> names;
  for (auto const& entry : entries) {
    names.insert(entry.name);
    CHECK(std::filesystem::file_size(t.cold / entry.name) == entry.size);
    CHECK(frugal::detail::hash_of(t.cold / entry.name) == entry.hash);
  }
  CHECK(names_in(t.cold) == names);
  CHECK(names_in(t.run.folder() / "archive") == std::set<std::string>{"index.json"});
  CHECK(archive.move(later()).moved.empty());
}

TEST_CASE("what is moved to a folder and restored is what it was, byte for byte") {
  Run t;
  std::string const manifest = support::text_of(t.of(2) / "manifest.json");
  Archive archive(t.run, ColdFolder{t.cold}, for_real);
  archive.move(later());
  SavedCheckpoint const restored = archive.restore(2);
  CHECK(restored.folder == t.of(2));
  CHECK(support::text_of(t.of(2) / "manifest.json") == manifest);
  for (auto const& [name, text] : support::contents_of(2)) {
    CHECK(support::text_of(t.of(2) / name) == text);
  }
  CHECK(names_in(t.of(2)).size() == 4);
  CHECK(steps_of(t.run.list().whole) == Steps{4, 2});
  CHECK(archive.restore(2).folder == t.of(2));  // once is enough
}

TEST_CASE("what is moved by a command and restored by one is what it was") {
  Run t;
  Archive archive(t.run, copying(t.folder / "a cold place"), for_real);
  CHECK(archive.move(later()).moved.size() == 3);
  CHECK(names_in(t.folder / "a cold place").size() == 3);
  SavedCheckpoint const restored = archive.restore(1);
  CHECK_NOTHROW(frugal::verify(restored));
  CHECK(names_in(t.run.folder() / "archive") == std::set<std::string>{"index.json"});
}

TEST_CASE("gold never moves") {
  Run t;
  support::write_text(t.of(2) / "gold", "");
  CHECK(steps_of(Archive(t.run, ColdFolder{t.cold}, for_real).move(later()).moved) == Steps{1, 3});
  CHECK(std::filesystem::exists(t.of(2)));
}

TEST_CASE("the newest valid checkpoint never moves, also when newer ones are damaged") {
  Run t;
  support::flip_bit(t.of(4) / "model.safetensors", 7);
  support::flip_bit(t.of(3) / "manifest.json", 7);
  CHECK(steps_of(Archive(t.run, ColdFolder{t.cold}, for_real).move(later()).moved) == Steps{1});
  CHECK(t.run.newest_valid().checkpoint->step() == 2);
}

TEST_CASE("nothing moves from a run without a valid checkpoint") {
  Run t;
  for (std::uint64_t step = 1; step <= 4; ++step) support::flip_bit(t.of(step) / "state.json", 3);
  CHECK(Archive(t.run, ColdFolder{t.cold}, for_real).move(later()).moved.empty());
}

TEST_CASE("a damaged checkpoint is reported and stays, and the others are moved") {
  Run t;
  support::flip_bit(t.of(2) / "optimizer.safetensors", 3);
  auto const report = Archive(t.run, ColdFolder{t.cold}, for_real).move(later());
  CHECK(steps_of(report.moved) == Steps{1, 3});
  REQUIRE(report.damaged.size() == 1);
  CHECK(report.damaged[0].folder == t.of(2));
  CHECK(std::filesystem::exists(t.of(2)));
  CHECK(names_in(t.cold).size() == 2);
}

TEST_CASE("storage that loses a byte is found out before anything is deleted") {
  Run t;
  auto storage = copying(t.cold);
  storage.put = {"sh", "-c",     "head -c -1 \"$1\" > \"$2\"",
                 "sh", "{file}", t.cold.string() + "/{name}"};
  Archive archive(t.run, storage, for_real);
  CHECK_THROWS_AS(archive.move(later()), frugal::FormatError);
  CHECK(steps_of(t.run.list().whole) == Steps{4, 3, 2, 1});
  CHECK(archive.list().empty());
}

TEST_CASE("a command that fails is an error with what it said, and nothing is deleted") {
  Run t;
  auto storage = copying(t.cold);
  storage.put = {"sh", "-c", "echo quota of {name} exceeded >&2; exit 7", "{file}"};
  try {
    Archive(t.run, storage, for_real).move(later());
    FAIL("moved");
  } catch (frugal::StoreError const& error) {
    CHECK(error.fault().why.find("exit code 7, and it said \"quota of step-00000001-") !=
          std::string::npos);
  }
  CHECK(steps_of(t.run.list().whole) == Steps{4, 3, 2, 1});
  CHECK(names_in(t.run.folder() / "archive").empty());
}

TEST_CASE("a command that does nothing and says that it did is found out") {
  Run t;
  auto storage = copying(t.cold);
  storage.put = {"true", "{file}", "{name}"};
  CHECK_THROWS_AS(Archive(t.run, storage, for_real).move(later()), frugal::StoreError);
  CHECK(steps_of(t.run.list().whole) == Steps{4, 3, 2, 1});
}

TEST_CASE("storage is verified by the user's command where there is one") {
  Run t;
  auto storage = copying(t.cold);
  storage.get = {};
  storage.verify = {"cmp", "{file}", t.cold.string() + "/{name}"};
  Archive archive(t.run, storage, for_real);
  CHECK(archive.move(later()).moved.size() == 3);
  CHECK_THROWS_AS(archive.restore(1), frugal::SettingsError);
}

TEST_CASE("nothing is deleted when the user's command does not verify") {
  Run t;
  auto storage = copying(t.cold);
  storage.verify = {"false", "{name}"};
  CHECK_THROWS_AS(Archive(t.run, storage, for_real).move(later()), frugal::StoreError);
  CHECK(steps_of(t.run.list().whole) == Steps{4, 3, 2, 1});
}

TEST_CASE("storage that nothing could be read back from is refused at once") {
  Run t;
  auto storage = copying(t.cold);
  storage.get = {};
  CHECK_THROWS_AS(Archive(t.run, storage), frugal::SettingsError);
  CHECK_THROWS_AS(Archive(t.run, ColdCommand{.put = {"cp"}, .get = {"cp"}, .verify = {}}),
                  frugal::SettingsError);
  CHECK_THROWS_AS(Archive(t.run, ColdFolder{}), frugal::SettingsError);
  CHECK_THROWS_AS(
      Archive(t.run, ColdFolder{t.cold}, {.older_than = 1h, .dry_run = true, .level = 99}),
      frugal::SettingsError);
}

TEST_CASE("a step that is not in cold storage cannot be restored") {
  Run t;
  CHECK_THROWS_AS(Archive(t.run, ColdFolder{t.cold}).restore(9), frugal::StoreError);
}

TEST_CASE("every bit that is flipped in an archived file is found, and nothing is restored") {
  Run t;
  Archive archive(t.run, ColdFolder{t.cold}, for_real);
  archive.move(later());
  auto const entry = archive.list().back();
  std::size_t const bits = 8 * entry.size;
  for (std::size_t bit = 0; bit < bits; bit += 5) {
    support::flip_bit(t.cold / entry.name, bit);
    CAPTURE(bit);
    CHECK_THROWS_AS(archive.restore(entry.step), frugal::FormatError);
    support::flip_bit(t.cold / entry.name, bit);
  }
  CHECK(names_in(t.run.checkpoints_folder()) == std::set<std::string>{"step-00000004"});
  CHECK(archive.restore(entry.step).step() == entry.step);
}

TEST_CASE(
    "a packed file that is damaged anywhere never crashes its reader nor passes for another") {
  Run t;
  auto const packed = t.folder / "packed";
  frugal::detail::pack(t.run.list().whole[0], packed, 3);
  std::string const whole = support::text_of(packed);
  auto const read = [&] {
    frugal::detail::unpack(packed, [](auto const&) { return [](auto) {}; });
  };
  for (std::size_t bit = 0; bit < 8 * whole.size(); bit += 3) {
    support::flip_bit(packed, bit);
    CAPTURE(bit);
    // Some bits of the container carry nothing; where it reads, all hashes were right.
    try {
      read();
    } catch (frugal::StoreError const&) {
    }
    support::flip_bit(packed, bit);
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    support::write_text(packed, whole.substr(0, size));
    CAPTURE(size);
    try {
      read();
    } catch (frugal::StoreError const&) {
    }
  }
  support::write_text(packed, whole);
  CHECK_NOTHROW(read());
}

/// A tar file with entries that no writer of ours makes.
template <class Fill>
std::filesystem::path hostile(std::filesystem::path const& path, SavedCheckpoint const& checkpoint,
                              Fill&& fill) {
  frugal::File file = frugal::File::create(path);
  frugal::detail::TarWriter writer(file, path, 3);
  std::string const manifest = support::text_of(checkpoint.folder / "manifest.json");
  writer.begin("manifest.json", manifest.size(), 0);
  writer.write(support::bytes_of(manifest));
  fill(writer);
  writer.finish();
  return path;
}

TEST_CASE("an archive with files that its manifest does not list writes nothing anywhere") {
  Run t;
  SavedCheckpoint const checkpoint = t.run.list().whole[0];
  for (std::string const name : {"../escaped", "/tmp/frugal-escaped", "gold", "manifest.json"}) {
    CAPTURE(name);
    auto const path = hostile(t.folder / "hostile", checkpoint, [&](auto& writer) {
      writer.begin(name, 3, 0);
      writer.write(support::bytes_of("bad"));
    });
    CHECK_THROWS_AS(frugal::detail::unpack_to(path, t.run.checkpoints_folder()),
                    frugal::FormatError);
    std::filesystem::remove(path);
  }
  CHECK_FALSE(std::filesystem::exists(t.run.folder() / "escaped"));
  CHECK_FALSE(std::filesystem::exists(t.run.checkpoints_folder() / "escaped"));
  CHECK(names_in(t.run.checkpoints_folder()).size() == 4);
}

TEST_CASE("an archive that lacks a file, or has one of another size, is damaged") {
  Run t;
  SavedCheckpoint const checkpoint = t.run.list().whole[0];
  auto const nothing = hostile(t.folder / "one", checkpoint, [](auto&) {});
  auto const large = hostile(t.folder / "two", checkpoint, [](auto& writer) {
    std::string const zeros(1 << 20, '\0');
    writer.begin("model.safetensors", zeros.size(), 0);
    writer.write(support::bytes_of(zeros));
  });
  for (auto const& path : {nothing, large}) {
    CHECK_THROWS_AS(frugal::detail::unpack_to(path, t.run.checkpoints_folder()),
                    frugal::FormatError);
  }
}

TEST_CASE("the same checkpoint packs to the same bytes") {
  Run t;
  SavedCheckpoint const checkpoint = t.run.list().whole[0];
  auto const one = frugal::detail::pack(checkpoint, t.folder / "one", 3);
  auto const two = frugal::detail::pack(checkpoint, t.folder / "two", 3);
  CHECK(one.hash == two.hash);
  CHECK(one.name == two.name);
}

TEST_CASE("the program tar reads what is archived") {
  Run t;
  auto const packed = t.folder / "packed.tar.zst";
  frugal::detail::pack(t.run.list().whole[0], packed, 3);
  std::filesystem::create_directory(t.folder / "out");
  // libarchive's compression, undone by the reader of libarchive and by no code of ours.
  frugal::detail::run_command(
      {"tar", "-C", (t.folder / "out").string(), "--zstd", "-xf", packed.string()});
  CHECK(names_in(t.folder / "out") == std::set<std::string>{"manifest.json", "model.safetensors",
                                                            "optimizer.safetensors", "state.json"});
  CHECK_NOTHROW(frugal::verify(frugal::read_checkpoint(t.folder / "out")));
}

}  // namespace frugal_test::store_archive

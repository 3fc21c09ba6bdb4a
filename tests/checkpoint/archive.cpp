// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
#include "support/checkpoints.hpp"
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/checkpoint/archive.hpp>

#include <sys/stat.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::store_archive_index {

using frugal::ArchivedCheckpoint;
using frugal::ArchiveIndex;
using support::TemporaryFolder;

ArchivedCheckpoint entry(std::string name, std::uint64_t step, std::uint64_t serial = 1) {
  return {.name = std::move(name),
          .step = step,
          .serial = serial,
          .size = 77,
          .hash = 0x00fedcba98765432,
          .saved_at = 1'700'000'000,
          .moved_at = 1'710'000'000};
}

std::vector<std::string> names_of(ArchiveIndex const& index) {
  std::vector<std::string> names;
  for (auto const& each : index.entries()) names.push_back(each.name);
  return names;
}

TEST_CASE("a missing index is empty") {
  TemporaryFolder folder;
  CHECK(ArchiveIndex(folder / "index.json").entries().empty());
}

TEST_CASE("an entry is there when the index is opened again") {
  TemporaryFolder folder;
  ArchiveIndex(folder / "index.json").put(entry("one \"quoted\" \xc3\xa9.tar.zst", 5, 3));
  ArchiveIndex const index(folder / "index.json");
  REQUIRE(index.entries().size() == 1);
  auto const& read = index.entries()[0];
  CHECK(read.name == "one \"quoted\" \xc3\xa9.tar.zst");
  CHECK(read.step == 5);
  CHECK(read.serial == 3);
  CHECK(read.size == 77);
  CHECK(read.hash == 0x00fedcba98765432);
  CHECK(read.saved_at == 1'700'000'000);
  CHECK(read.moved_at == 1'710'000'000);
}

TEST_CASE("the newest comes first, of one step the later save") {
  TemporaryFolder folder;
  ArchiveIndex index(folder / "index.json");
  for (auto const& each :
       {entry("b", 20, 2), entry("c", 30, 9), entry("d", 20, 8), entry("a", 1)}) {
    index.put(each);
  }
  std::vector<std::string> const expected = {"c", "d", "b", "a"};
  CHECK(names_of(index) == expected);
  CHECK(names_of(ArchiveIndex(folder / "index.json")) == expected);
}

TEST_CASE("an entry with the same name is replaced") {
  TemporaryFolder folder;
  ArchiveIndex index(folder / "index.json");
  index.put(entry("a", 1));
  auto again = entry("a", 1);
  again.size = 99;
  index.put(again);
  REQUIRE(ArchiveIndex(folder / "index.json").entries().size() == 1);
  CHECK(ArchiveIndex(folder / "index.json").entries()[0].size == 99);
}

TEST_CASE("remains of a crashed write do not hinder the next") {
  TemporaryFolder folder;
  support::write_text(folder / "index.json.partial", "{ half");
  ArchiveIndex(folder / "index.json").put(entry("a", 1));
  CHECK(ArchiveIndex(folder / "index.json").entries().size() == 1);
  CHECK_FALSE(std::filesystem::exists(folder / "index.json.partial"));
}

TEST_CASE("an index is JSON that others can read") {
  TemporaryFolder folder;
  ArchiveIndex(folder / "index.json").put(entry("a.tar.zst", 7));
  auto const json = nlohmann::json::parse(support::text_of(folder / "index.json"));
  CHECK(json["format"] == "frugal archive");
  CHECK(json["checkpoints"][0]["name"] == "a.tar.zst");
  CHECK(json["checkpoints"][0]["xxh3"] == "00fedcba98765432");
}

TEST_CASE("a truncated index is damaged and not a shorter one") {
  TemporaryFolder folder;
  ArchiveIndex index(folder / "index.json");
  index.put(entry("a", 1));
  index.put(entry("b", 2));
  std::string const text = support::text_of(folder / "index.json");
  // Everything but the line feed.
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {
    support::write_text(folder / "index.json", text.substr(0, size));
    CAPTURE(size);
    CHECK_THROWS_AS(ArchiveIndex(folder / "index.json"), frugal::FormatError);
  }
}

TEST_CASE("an index with wrong fields says which") {
  TemporaryFolder folder;
  auto const why = [&](std::string const& text) -> std::string {
    support::write_text(folder / "index.json", text);
    try {
      ArchiveIndex index(folder / "index.json");
    } catch (frugal::FormatError const& error) {
      CHECK(error.fault().where.starts_with((folder / "index.json").string()));
      return error.fault().why;
    }
    return "nothing was thrown";
  };
  auto const with = [](std::string const& fields) {
    return R"({"format": "frugal archive", "version": 1, "checkpoints": [{)" + fields + "}]}";
  };
  std::string const rest = R"("serial": 1, "size": 1, "xxh3": "0000000000000000", "saved_at": 0)";
  CHECK(why("[]") == "it is not a JSON object");
  CHECK(why("{}") == "\"format\" does not say \"frugal archive\"");
  CHECK(why(R"({"format": "frugal archive"})") == "\"version\" is missing");
  CHECK(why(R"({"format": "frugal archive", "version": 1, "checkpoints": 3})") ==
        "\"checkpoints\" is not an array");
  CHECK(why(R"({"format": "frugal archive", "version": 1, "checkpoints": [3]})") ==
        "an object is missing where \"name\" goes");
  CHECK(why(with(R"("name": "a")")) == "\"step\" is missing");
  CHECK(why(with(R"("name": "a", "step": -1)")) == "\"step\" is not a number from 0 to 2^63 - 1");
  CHECK(why(with(R"("name": "a", "step": 1.5)")) == "\"step\" is not a number from 0 to 2^63 - 1");
  CHECK(
      why(with(R"("name": "a", "step": 1, "serial": 1, "size": 1, "xxh3": "0x00000000000012")")) ==
      "a hash has an invalid digit");
  CHECK(why(with(R"("name": "a", "step": 1, )" + rest)) == "\"moved_at\" is missing");
  for (std::string const name : {"\"\"", "\"../a\"", "\"/a\"", "\"a/b\"", "7"}) {
    CHECK(why(with("\"name\": " + name + R"(, "step": 1, "moved_at": 0, )" + rest)) ==
          "a file has an invalid name");
  }
}

TEST_CASE("an index of a newer version is refused as such") {
  TemporaryFolder folder;
  support::write_text(folder / "index.json", R"({"format": "frugal archive", "version": 2})");
  CHECK_THROWS_AS(ArchiveIndex(folder / "index.json"), frugal::NewerFormatError);
}

TEST_CASE("an index that cannot be written is an error, and the old one stays") {
  TemporaryFolder folder;
  ArchiveIndex index(folder / "archive" / "index.json");
  CHECK_THROWS_AS(index.put(entry("a", 1)), frugal::IoError);
  CHECK_FALSE(std::filesystem::exists(folder / "archive"));
}

}  // namespace frugal_test::store_archive_index

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

/// A hundred days from now, when everything that a test saves is old.
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
    std::filesystem::create_directory(cold);
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

TEST_CASE("by default nothing is moved, and the plan is reported") {
  Run t;
  Archive archive(t.run, ColdFolder{t.cold});
  CHECK(steps_of(archive.move(later()).moved) == Steps{1, 2, 3});
  CHECK(steps_of(t.run.list().whole) == Steps{4, 3, 2, 1});
  CHECK(names_in(t.cold).empty());
  CHECK_FALSE(std::filesystem::exists(t.run.folder() / "archive"));
}

TEST_CASE("a dry run needs no lock") {
  Run t;
  RunDirectory reader(t.run.folder(), frugal::Access::read);
  CHECK(steps_of(Archive(reader, ColdFolder{t.cold}).move(later()).moved) == Steps{1, 2, 3});
  CHECK_THROWS_AS(Archive(reader, ColdFolder{t.cold}, for_real).move(later()), frugal::StoreError);
}

TEST_CASE("only checkpoints older than the limit are moved") {
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

TEST_CASE("a checkpoint moved to a folder and restored is unchanged, byte for byte") {
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

TEST_CASE("a checkpoint moved by a command and restored by one is unchanged") {
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
  REQUIRE(report.stayed.size() == 1);
  CHECK(report.stayed[0].folder == t.of(2));
  CHECK(std::filesystem::exists(t.of(2)));
  CHECK(names_in(t.cold).size() == 2);
}

TEST_CASE("storage that loses a byte is detected before anything is deleted") {
  Run t;
  auto storage = copying(t.cold);
  storage.put = {"sh", "-c",     "head -c -1 \"$1\" > \"$2\"",
                 "sh", "{file}", t.cold.string() + "/{name}"};
  Archive archive(t.run, storage, for_real);
  CHECK_THROWS_AS(archive.move(later()), frugal::FormatError);
  CHECK(steps_of(t.run.list().whole) == Steps{4, 3, 2, 1});
  CHECK(archive.list().empty());
}

TEST_CASE("a failing command is an error with its output, and nothing is deleted") {
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

TEST_CASE("a command that does nothing and reports success is detected") {
  Run t;
  auto storage = copying(t.cold);
  storage.put = {"true", "{file}", "{name}"};
  CHECK_THROWS_AS(Archive(t.run, storage, for_real).move(later()), frugal::StoreError);
  CHECK(steps_of(t.run.list().whole) == Steps{4, 3, 2, 1});
}

TEST_CASE("storage is verified by the user's command if there is one") {
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

TEST_CASE("storage that cannot be read back is refused at once") {
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

TEST_CASE("every flipped bit in an archived file is detected, and nothing is restored") {
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

TEST_CASE("a checkpoint with a file that its manifest does not list stays and is reported") {
  Run t;
  support::write_text(t.of(2) / "notes.txt", "the one that worked");
  for (bool const dry : {true, false}) {
    auto settings = for_real;
    settings.dry_run = dry;
    auto const report = Archive(t.run, ColdFolder{t.cold}, settings).move(later());
    CHECK(steps_of(report.moved) == Steps{1, 3});
    REQUIRE(report.stayed.size() == 1);
    CHECK(report.stayed[0].why.find("notes.txt") != std::string::npos);
  }
  CHECK(std::filesystem::exists(t.of(2) / "notes.txt"));
}

TEST_CASE("a missing file, or a pipe, is damage of that checkpoint alone") {
  Run t;
  std::filesystem::remove(t.of(1) / "state.json");
  std::filesystem::remove(t.of(3) / "state.json");
  REQUIRE(::mkfifo((t.of(3) / "state.json").c_str(), 0600) == 0);
  auto const report = Archive(t.run, ColdFolder{t.cold}, for_real).move(later());
  CHECK(steps_of(report.moved) == Steps{2});
  CHECK(report.stayed.size() == 2);
  CHECK(names_in(t.cold).size() == 1);
}

TEST_CASE("a checkpoint that is marked gold while it is being moved stays") {
  Run t;
  auto storage = copying(t.cold);
  storage.put = {"sh",
                 "-c",
                 "cp \"$1\" \"$2\" && touch \"$3\"",
                 "sh",
                 "{file}",
                 t.cold.string() + "/{name}",
                 (t.of(2) / "gold").string()};
  CHECK(steps_of(Archive(t.run, storage, for_real).move(later()).moved) == Steps{1, 3});
  CHECK_NOTHROW(frugal::verify(frugal::read_checkpoint(t.of(2))));
}

TEST_CASE("of two archived saves of one step the later is restored") {
  Run t;
  Archive archive(t.run, ColdFolder{t.cold}, for_real);
  archive.move(later());
  save(t.run, 2, {{"loss", 77.0}});
  archive.move(later());
  REQUIRE(archive.list().size() == 4);
  CHECK(archive.restore(2).manifest.metrics.at("loss") == 77.0);
}

TEST_CASE("a checkpoint that is damaged here is restored under another name") {
  Run t;
  Archive archive(t.run, ColdFolder{t.cold}, for_real);
  archive.move(later());
  archive.restore(2);
  support::flip_bit(t.of(2) / "state.json", 3);
  SavedCheckpoint const again = archive.restore(2);
  CHECK(again.folder != t.of(2));
  CHECK_NOTHROW(frugal::verify(again));
}

TEST_CASE("a restored checkpoint is moved again by the next move, and stays one file there") {
  Run t;
  Archive archive(t.run, ColdFolder{t.cold}, for_real);
  archive.move(later());
  archive.restore(2);
  CHECK(steps_of(archive.move(later()).moved) == Steps{2});
  CHECK(archive.list().size() == 3);
  CHECK(names_in(t.cold).size() == 3);
}

TEST_CASE("restoring needs the lock, because a trainer would remove a partial one as garbage") {
  Run t;
  Archive(t.run, ColdFolder{t.cold}, for_real).move(later());
  RunDirectory reader(t.run.folder(), frugal::Access::read);
  Archive archive(reader, ColdFolder{t.cold});
  CHECK(archive.list().size() == 3);
  CHECK(archive.restore(4).step() == 4);  // which is still here
  CHECK_THROWS_AS(archive.restore(2), frugal::StoreError);
}

TEST_CASE("a command that fetches nothing and reports success is detected") {
  Run t;
  auto storage = copying(t.cold);
  storage.get = {"true", "{file}", "{name}"};
  CHECK_THROWS_AS(Archive(t.run, storage, for_real).move(later()), frugal::StoreError);
  CHECK(steps_of(t.run.list().whole) == Steps{4, 3, 2, 1});
}

TEST_CASE("an earlier move's leftovers in cold storage are removed, and another run's are not") {
  Run t;
  Archive archive(t.run, copying(t.cold), for_real);
  RunDirectory other(t.folder / "elsewhere" / "demo");
  for (std::uint64_t step = 1; step <= 2; ++step) save(other, step);
  // Both are called demo, and move to the same folder.
  std::filesystem::path left;
  auto const leave = [&](RunDirectory& run) {
    auto storage = copying(t.cold);
    auto const kept = t.folder / "kept";
    storage.put = {"sh", "-c", "echo \"$1\" > \"$2\"; exit 1", "{name}", "{file}", kept.string()};
    CHECK_THROWS_AS(Archive(run, storage, for_real).move(later()), frugal::StoreError);
    std::string name = std::filesystem::path(support::text_of(kept)).filename().string();
    name.pop_back();  // the line feed
    CHECK(name.starts_with(".tmp-"));
    support::write_text(t.cold / name, "half a file");
    return t.cold / name;
  };
  auto const ours = leave(t.run), theirs = leave(other);
  CHECK(ours != theirs);
  CHECK(Archive(t.run, ColdFolder{t.cold}, for_real).move(later()).moved.size() == 3);
  CHECK_FALSE(std::filesystem::exists(ours));
  CHECK(std::filesystem::exists(theirs));
}

TEST_CASE("a missing folder of cold storage is refused, and not created") {
  Run t;
  Archive archive(t.run, ColdFolder{t.folder / "mnt" / "cold"}, for_real);
  CHECK_THROWS_WITH_AS(archive.move(later()), doctest::Contains("may not be mounted"),
                       frugal::StoreError);
  CHECK_THROWS_WITH_AS(archive.restore(9), doctest::Contains("may not be mounted"),
                       frugal::StoreError);
  CHECK_FALSE(std::filesystem::exists(t.folder / "mnt"));
  CHECK(steps_of(t.run.list().whole) == Steps{4, 3, 2, 1});
}

TEST_CASE("an index with the wrong step for an object restores nothing") {
  Run t;
  Archive archive(t.run, ColdFolder{t.cold}, for_real);
  archive.move(later());
  auto const path = t.run.folder() / "archive" / "index.json";
  std::string text = support::text_of(path);
  std::string const step = "\"step\": 2";
  text.replace(text.find(step), step.size(), "\"step\": 9");
  support::write_text(path, text);
  CHECK_THROWS_WITH_AS(archive.restore(9),
                       doctest::Contains("it has step 2 and serial 2, and the index says 9 and 2"),
                       frugal::FormatError);
  CHECK(names_in(t.run.checkpoints_folder()) == std::set<std::string>{"step-00000004"});
}

TEST_CASE("a hanging command is ended, and the lock is free afterwards") {
  Run t;
  auto storage = copying(t.cold);
  storage.put = {"tail", "-f", "/dev/null", "{file}", "{name}"};
  storage.patience = 1s;
  CHECK_THROWS_WITH_AS(Archive(t.run, storage, for_real).move(later()),
                       doctest::Contains("it had not ended after 1 s and was killed"),
                       frugal::StoreError);
  CHECK(steps_of(t.run.list().whole) == Steps{4, 3, 2, 1});
  storage.patience = 0s;
  CHECK_THROWS_AS(Archive(t.run, storage, for_real), frugal::SettingsError);
}

TEST_CASE("a fetched object fills no disk, however large it is") {
  Run t;
  Archive(t.run, copying(t.cold), for_real).move(later());
  auto storage = copying(t.cold);
  auto const size = t.folder / "size";
  storage.get = {"sh",    "-c",     "head -c 200000000 /dev/zero > \"$1\"; wc -c < \"$1\" > \"$2\"",
                 "sh",    "{file}", size.string(),
                 "{name}"};
  CHECK_THROWS_AS(Archive(t.run, storage).restore(2), frugal::FormatError);
  std::uint64_t const fetched = std::stoull(support::text_of(size));
  CHECK(fetched > 0);
  CHECK(fetched <= (std::uint64_t{17} << 20));
  CHECK(names_in(t.run.checkpoints_folder()) == std::set<std::string>{"step-00000004"});
}

TEST_CASE("an index of version 0, or with unknown fields, is damaged") {
  Run t;
  Archive archive(t.run, ColdFolder{t.cold}, for_real);
  archive.move(later());
  auto const path = t.run.folder() / "archive" / "index.json";
  std::string const good = support::text_of(path);
  auto const with = [&](std::string const& from, std::string const& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    support::write_text(path, text);
  };
  with("\"version\": 1", "\"version\": 0");
  CHECK_THROWS_WITH_AS(archive.list(), doctest::Contains("there was never a version 0"),
                       frugal::FormatError);
  with("\"version\": 1", "\"version\": 1, \"version\": 1");
  CHECK_THROWS_WITH_AS(archive.list(), doctest::Contains("is there twice"), frugal::FormatError);
  with("\"serial\"", "\"color\": 1, \"serial\"");
  CHECK_THROWS_WITH_AS(archive.list(), doctest::Contains("\"color\" is not known"),
                       frugal::FormatError);
}

TEST_CASE("a damaged index stops everything before anything is deleted") {
  Run t;
  std::filesystem::create_directories(t.run.folder() / "archive");
  support::write_text(t.run.folder() / "archive" / "index.json", "{}");
  Archive archive(t.run, ColdFolder{t.cold}, for_real);
  CHECK_THROWS_AS(archive.move(later()), frugal::FormatError);
  CHECK_THROWS_AS(archive.list(), frugal::FormatError);
  CHECK(steps_of(t.run.list().whole) == Steps{4, 3, 2, 1});
}

}  // namespace frugal_test::store_archive

// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
#include <doctest/doctest.h>

#include <frugal/checkpoint/pack.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::store_pack {

using frugal::File;
using frugal::FormatError;
using frugal::SavedCheckpoint;
using frugal::detail::ColdObject;
using frugal::detail::pack;
using frugal::detail::unpack;
using frugal::detail::unpack_to;
using frugal::detail::verify_packed;
using support::TemporaryFolder;

using Files = std::map<std::string, std::string>;

/// A checkpoint and its packed file.
struct Packed {
  Packed() : object(pack(checkpoint, file, 3)), whole(support::text_of(file)) {}

  TemporaryFolder folder;
  frugal::RunDirectory run{folder / "demo"};
  SavedCheckpoint checkpoint = support::save(run, 7, {{"loss", 0.5}});
  std::filesystem::path file = folder / "packed.tar.zst";
  ColdObject object;
  std::string whole;
};

Files contents(std::filesystem::path const& packed) {
  Files files;
  unpack(packed, [&](std::string const& name) {
    return [&text = files[name]](std::span<std::byte const> bytes) {
      text.append(reinterpret_cast<char const*>(bytes.data()), bytes.size());
    };
  });
  return files;
}

std::optional<Files> contents_if_sound(std::filesystem::path const& packed) {
  try {
    return contents(packed);
  } catch (FormatError const&) {
    return std::nullopt;
  }
}

std::set<std::string> names_in(std::filesystem::path const& folder) {
  std::set<std::string> names;
  for (auto const& path : frugal::entries_of(folder)) names.insert(path.filename().string());
  return names;
}

TEST_CASE("a packed checkpoint has its files and its manifest, unchanged") {
  Packed t;
  Files expected = support::contents_of(7);
  expected["manifest.json"] = support::text_of(t.checkpoint.folder / "manifest.json");
  CHECK(contents(t.file) == expected);
  CHECK(t.object.size == t.whole.size());
  CHECK(t.object.hash == frugal::Hash::of(support::bytes_of(t.whole)));
}

TEST_CASE("the same checkpoint packs to the same bytes under the same name, another to others") {
  Packed t;
  auto const again = pack(t.checkpoint, t.folder / "again", 3);
  CHECK(again.hash == t.object.hash);
  CHECK(again.name == t.object.name);
  CHECK(again.name.starts_with("step-00000007-"));
  CHECK(pack(support::save(t.run, 7), t.folder / "other", 3).name != t.object.name);
}

TEST_CASE("a damaged checkpoint is not packed") {
  Packed t;
  support::flip_bit(t.checkpoint.folder / "state.json", 3);
  CHECK_THROWS_AS(pack(t.checkpoint, t.folder / "again", 3), FormatError);
  std::filesystem::remove(t.checkpoint.folder / "state.json");
  std::filesystem::create_directory(t.checkpoint.folder / "state.json");
  CHECK_THROWS_AS(pack(t.checkpoint, t.folder / "third", 3), FormatError);
}

TEST_CASE("a truncated packed file is detected, and nothing wrong is read from it") {
  Packed t;
  Files const expected = contents(t.file);
  for (std::size_t size = 0; size < t.whole.size(); ++size) {
    support::write_text(t.file, t.whole.substr(0, size));
    CAPTURE(size);
    CHECK_THROWS_AS(verify_packed(t.file, t.object), FormatError);
    // Without a hash over the whole file, as when unpacking by hand: it either reads or fails.
    if (auto const files = contents_if_sound(t.file)) CHECK(*files == expected);
  }
  support::write_text(t.file, t.whole);
  CHECK_NOTHROW(verify_packed(t.file, t.object));
}

TEST_CASE("a packed file with any flipped bit is detected") {
  Packed t;
  Files const expected = contents(t.file);
  for (std::size_t bit = 0; bit < 8 * t.whole.size(); ++bit) {
    support::flip_bit(t.file, bit);
    CAPTURE(bit);
    CHECK_THROWS_AS(verify_packed(t.file, t.object), FormatError);
    if (auto const files = contents_if_sound(t.file)) CHECK(*files == expected);
    support::flip_bit(t.file, bit);
  }
}

TEST_CASE("a packed file with bytes after its end is detected") {
  Packed t;
  support::write_text(t.file, t.whole + "x");
  CHECK_THROWS_AS(verify_packed(t.file, t.object), FormatError);
}

/// An archive that begins with the manifest and continues as no writer of ours does.
template <class Fill>
std::filesystem::path hostile(Packed const& t, Fill&& fill) {
  auto const path = t.folder / "hostile";
  std::filesystem::remove(path);
  archive* const out = archive_write_new();
  archive_write_set_format_pax_restricted(out);
  archive_write_add_filter_zstd(out);
  archive_write_open_filename(out, path.c_str());
  std::string const manifest = support::text_of(t.checkpoint.folder / "manifest.json");
  auto const add = [&](std::string const& name, std::string const& text, unsigned type = AE_IFREG,
                       std::string const& link = "") {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, 0777);
    if (type == AE_IFREG) archive_entry_set_size(entry, static_cast<la_int64_t>(text.size()));
    if (type == AE_IFLNK) archive_entry_set_symlink(entry, link.c_str());
    if (type == AE_IFREG && !link.empty()) archive_entry_set_hardlink(entry, link.c_str());
    archive_write_header(out, entry);
    if (link.empty()) archive_write_data(out, text.data(), text.size());
    archive_entry_free(entry);
  };
  add("manifest.json", manifest);
  fill(add);
  archive_write_free(out);
  return path;
}

/// Rethrows the error of unpacking, after checking that nothing is left of it.
template <class Fill>
void unpack_hostile(Packed& t, Fill&& fill) {
  auto const path = hostile(t, fill);
  auto const before = names_in(t.folder.path());
  try {
    unpack_to(path, t.run.checkpoints_folder());
  } catch (...) {
    CHECK(names_in(t.run.checkpoints_folder()) == std::set<std::string>{"step-00000007"});
    CHECK(names_in(t.run.folder()) == std::set<std::string>{"checkpoints", "lock"});
    CHECK(names_in(t.folder.path()) == before);
    throw;
  }
}

/// All files that the manifest lists.
auto const honest = [](auto& add) {
  for (auto const& [name, text] : support::contents_of(7)) add(name, text);
};

TEST_CASE("a foreign archive is accepted if it has what its manifest says") {
  Packed t;
  unpack_hostile(t, honest);
  CHECK(names_in(t.run.checkpoints_folder()) ==
        std::set<std::string>{"step-00000007", "step-00000007.2"});
}

TEST_CASE("an archive with files that its manifest does not list writes nothing anywhere") {
  Packed t;
  for (std::string const name :
       {"../escaped", "../../escaped", "/tmp/frugal-escaped", "gold", "manifest.json",
        "state.json/x", "./state.json", "sub/state.json"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(unpack_hostile(t, [&](auto& add) { add(name, "bad"); }), FormatError);
    CHECK_THROWS_AS(unpack_hostile(t,
                                   [&](auto& add) {
                                     honest(add);
                                     add(name, "bad");
                                   }),
                    FormatError);
  }
  CHECK_FALSE(std::filesystem::exists("/tmp/frugal-escaped"));
}

TEST_CASE("an archive with links, folders, devices or pipes is refused") {
  Packed t;
  for (unsigned const type : {AE_IFLNK, AE_IFDIR, AE_IFCHR, AE_IFBLK, AE_IFIFO}) {
    CAPTURE(type);
    CHECK_THROWS_AS(
        unpack_hostile(t, [&](auto& add) { add("state.json", "", type, "/etc/passwd"); }),
        FormatError);
  }
  CHECK_THROWS_AS(
      unpack_hostile(t, [](auto& add) { add("state.json", "", AE_IFREG, "/etc/passwd"); }),
      FormatError);
}

TEST_CASE("an archive that lacks a file, has one twice, or one of another size is damaged") {
  Packed t;
  CHECK_THROWS_AS(unpack_hostile(t, [](auto&) {}), FormatError);
  CHECK_THROWS_AS(unpack_hostile(t,
                                 [](auto& add) {
                                   honest(add);
                                   add("state.json", support::contents_of(7).at("state.json"));
                                 }),
                  FormatError);
  for (std::string const& text : {std::string(), std::string(1 << 20, '\0')}) {
    CHECK_THROWS_AS(unpack_hostile(t, [&](auto& add) { add("state.json", text); }), FormatError);
  }
  std::string other = support::contents_of(7).at("state.json");
  other[0] = '[';  // the size is right, the bytes are not
  CHECK_THROWS_AS(unpack_hostile(t, [&](auto& add) { add("state.json", other); }), FormatError);
}

TEST_CASE("an archive that does not begin with a manifest is refused") {
  Packed t;
  auto const path = t.folder / "bare";
  File file = File::create(path);
  frugal::detail::TarWriter writer(file, path, 3);
  writer.begin("state.json", 2, 0);
  writer.write(support::bytes_of("{}"));
  writer.finish();
  CHECK_THROWS_AS(unpack_to(path, t.run.checkpoints_folder()), FormatError);
}

TEST_CASE("a file of two megabytes and more goes through in pieces") {
  Packed t;
  std::string text;
  for (unsigned i = 0; i < 700'000; ++i) text += std::to_string(i * 2654435761U).substr(0, 3);
  frugal::CheckpointWriter writer = t.run.begin(9);
  writer.add("big", [&](auto& sink) { sink.write(support::bytes_of(text)); });
  SavedCheckpoint const big = t.run.commit(writer);
  auto const object = pack(big, t.folder / "big", 1);
  CHECK_NOTHROW(verify_packed(t.folder / "big", object));
  CHECK(contents(t.folder / "big").at("big") == text);
}

TEST_CASE("the program tar reads a packed checkpoint") {
  Packed t;
  std::filesystem::create_directory(t.folder / "out");
  // libarchive's compression, decompressed by programs that share no code with it.
  frugal::detail::run_command(
      {"tar", "-C", (t.folder / "out").string(), "--zstd", "-xf", t.file.string()});
  CHECK(names_in(t.folder / "out") == std::set<std::string>{"manifest.json", "model.safetensors",
                                                            "optimizer.safetensors", "state.json"});
  CHECK_NOTHROW(frugal::verify(frugal::read_checkpoint(t.folder / "out")));
}

}  // namespace frugal_test::store_pack

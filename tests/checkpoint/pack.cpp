// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
#include "support/checkpoints.hpp"
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/checkpoint/pack.hpp>

#include <archive.h>
#include <archive_entry.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace frugal_test::store_tar {

using frugal::File;
using frugal::FormatError;
using frugal::detail::TarReader;
using frugal::detail::TarWriter;
using support::TemporaryFolder;

using Files = std::map<std::string, std::string>;

void write(std::filesystem::path const& path, Files const& files) {
  File file = File::create(path);
  TarWriter writer(file, path, 3);
  for (auto const& [name, text] : files) {
    writer.begin(name, text.size(), 1'700'000'000);
    writer.write(support::bytes_of(text));
  }
  writer.finish();
}

Files read(std::filesystem::path const& path) {
  TarReader reader(path);
  Files files;
  while (auto const entry = reader.next()) {
    std::string text(static_cast<std::size_t>(entry->size) + 1, '\0');
    text.resize(reader.read(std::as_writable_bytes(std::span(text.data(), text.size()))));
    CHECK(text.size() == entry->size);
    files[entry->name] = text;
  }
  return files;
}

TEST_CASE("files are restored unchanged, empty ones and long names too") {
  TemporaryFolder folder;
  Files const files = {{"a", ""},
                       {"b.bin", std::string("\0\xff\n", 3) + std::string(100'000, 'x')},
                       {std::string(200, 'n'), "long"}};
  write(folder / "t", files);
  CHECK(read(folder / "t") == files);
}

TEST_CASE("names outside of ASCII are restored in any locale") {
  TemporaryFolder folder;
  // Programs start in the locale "C", which is ASCII.
  Files const files = {{"mod\xc3\xa8le.safetensors", "w"}, {"\xe6\xa8\xa1\xe5\x9e\x8b", "x"}};
  write(folder / "t", files);
  CHECK(read(folder / "t") == files);
}

/// A sink that accepts a fixed number of bytes.
struct Full {
  std::size_t left;
  void write(std::span<std::byte const> bytes) {
    if (bytes.size() > left) throw frugal::detail::io_error("write", "sink", ENOSPC);
    left -= bytes.size();
  }
};

TEST_CASE(
    "exceptions of the sink reach the caller, wherever they happen, and nothing crashes or leaks") {
  // Generated digits, so that zstd cannot shrink them to nothing.
  std::string text;
  for (unsigned i = 0, x = 1; i < 400'000; ++i, x = x * 1664525 + 1013904223) {
    text += static_cast<char>(x >> 24);
  }
  for (std::size_t const room : {0U, 1U, 100'000U, 200'000U, 399'000U}) {
    Full sink{room};
    auto const run = [&] {
      TarWriter writer(sink, "here", 3);
      writer.begin("a", text.size(), 0);
      for (std::size_t at = 0; at < text.size(); at += 10'000) {
        writer.write(support::bytes_of(text.substr(at, 10'000)));
      }
      writer.finish();
    };
    CHECK_THROWS_AS(run(), frugal::IoError);
  }
}

TEST_CASE("a writer abandoned in the middle of a file writes nothing more to the sink") {
  Full sink{0};
  {
    TarWriter writer(sink, "here", 3);
    writer.begin("a", std::size_t{1} << 40, 0);
    writer.write(support::bytes_of("a few of a terabyte"));
  }
  CHECK(sink.left == 0);
}

TEST_CASE("more bytes than a file was begun with are an error") {
  TemporaryFolder folder;
  File file = File::create(folder / "t");
  TarWriter writer(file, folder / "t", 3);
  writer.begin("a", 3, 0);
  CHECK_THROWS_AS(writer.write(support::bytes_of("four")), frugal::StoreError);
}

TEST_CASE("a file that is not an archive is damaged") {
  TemporaryFolder folder;
  support::write_text(folder / "text", "hello, this is no archive\n");
  CHECK_THROWS_AS(read(folder / "text"), FormatError);
  CHECK_THROWS_AS(TarReader(folder / "missing"), frugal::IoError);
}

/// The header of one entry in POSIX (ustar) format, with arbitrary contents.
std::string header(std::string const& name, std::string const& size, char type,
                   std::string const& link = "") {
  std::string block(512, '\0');
  auto const set = [&](std::size_t at, std::string const& text) {
    block.replace(at, text.size(), text);
  };
  set(0, name);
  set(100, "0000644");
  set(108, "0000000");
  set(116, "0000000");
  set(124, size);
  set(136, "00000000000");
  block[156] = type;
  set(157, link);
  set(257, std::string("ustar\0"
                       "00",
                       8));
  set(148, "        ");
  unsigned sum = 0;
  for (char const c : block) sum += static_cast<unsigned char>(c);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  std::memcpy(block.data() + 148, digits, 7);
  return block;
}

TEST_CASE("links, folders, devices and pipes are not files, and are refused") {
  TemporaryFolder folder;
  std::string const end(1024, '\0');
  for (char const type : {'1', '2', '3', '4', '5', '6'}) {
    CAPTURE(type);
    support::write_text(folder / "t", header("a", "00000000000", type, "/etc/passwd") + end);
    CHECK_THROWS_AS(read(folder / "t"), FormatError);
  }
  support::write_text(folder / "t",
                      header("a", "00000000002", '0') + "hi" + std::string(510, '\0') + end);
  CHECK(read(folder / "t") == Files{{"a", "hi"}});  // otherwise the header above would prove
                                                    // nothing
}

TEST_CASE("a false size is damage and allocates nothing") {
  TemporaryFolder folder;
  for (std::string const size : {"77777777777", "00000000777"}) {
    support::write_text(folder / "t", header("a", size, '0') + "hi");
    auto const all = [&] {
      TarReader reader(folder / "t");
      auto const entry = reader.next();
      REQUIRE(entry);
      std::string piece(100, '\0');
      while (reader.read(std::as_writable_bytes(std::span(piece.data(), piece.size()))) != 0) {
      }
    };
    CHECK_THROWS_AS(all(), FormatError);
  }
}

}  // namespace frugal_test::store_tar

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

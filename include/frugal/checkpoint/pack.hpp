// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/cold_storage.hpp>
#include <frugal/checkpoint/commit.hpp>
#include <frugal/checkpoint/manifest_reader.hpp>
#include <frugal/checkpoint/tar.hpp>
#include <frugal/error.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

// Needs libarchive: FRUGAL_ARCHIVE=ON, and the target frugal::archive.
namespace frugal::detail {

inline std::string read_text(std::filesystem::path const& path) {
  File file = File::open(path);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  text.resize(file.read(std::as_writable_bytes(std::span(text.data(), text.size()))));
  return text;
}

/// Reads from `next(buffer)` until it returns 0.
template <class Next, class Take>
void pump(Next&& next, Take&& take) {
  auto const buffer = std::make_unique<std::byte[]>(read_size);
  while (std::size_t const got = next(std::span(buffer.get(), read_size))) {
    take(std::span<std::byte const>(buffer.get(), got));
  }
}

inline std::uint64_t hash_of(std::filesystem::path const& path) {
  File file = File::open(path);
  Hash hash;
  pump([&](auto buffer) { return file.read(buffer); }, [&](auto bytes) { hash.update(bytes); });
  return hash.digest();
}

/// Packs a checkpoint into one new file, manifest first, and fsyncs it. The object's name contains
/// the manifest's hash, so that two checkpoints never share one. FormatError if a file of the
/// checkpoint differs from the manifest, as in verify().
inline ColdObject pack(SavedCheckpoint const& checkpoint, std::filesystem::path const& to,
                       int level) {
  File file = File::create(to);
  Hashed<File> sink(file);
  std::string const manifest = read_text(checkpoint.folder / Manifest::file_name);
  TarWriter writer(sink, to, level);
  std::int64_t const time = checkpoint.manifest.saved_at;
  writer.begin(std::string(Manifest::file_name), manifest.size(), time);
  writer.write(bytes_of(manifest));
  for (FileEntry const& entry : checkpoint.manifest.files) {
    File in = open_file_of(checkpoint, entry);
    writer.begin(entry.name, entry.size, time);
    Hashed<TarWriter<Hashed<File>>> hashed(writer);
    pump([&](auto buffer) { return in.read(buffer); }, [&](auto bytes) { hashed.write(bytes); });
    if (hashed.digest() != entry.hash || hashed.size() != entry.size) {
      throw damaged(in.path(), "its hash is not that of the manifest");
    }
  }
  writer.finish();
  file.sync();
  // Drops the page cache, so that reading back comes from the disk. The kernel may ignore this.
  (void)::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  file.close();
  return {.name = step_name(checkpoint.step()) + "-" + hex_of(Hash::of(bytes_of(manifest))) +
                  ".tar.zst",
          .size = sink.size(),
          .hash = sink.digest()};
}

/// Reads a packed checkpoint to its end. Passes every file, the manifest included, to
/// `take(name)(bytes)` and compares it with the manifest. FormatError for any difference.
///
/// Trusts nothing before it has read the manifest, and takes nothing that the manifest does not
/// list, so an archive can neither write elsewhere nor grow beyond what its manifest says.
template <class Take>
Manifest unpack(std::filesystem::path const& from, Take&& take) {
  TarReader reader(from);
  auto const first = reader.next();
  if (!first || first->name != Manifest::file_name || first->size > Manifest::largest) {
    reader.fail("it does not begin with a manifest");
  }
  std::string text(static_cast<std::size_t>(first->size), '\0');
  text.resize(reader.read(std::as_writable_bytes(std::span(text.data(), text.size()))));
  Manifest manifest = parse_manifest(text, from);
  take(std::string(Manifest::file_name))(bytes_of(text));
  std::vector<FileEntry> missing = manifest.files;
  while (auto const entry = reader.next()) {
    auto const expected = std::find_if(missing.begin(), missing.end(), [&](FileEntry const& each) {
      return each.name == entry->name;
    });
    if (expected == missing.end() || expected->size != entry->size) {
      reader.fail("\"" + entry->name + "\" is not what the manifest lists");
    }
    auto&& sink = take(entry->name);
    Hash hash;
    pump([&](auto buffer) { return reader.read(buffer); },
         [&](auto bytes) {
           hash.update(bytes);
           sink(bytes);
         });
    if (hash.digest() != expected->hash) reader.fail("the hash of \"" + entry->name + "\" differs");
    missing.erase(expected);
  }
  if (!missing.empty()) reader.fail("\"" + missing.front().name + "\" is missing");
  return manifest;
}

/// Verifies a packed checkpoint and returns its manifest.
inline Manifest verify_packed(std::filesystem::path const& file, ColdObject const& object) {
  if (File::open(file).size() != object.size || hash_of(file) != object.hash) {
    throw FormatError({.what = "an archived checkpoint is damaged",
                       .where = file.string(),
                       .why = "it is not what was put into cold storage",
                       .fix = "Fetch it again, or look for a copy of it."});
  }
  return unpack(file, [](std::string const&) { return [](std::span<std::byte const>) {}; });
}

/// Unpacks a checkpoint among the others and publishes it atomically, like a commit.
inline SavedCheckpoint unpack_to(std::filesystem::path const& file,
                                 std::filesystem::path const& checkpoints) {
  auto const temporary = checkpoints / temporary_name("restore");
  create_folder(temporary);
  try {
    std::vector<std::unique_ptr<File>> files;
    auto const finish = [&] {
      for (auto& each : files) {
        each->sync();
        each->close();
      }
      files.clear();
    };
    Manifest manifest = unpack(file, [&](std::string const& name) {
      finish();
      files.push_back(std::make_unique<File>(File::create(temporary / name)));
      return [out = files.back().get()](std::span<std::byte const> bytes) { out->write(bytes); };
    });
    finish();
    sync_folder(temporary);
    auto const usual = checkpoints / step_name(manifest.step);
    auto to = usual;
    for (int number = 2; !rename_to_free(temporary, to); ++number) {
      to = usual;
      to += "." + std::to_string(number);
    }
    sync_folder(checkpoints);
    return {.folder = to, .manifest = std::move(manifest), .gold = false};
  } catch (...) {
    try_remove_tree(temporary);
    throw;
  }
}

}  // namespace frugal::detail

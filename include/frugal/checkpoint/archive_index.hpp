// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/in_order.hpp>
#include <frugal/base/json_fields.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/checkpoint/manifest.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace frugal {

/// A checkpoint in cold storage.
struct ArchivedCheckpoint {
  std::string name;           ///< of the file in cold storage
  std::uint64_t step = 0;     ///< optimizer steps done
  std::uint64_t serial = 0;   ///< counts the saves of the run
  std::uint64_t size = 0;     ///< of that file, in bytes
  std::uint64_t hash = 0;     ///< of that file: XXH3, 64 bits
  std::int64_t saved_at = 0;  ///< of the checkpoint: seconds since 1970, UTC
  std::int64_t moved_at = 0;  ///< of the move: seconds since 1970, UTC
};

/// archive/index.json of a run: the checkpoints in cold storage. Replaced atomically by a rename.
class ArchiveIndex {
 public:
  /// Empty if the file does not exist yet; FormatError if it is not an index.
  explicit ArchiveIndex(std::filesystem::path path) : path_(std::move(path)) {
    std::error_code failure;
    if (!std::filesystem::exists(path_, failure) && !failure) return;
    File file = File::open(path_);
    std::string text(static_cast<std::size_t>(file.size()), '\0');
    text.resize(file.read(std::as_writable_bytes(std::span(text.data(), text.size()))));
    detail::JsonFields const fields(
        {.what = "the index of the archive is damaged",
         .where = path_.string(),
         .why = "",
         .fix = "Move the index away; the archived files themselves are not affected."});
    auto const all = fields.parse(text, "frugal archive");
    if (fields.version(all) > newest_version) {
      throw NewerFormatError({.what = "the index of the archive has a newer format",
                              .where = path_.string(),
                              .why = "this library reads versions up to 1",
                              .fix = "Update frugal."});
    }
    fields.only(all, {"format", "version", "checkpoints"});
    for (detail::Json const& each : fields.array(all, "checkpoints")) {
      entries_.push_back({.name = fields.text(each, "name"),
                          .step = fields.number(each, "step"),
                          .serial = fields.number(each, "serial"),
                          .size = fields.number(each, "size"),
                          .hash = fields.hash(each, "xxh3"),
                          .saved_at = fields.time(each, "saved_at"),
                          .moved_at = fields.time(each, "moved_at")});
      fields.only(each, {"name", "step", "serial", "size", "xxh3", "saved_at", "moved_at"});
      if (!detail::is_file_name(entries_.back().name)) {
        fields.fail(each, "a file has an invalid name");
      }
    }
  }

  /// Newest first.
  std::vector<ArchivedCheckpoint> const& entries() const noexcept { return entries_; }

  /// Adds an entry, or replaces the one with this name. Durable on return.
  void put(ArchivedCheckpoint entry) {
    auto const same = [&](ArchivedCheckpoint const& other) { return other.name == entry.name; };
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), same), entries_.end());
    entries_.push_back(std::move(entry));
    detail::put_in_order(entries_, [](ArchivedCheckpoint const& a, ArchivedCheckpoint const& b) {
      return std::tie(a.step, a.serial, a.name) > std::tie(b.step, b.serial, b.name);
    });
    detail::JsonWriter out;
    out.object(detail::JsonLayout::lines).add("format", "frugal archive");
    out.add("version", newest_version).key("checkpoints").array();
    for (ArchivedCheckpoint const& each : entries_) {
      out.object(detail::JsonLayout::spaced).add("name", each.name).add("step", each.step);
      out.add("serial", each.serial).add("size", each.size).add("xxh3", hex_of(each.hash));
      out.add("saved_at", each.saved_at);
      out.add("moved_at", std::max<std::int64_t>(each.moved_at, 0)).end();
    }
    std::string const text = out.str("\n");
    auto partial = path_;
    partial += ".partial";
    remove_tree(partial);  // left by a crash
    File file = File::create(partial);
    file.write(detail::bytes_of(text));
    file.sync();
    file.close();
    rename_path(partial, path_);
    sync_folder(path_.parent_path());
  }

 private:
  static constexpr std::uint64_t newest_version = 1;

  std::filesystem::path path_;
  std::vector<ArchivedCheckpoint> entries_;
};

}  // namespace frugal

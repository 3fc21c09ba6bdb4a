// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/file.hpp>
#include <frugal/store/folder.hpp>
#include <frugal/store/hash.hpp>
#include <frugal/store/manifest.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal {

/// A checkpoint that lies in cold storage.
struct ArchivedCheckpoint {
  std::string name;           ///< of the file there
  std::uint64_t step = 0;     ///< optimizer steps done
  std::uint64_t size = 0;     ///< of the file there, in bytes
  std::uint64_t hash = 0;     ///< of the file there: XXH3, 64 bits
  std::int64_t saved_at = 0;  ///< seconds since 1970, UTC: the checkpoint
  std::int64_t moved_at = 0;  ///< seconds since 1970, UTC: the move
};

/// archive/index.json of a run: what was moved to cold storage. Replaced by one rename.
class ArchiveIndex {
 public:
  /// Empty if there is no such file yet; FormatError if it is no index.
  explicit ArchiveIndex(std::filesystem::path path) : path_(std::move(path)) {
    std::error_code failure;
    if (!std::filesystem::exists(path_, failure) && !failure) return;
    File file = File::open(path_);
    std::string text(static_cast<std::size_t>(file.size()), '\0');
    text.resize(file.read(std::as_writable_bytes(std::span(text.data(), text.size()))));
    auto const all = nlohmann::json::parse(text, nullptr, false);
    try {
      if (all.at("format") != "frugal archive" || all.at("version") != 1)
        fail("it is of another format");
      for (auto const& each : all.at("checkpoints")) {
        std::string const hash = each.at("xxh3");
        entries_.push_back({.name = each.at("name"),
                            .step = each.at("step"),
                            .size = each.at("size"),
                            .hash = std::stoull(hash, nullptr, 16),
                            .saved_at = each.at("saved_at"),
                            .moved_at = each.at("moved_at")});
        if (!detail::is_file_name(entries_.back().name) || hash.size() != 16) {
          fail("an entry has a name or a hash that is none");
        }
      }
    } catch (nlohmann::json::exception const&) {
      fail("a field is missing or of another type");
    } catch (std::logic_error const&) {  // of stoull
      fail("a hash is none");
    }
  }

  std::vector<ArchivedCheckpoint> const& entries() const noexcept { return entries_; }

  /// Adds an entry, or replaces the one of this name, durably.
  void put(ArchivedCheckpoint entry) {
    auto const same = [&](ArchivedCheckpoint const& other) { return other.name == entry.name; };
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), same), entries_.end());
    entries_.push_back(std::move(entry));
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](auto const& a, auto const& b) { return a.step > b.step; });
    nlohmann::ordered_json all{{"format", "frugal archive"}, {"version", 1}};
    all["checkpoints"] = nlohmann::ordered_json::array();
    for (ArchivedCheckpoint const& each : entries_) {
      all["checkpoints"].push_back({{"name", each.name},
                                    {"step", each.step},
                                    {"size", each.size},
                                    {"xxh3", hex_of(each.hash)},
                                    {"saved_at", each.saved_at},
                                    {"moved_at", each.moved_at}});
    }
    auto partial = path_;
    partial += ".partial";
    remove_tree(partial);  // of a crash
    File file = File::create(partial);
    file.write(detail::bytes_of(all.dump(2) + "\n"));
    file.sync();
    file.close();
    rename_path(partial, path_);
    sync_folder(path_.parent_path());
  }

 private:
  [[noreturn]] void fail(std::string why) const {
    throw FormatError({.what = "the index of the archive is damaged",
                       .where = path_.string(),
                       .why = std::move(why),
                       .mend = "Move it away; the archived files themselves are not affected."});
  }

  std::filesystem::path path_;
  std::vector<ArchivedCheckpoint> entries_;
};

}  // namespace frugal

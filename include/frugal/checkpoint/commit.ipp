// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/commit.hpp>

#include <frugal/base/utf8.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <system_error>

namespace frugal::detail {

FRUGAL_INLINE std::string step_name(std::uint64_t step) {
  char name[40];
  std::snprintf(name, sizeof name, "step-%08llu", static_cast<unsigned long long>(step));
  return name;
}

FRUGAL_INLINE std::string temporary_name(std::string const& of) {
  static std::atomic<unsigned> count{0};
  return std::string(temporary_prefix) + of + "-" + std::to_string(::getpid()) + "-" +
         std::to_string(count++);
}

FRUGAL_INLINE void try_remove_tree(std::filesystem::path const& path) noexcept {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE CheckpointWriter::CheckpointWriter(std::filesystem::path checkpoints,
                                                 std::uint64_t step, std::uint64_t serial)
    : checkpoints_(std::move(checkpoints)) {
  manifest_.step = step;
  manifest_.serial = serial;
  name_ = detail::step_name(step);
  auto const temporary = checkpoints_ / detail::temporary_name(name_);
  create_folder(temporary);
  temporary_ = temporary;
}

FRUGAL_INLINE void CheckpointWriter::adopt(FileEntry entry, std::string const& name) {
  require_open();
  require_free(name);
  std::filesystem::path const from = temporary_ / entry.name;
  struct stat status{};
  bool const is_name = detail::is_file_name(entry.name);
  if (is_name && ::lstat(from.c_str(), &status) != 0) throw detail::io_error("lstat", from, errno);
  // Moving what a path or a link leads to would take a file that is not the checkpoint's.
  if (!is_name || !S_ISREG(status.st_mode)) {
    throw StoreError({.what = "another process names a part of a checkpoint that is none",
                      .where = entry.name,
                      .why = is_name ? "it is not a plain file" : "it is not a plain file name",
                      .fix = "Use a folder that nobody else can write, and see who connects to the "
                             "store's port (docs/cluster/trust.md)."});
  }
  auto const size = static_cast<std::uint64_t>(status.st_size);
  if (size != entry.size) {
    throw StoreError({.what = "a file that another process has written is not as it was written",
                      .where = from.string(),
                      .why = "it has " + std::to_string(size) + " bytes here, and " +
                             std::to_string(entry.size) + " there",
                      .fix = "Use a file system that all machines see alike."});
  }
  rename_path(from, temporary_ / name);
  entry.name = name;
  manifest_.files.push_back(std::move(entry));
}

FRUGAL_INLINE SavedCheckpoint CheckpointWriter::commit(std::map<std::string, double> const& metrics,
                                                       bool replaces) {
  require_open();
  // Store metrics as they will read again: JSON has no infinities and no text outside UTF-8.
  for (auto const& [name, value] : metrics) {
    manifest_.metrics[detail::as_utf8(name)] =
        std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
  }
  manifest_.saved_at = static_cast<std::int64_t>(std::time(nullptr));
  File file = File::create(temporary_ / Manifest::file_name);
  file.write(detail::bytes_of(manifest_.text()));
  file.sync();
  file.close();
  sync_folder(temporary_);
  auto const folder = publish(replaces);
  return {.folder = folder, .manifest = manifest_, .gold = false};
}

FRUGAL_INLINE void CheckpointWriter::require_free(std::string const& name) const {
  bool const twice = std::any_of(manifest_.files.begin(), manifest_.files.end(),
                                 [&](FileEntry const& entry) { return entry.name == name; });
  if (twice || !detail::is_file_name(name) || name == detail::gold_name) {
    throw StoreError(
        {.what = "a checkpoint cannot have a file of this name",
         .where = name,
         .why = twice ? "it has one already" : "it is not a plain file name",
         .fix = "Give each file a name of its own, in UTF-8 and without a folder in it."});
  }
}

FRUGAL_INLINE std::filesystem::path CheckpointWriter::publish(bool replaces) {
  auto usual = checkpoints_ / name_;
  if (rename_to_free(temporary_, usual)) {
    sync_or([&] { rename_path(usual, temporary_); });
    temporary_.clear();
    return usual;
  }
  bool const ours = replaces && is_replaceable(usual);
  if (ours && exchange_paths(temporary_, usual)) {
    sync_or([&] { exchange_paths(temporary_, usual); });
    detail::try_remove_tree(std::exchange(temporary_, {}));  // now the older save
    return usual;
  }
  auto other = usual;
  for (int number = 2; !rename_to_free(temporary_, other); ++number) {
    other = usual;
    other += "." + std::to_string(number);
  }
  sync_or([&] { rename_path(other, temporary_); });
  temporary_.clear();
  if (ours) {
    auto const old = checkpoints_ / detail::temporary_name(name_);
    std::error_code ignored;
    std::filesystem::rename(usual, old, ignored);
    if (!ignored) detail::try_remove_tree(old);
  }
  return other;
}

FRUGAL_INLINE bool CheckpointWriter::is_replaceable(std::filesystem::path const& folder) {
  std::error_code ignored;
  return std::filesystem::is_directory(std::filesystem::symlink_status(folder, ignored)) &&
         std::filesystem::exists(folder / Manifest::file_name, ignored) &&
         !std::filesystem::exists(folder / detail::gold_name, ignored);
}

FRUGAL_INLINE void CheckpointWriter::require_open() const {
  if (!temporary_.empty()) return;
  throw StoreError({.what = "this checkpoint is committed already",
                    .where = (checkpoints_ / name_).string(),
                    .why = "",
                    .fix = "Begin a new one for each save."});
}

}  // namespace frugal

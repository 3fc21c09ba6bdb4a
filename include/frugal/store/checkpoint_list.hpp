// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/checkpoint.hpp>
#include <frugal/store/file.hpp>
#include <frugal/store/folder.hpp>
#include <frugal/store/in_order.hpp>
#include <frugal/store/io_error.hpp>
#include <frugal/store/manifest_reader.hpp>

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal {

/// A folder among the checkpoints that is none any more.
struct Damage {
  std::filesystem::path folder;
  std::string why;
};

/// What lies in a folder of checkpoints.
struct CheckpointList {
  std::vector<SavedCheckpoint> whole;  ///< with a manifest that reads, newest first
  std::vector<Damage> damaged;         ///< by name
};

namespace detail {

/// The step that a folder's name says, if it has the form that a commit gives: step-00000500, or
/// step-00000500.2. People may give others.
inline std::optional<std::uint64_t> step_of_name(std::string_view name) {
  constexpr std::string_view prefix = "step-";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::uint64_t step = 0;
  auto const [rest, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  name.remove_prefix(static_cast<std::size_t>(rest - name.data()));
  bool const numbered = name.size() > 1 && name.front() == '.' &&
                        name.find_first_not_of("0123456789", 1) == std::string_view::npos;
  if (error != std::errc() || !(name.empty() || numbered)) return std::nullopt;
  return step;
}

}  // namespace detail

/// Reads the manifest of a folder. StoreError if it cannot be read, FormatError if it is damaged,
/// or is of another step than the folder's name says.
inline SavedCheckpoint read_checkpoint(std::filesystem::path const& folder) {
  auto const path = folder / Manifest::file_name;
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) throw detail::io_error("stat", path, errno);
  if (!S_ISREG(status.st_mode)) throw detail::damaged(path, "it is no file");
  File file = File::open(path);
  if (file.size() > Manifest::largest) {
    throw detail::damaged(file.path(), "no manifest has " + std::to_string(file.size()) + " bytes");
  }
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  text.resize(file.read(std::as_writable_bytes(std::span(text.data(), text.size()))));
  Manifest manifest = parse_manifest(text, file.path());
  auto const named = detail::step_of_name(folder.filename().string());
  if (named && *named != manifest.step) {
    throw detail::damaged(file.path(), "it is of step " + std::to_string(manifest.step) +
                                           ", and the folder's name says " +
                                           std::to_string(*named));
  }
  std::error_code ignored;
  return {.folder = folder,
          .manifest = std::move(manifest),
          .gold = std::filesystem::exists(folder / detail::gold_name, ignored)};
}

/// Reads the manifests of all checkpoints in a folder, whatever their folders are called, as long
/// as the name does not say another step. Folders that begin with a dot are not looked at. What is
/// no damage is thrown: to take an older checkpoint because the newest is from a newer library
/// (NewerFormatError), or may not be read by this user, would lose training in silence.
inline CheckpointList list_checkpoints(std::filesystem::path const& folder) {
  CheckpointList list;
  std::error_code ignored;
  for (auto const& path : entries_of(folder)) {
    if (path.filename().string().starts_with('.')) continue;
    // Where the look fails, reading says why.
    auto const status = std::filesystem::status(path, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) continue;
    try {
      list.whole.push_back(read_checkpoint(path));
    } catch (StoreError const& error) {
      if (!detail::is_damage(error)) throw;
      // Retention of a trainer may have taken it between the look and the reading.
      if (std::filesystem::exists(path, ignored)) list.damaged.push_back({path, error.what()});
    }
  }
  detail::put_in_order(list.whole, [](SavedCheckpoint const& a, SavedCheckpoint const& b) {
    if (detail::newer(a.manifest, b.manifest)) return true;
    return !detail::newer(b.manifest, a.manifest) && a.folder < b.folder;
  });
  return list;
}

}  // namespace frugal

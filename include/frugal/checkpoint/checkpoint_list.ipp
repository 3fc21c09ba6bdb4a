// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/checkpoint_list.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/in_order.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/checkpoint/manifest_reader.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::optional<std::uint64_t> step_of_name(std::string_view name) {
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

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE SavedCheckpoint read_checkpoint(std::filesystem::path const& folder) {
  auto const path = folder / Manifest::file_name;
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) throw detail::io_error("stat", path, errno);
  if (!S_ISREG(status.st_mode)) throw detail::damaged(path, "it is not a file");
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

FRUGAL_INLINE CheckpointList list_checkpoints(std::filesystem::path const& folder) {
  CheckpointList list;
  std::error_code ignored;
  for (auto const& path : entries_of(folder)) {
    if (path.filename().string().starts_with('.')) continue;
    // If this fails, the read below reports why.
    auto const status = std::filesystem::status(path, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) continue;
    try {
      list.whole.push_back(read_checkpoint(path));
    } catch (StoreError const& error) {
      if (!detail::is_damage(error)) throw;
      // A trainer's retention may have deleted it since the directory was listed.
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/folder_set.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/data/file_identity.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string_view>
#include <system_error>

namespace frugal {

FRUGAL_INLINE LabelledFile FolderSet::get(std::uint64_t index) const {
  Entry const& entry = at(index);
  std::filesystem::path const path = held_->root / entry.path;
  try {
    File file = File::open(path);
    LabelledFile out{.bytes = std::string(file.size(), '\0'),
                     .label = entry.label,
                     .extension = extension_of(entry.path)};
    out.bytes.resize(file.read(std::as_writable_bytes(std::span(out.bytes))));
    return out;
  } catch (IoError const& error) {
    if (!detail::no_such_file(error.code)) throw;
    throw DataError({.what = "a file of the set cannot be read",
                     .where = path.string(),
                     .why = error.fault().why,
                     .fix = "Do not change the folder while it is read."});
  }
}

FRUGAL_INLINE std::string FolderSet::identity() const {
  Hash all;
  for (Entry const& entry : held_->files) {
    struct stat status{};
    (void)::stat((held_->root / entry.path).c_str(), &status);  // a file that is gone has size 0
    std::uint64_t const words[] = {Hash::of(std::as_bytes(std::span(entry.path))),
                                   static_cast<std::uint64_t>(status.st_size),
                                   static_cast<std::uint64_t>(status.st_mtim.tv_sec),
                                   static_cast<std::uint64_t>(status.st_mtim.tv_nsec)};
    all.update(std::as_bytes(std::span(words)));
  }
  return "folder " + hex_of(all.digest());
}

FRUGAL_INLINE void FolderSet::identify(DataIdentity& to) const {
  detail::FilesIdentity files(held_->files.size());
  for (Entry const& entry : held_->files) files.add(held_->root / entry.path, entry.path);
  files.identify(to);
}

FRUGAL_INLINE std::string FolderSet::lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

FRUGAL_INLINE std::string FolderSet::extension_of(std::string const& path) {
  std::string const all = std::filesystem::path(path).extension().string();
  return all.empty() ? all : lower(all.substr(1));
}

FRUGAL_INLINE FolderSet::Entry const& FolderSet::at(std::uint64_t index) const {
  if (index >= size()) detail::require_sample(index, size(), held_->root.string());
  return held_->files[index];
}

FRUGAL_INLINE bool FolderSet::fits(std::string const& name, FolderSettings const& settings) {
  if (name.starts_with('.')) return false;
  std::string const low = lower(name);
  return settings.endings.empty() ||
         std::any_of(settings.endings.begin(), settings.endings.end(),
                     [&](std::string const& ending) { return low.ends_with(lower(ending)); });
}

FRUGAL_INLINE void FolderSet::collect(std::filesystem::path const& root,
                                      std::filesystem::path const& folder, std::int64_t label,
                                      FolderSettings const& settings,
                                      std::vector<std::pair<std::string, std::string>>& out) {
  std::error_code ignored;
  for (std::filesystem::path const& path : entries_of(root / folder)) {
    std::string const name = path.filename().string();
    auto const kind = std::filesystem::symlink_status(path, ignored).type();
    if (kind == std::filesystem::file_type::directory) {
      collect(root, folder / name, label, settings, out);
    } else if (std::filesystem::is_regular_file(path, ignored) && fits(name, settings)) {
      out.emplace_back(folder.string(), name);
    }
  }
}

FRUGAL_INLINE FolderSet::Held FolderSet::scan(std::filesystem::path const& root,
                                              FolderSettings const& settings) {
  Held out{.root = root, .classes = {}, .files = {}};
  std::error_code ignored;
  for (std::filesystem::path const& path : entries_of(root)) {
    std::string const name = path.filename().string();
    if (!std::filesystem::is_directory(path, ignored) || name.starts_with('.')) continue;
    auto const label = static_cast<std::int64_t>(out.classes.size());
    out.classes.push_back(name);
    std::vector<std::pair<std::string, std::string>> files;  // folder and name
    collect(root, name, label, settings, files);
    if (files.empty()) {
      throw DataError({.what = "a class has no files",
                       .where = path.string(),
                       .why = "no file in it is a sample",
                       .fix = "Remove the folder, or check FolderSettings::endings."});
    }
    std::sort(files.begin(), files.end());
    for (auto const& [folder, file] : files) out.files.push_back({folder + "/" + file, label});
  }
  if (out.classes.empty()) {
    throw DataError({.what = "the folder has no classes",
                     .where = root.string(),
                     .why = std::filesystem::is_directory(root, ignored) ? "it has no folder in it"
                                                                         : "it is no folder",
                     .fix = "Give a folder with one folder for each class."});
  }
  return out;
}

}  // namespace frugal

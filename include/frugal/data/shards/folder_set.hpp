// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/data/data_identity.hpp>
#include <frugal/data/file_identity.hpp>
#include <frugal/data/sample_set.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal {

/// A file of a FolderSet: its bytes and its class.
struct LabelledFile {
  std::string bytes;
  std::int64_t label = 0;   ///< place of the class's folder among all, in the order of their names
  std::string extension{};  ///< of the file's name, in lower case (ASCII), without the dot
};

struct FolderSettings {
  /// Endings of files that are samples, such as ".jpg", without regard to capitals; empty: all
  /// files whose names do not begin with a dot.
  std::vector<std::string> endings{};
};

/// The files of a folder tree whose first level are the classes: root/cat/1.jpg. Files in folders
/// below a class belong to it. Read in any order and by any number of threads.
///
/// Samples come by class, then by folder, then by name, in the order of bytes: that of
/// torchvision's ImageFolder, with the same labels. Links to files and to classes are followed,
/// links to folders below a class are not.
///
/// Cost    memory: the path of each file.
/// Errors  DataError for a folder without classes, a class without files, or a file that is gone;
///         StoreError for a folder that cannot be read; IoError for a file that cannot be read now.
class FolderSet {
 public:
  explicit FolderSet(std::filesystem::path const& root, FolderSettings const& settings = {})
      : held_(std::make_shared<Held const>(scan(root, settings))) {}

  std::uint64_t size() const { return held_->files.size(); }

  FRUGAL_INLINE LabelledFile get(std::uint64_t index) const {
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

  std::string name(std::uint64_t index) const { return (held_->root / at(index).path).string(); }
  /// Without the file, which get() reads.
  std::int64_t label(std::uint64_t index) const { return at(index).label; }
  /// Names of the classes; a label is a place in it.
  std::vector<std::string> const& classes() const { return held_->classes; }

  /// Changes when a file has another size or time, or there are others. Asks for each file.
  FRUGAL_INLINE std::string identity() const {
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

  /// Wherever the folder lies, and whenever it was fetched.
  FRUGAL_INLINE void identify(DataIdentity& to) const {
    detail::FilesIdentity files(held_->files.size());
    for (Entry const& entry : held_->files) files.add(held_->root / entry.path, entry.path);
    files.identify(to);
  }

 private:
  struct Entry {
    std::string path;  // from the root
    std::int64_t label = 0;
  };
  struct Held {
    std::filesystem::path root;
    std::vector<std::string> classes;
    std::vector<Entry> files;
  };

  FRUGAL_INLINE static std::string lower(std::string text) {
    for (char& c : text) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
  }
  FRUGAL_INLINE static std::string extension_of(std::string const& path) {
    std::string const all = std::filesystem::path(path).extension().string();
    return all.empty() ? all : lower(all.substr(1));
  }

  FRUGAL_INLINE Entry const& at(std::uint64_t index) const {
    if (index >= size()) detail::require_sample(index, size(), held_->root.string());
    return held_->files[index];
  }

  FRUGAL_INLINE static bool fits(std::string const& name, FolderSettings const& settings) {
    if (name.starts_with('.')) return false;
    std::string const low = lower(name);
    return settings.endings.empty() ||
           std::any_of(settings.endings.begin(), settings.endings.end(),
                       [&](std::string const& ending) { return low.ends_with(lower(ending)); });
  }

  /// The files below `folder`: those in it, then those of each folder in it.
  FRUGAL_INLINE static void collect(std::filesystem::path const& root,
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

  FRUGAL_INLINE static Held scan(std::filesystem::path const& root,
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
                       .why = std::filesystem::is_directory(root, ignored)
                                  ? "it has no folder in it"
                                  : "it is no folder",
                       .fix = "Give a folder with one folder for each class."});
    }
    return out;
  }

  std::shared_ptr<Held const> held_;
};

}  // namespace frugal

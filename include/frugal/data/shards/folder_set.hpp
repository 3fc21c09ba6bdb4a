// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/error.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
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

  LabelledFile get(std::uint64_t index) const;

  std::string name(std::uint64_t index) const { return (held_->root / at(index).path).string(); }
  /// Without the file, which get() reads.
  std::int64_t label(std::uint64_t index) const { return at(index).label; }
  /// Names of the classes; a label is a place in it.
  std::vector<std::string> const& classes() const { return held_->classes; }

  /// Changes when a file has another size or time, or there are others. Asks for each file.
  std::string identity() const;

  /// Wherever the folder lies, and whenever it was fetched.
  void identify(DataIdentity& to) const;

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

  static std::string lower(std::string text);
  static std::string extension_of(std::string const& path);

  Entry const& at(std::uint64_t index) const;

  static bool fits(std::string const& name, FolderSettings const& settings);

  /// The files below `folder`: those in it, then those of each folder in it.
  static void collect(std::filesystem::path const& root, std::filesystem::path const& folder,
                      std::int64_t label, FolderSettings const& settings,
                      std::vector<std::pair<std::string, std::string>>& out);

  static Held scan(std::filesystem::path const& root, FolderSettings const& settings);

  std::shared_ptr<Held const> held_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/folder_set.ipp>
#endif

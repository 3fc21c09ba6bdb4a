// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file_id.hpp>
#include <frugal/checkpoint/lock_owner.hpp>
#include <frugal/error.hpp>

#include <unistd.h>

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>

namespace frugal::detail {

/// `hint` is appended to the fix.
LockError lock_refusal(std::filesystem::path const& lock, std::optional<LockOwner> const& owner,
                       std::string const& hint);

std::string removal_hint(std::initializer_list<std::filesystem::path> files);

/// LockError unless the name still refers to the file that was locked.
void require_same_file(std::filesystem::path const& path, FileId const& held);

/// The lock for file systems without flock: a file `lock.owner` that names its owner. An orderly
/// end removes it; an owner killed on this machine can be recognised as dead.
class OwnerFile {
 public:
  static std::filesystem::path path_of(std::filesystem::path lock) { return lock += ".owner"; }

  /// LockError unless the existing file `path` belongs to a dead owner.
  static void require_dead(std::filesystem::path const& path, std::filesystem::path const& lock);

  explicit OwnerFile(std::filesystem::path const& lock);
  OwnerFile(OwnerFile const&) = delete;
  OwnerFile& operator=(OwnerFile const&) = delete;
  /// If the folder was renamed and replaced, the file now belongs to another trainer.
  ~OwnerFile() {
    if (FileId::of(path_) == id_) ::unlink(path_.c_str());
  }

  void require_held() const { require_same_file(path_, id_); }

 private:
  /// Two trainers that find the same dead owner must not both win, and neither may remove the
  /// other's new file: the one that creates the folder may replace it, the other is refused.
  void replace_dead_owner(std::filesystem::path const& mine);

  std::filesystem::path lock_;
  std::filesystem::path path_;
  FileId id_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/owner_file.ipp>
#endif

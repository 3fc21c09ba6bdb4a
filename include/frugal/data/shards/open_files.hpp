// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/file_id.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/error.hpp>

#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// IoError if the system does not say.
inline FileStamp stamp_of(File const& file) {
  struct stat status{};
  if (::fstat(file.descriptor(), &status) != 0) throw io_error("fstat", file.path(), errno);
  return FileStamp::of(status);
}

/// The open ones among the files that sets read: at most `most` between reads, for sets of more
/// files than a process may have open. The file that was read longest ago is closed first.
class FilePool {
 public:
  /// A file that may be open.
  struct Slot {
    std::filesystem::path path;
    FileStamp stamp{};
    std::shared_ptr<File const> file{};  ///< under the pool's mutex
    std::list<Slot*>::iterator place{};
  };

  explicit FilePool(std::size_t most) : most_(std::max<std::size_t>(most, 1)) {}
  FilePool(FilePool const&) = delete;
  FilePool& operator=(FilePool const&) = delete;

  /// That of all sets of the process: 256 files, or a quarter of what the process may open.
  static FilePool& shared() {
    // Never destroyed: a worker that was left behind may still read.
    static FilePool& pool = *[] {
      rlimit limit{};
      std::size_t const allowed =
          ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<std::size_t>(limit.rlim_cur) : 1024;
      return new FilePool(std::min<std::size_t>(256, allowed / 4));
    }();
    // A process that is forked while a worker reads must not inherit a mutex that nobody unlocks.
    [[maybe_unused]] static int const registered = ::pthread_atfork(
        [] { pool.mutex_.lock(); }, [] { pool.mutex_.unlock(); }, [] { pool.mutex_.unlock(); });
    return pool;
  }

  /// The file of a slot, opened by `open()` if it is not. Whoever holds it keeps it open.
  template <class Open>
  std::shared_ptr<File const> file(Slot& slot, Open&& open) {
    {
      std::lock_guard const lock(mutex_);
      if (slot.file) {
        open_.splice(open_.begin(), open_, slot.place);
        return slot.file;
      }
    }
    // Without the lock: a file server may take its time.
    auto opened = std::make_shared<File const>(or_with_fewer(open));
    std::vector<std::shared_ptr<File const>> closed;  // after the lock
    std::lock_guard const lock(mutex_);
    if (slot.file) return slot.file;  // another thread was faster
    open_.push_front(&slot);
    slot.place = open_.begin();
    slot.file = opened;
    while (open_.size() > most_) closed.push_back(close_oldest());
    return opened;
  }

  void forget(Slot& slot) {
    std::shared_ptr<File const> closed;
    std::lock_guard const lock(mutex_);
    if (!slot.file) return;
    open_.erase(slot.place);
    closed = std::move(slot.file);
  }

 private:
  std::shared_ptr<File const> close_oldest() {
    Slot& oldest = *open_.back();
    open_.pop_back();
    return std::exchange(oldest.file, nullptr);
  }

  /// Where the process has no descriptor left, those of the pool are given up first.
  template <class Open>
  File or_with_fewer(Open&& open) {
    try {
      return open();
    } catch (IoError const& error) {
      if (error.code != EMFILE && error.code != ENFILE) throw;
    }
    {
      std::vector<std::shared_ptr<File const>> closed;
      std::lock_guard const lock(mutex_);
      while (!open_.empty()) closed.push_back(close_oldest());
    }
    return open();
  }

  std::size_t most_;
  std::mutex mutex_;
  std::list<Slot*> open_;  // the last that was read first
};

/// A file that is read at any place, by several threads at the same time, through a FilePool.
/// Copies share it.
///
/// Each read asks the system whether the file is still the one that was opened first, after it has
/// read: bytes of another file, or of later content, are an error and not a result.
///
/// Errors  ChangedError; IoError for what cannot be read now, and from the constructor for what
///         cannot be opened; StoreError for a folder; DataError for a read beyond the end.
class PooledFile {
 public:
  explicit PooledFile(std::filesystem::path path, FilePool& pool = FilePool::shared())
      : pool_(&pool),
        slot_(new FilePool::Slot{.path = std::move(path)},
              [&pool](FilePool::Slot* slot) { close(pool, slot); }) {
    static_cast<void>(pool_->file(*slot_, [this] {
      File file = File::open(slot_->path);
      struct stat status{};
      if (::fstat(file.descriptor(), &status) != 0) throw io_error("fstat", slot_->path, errno);
      if (S_ISDIR(status.st_mode)) {
        throw StoreError({.what = "the file cannot be read",
                          .where = slot_->path.string(),
                          .why = "it is a folder",
                          .fix = "Give the path of a file."});
      }
      slot_->stamp = FileStamp::of(status);
      return file;
    }));
  }

  std::filesystem::path const& path() const { return slot_->path; }
  FileStamp const& stamp() const { return slot_->stamp; }
  std::uint64_t size() const { return slot_->stamp.size; }

  /// Fills `out` with the bytes from `offset` on; returns how many there are, fewer only at the
  /// end of the file.
  std::size_t read_some(std::uint64_t offset, std::span<char> out) const {
    std::shared_ptr<File const> const file = pool_->file(*slot_, [this] { return again(); });
    std::size_t got = 0;
    while (got < out.size()) {
      ssize_t const some = ::pread(file->descriptor(), out.data() + got, out.size() - got,
                                   static_cast<off_t>(offset + got));
      if (some < 0 && errno == EINTR) continue;
      if (some < 0) throw io_error("pread", slot_->path, errno);
      if (some == 0) break;
      got += static_cast<std::size_t>(some);
    }
    require_same(stamp_of(*file));
    return got;
  }

  /// The same of bytes that the file has.
  void read(std::uint64_t offset, std::span<char> out) const {
    if (read_some(offset, out) == out.size()) return;
    throw DataError({.what = "a file ends before what is read of it",
                     .where = slot_->path.string() + ", byte " + std::to_string(offset),
                     .why = std::to_string(out.size()) + " bytes are wanted, and the file has " +
                            std::to_string(size()),
                     .fix = "Fetch the file again."});
  }

 private:
  static void close(FilePool& pool, FilePool::Slot* slot) {
    pool.forget(*slot);
    delete slot;
  }

  /// Opened again, after the pool has closed it.
  File again() const {
    try {
      File file = File::open(slot_->path);
      require_same(stamp_of(file));
      return file;
    } catch (IoError const& error) {
      if (!no_such_file(error.code)) throw;
      changed("it is no longer there");
    }
  }

  void require_same(FileStamp const& now) const {
    FileStamp const& then = slot_->stamp;
    if (now == then) return;
    if (now.id != then.id) changed("another file has its name");
    if (now.size != then.size) {
      changed("it had " + std::to_string(then.size) + " bytes, and has " +
              std::to_string(now.size));
    }
    changed(now.modified != then.modified
                ? "it was written to"
                : "its time of change (ctime) is another: it was written to, renamed, removed or "
                  "linked, or has another mode or owner");
  }

  [[noreturn]] void changed(std::string why) const {
    throw ChangedError({.what = "a file has changed while it is read",
                        .where = slot_->path.string(),
                        .why = std::move(why),
                        .fix = "Do not change, move or replace the files of a set under a run. "
                               "Start again with those that are there."});
  }

  FilePool* pool_;
  std::shared_ptr<FilePool::Slot> slot_;
};

/// A file of a table. DataError for one that is not there, or is none.
inline PooledFile table_file(std::filesystem::path const& path, char const* fix) {
  auto const refuse = [&](Error const& error) -> PooledFile {
    throw DataError({.what = "the file cannot be opened",
                     .where = path.string(),
                     .why = error.fault().why,
                     .fix = fix});
  };
  try {
    return PooledFile(path);
  } catch (IoError const& error) {
    if (!no_such_file(error.code)) throw;
    return refuse(error);
  } catch (StoreError const& error) {
    return refuse(error);
  }
}

}  // namespace frugal::detail

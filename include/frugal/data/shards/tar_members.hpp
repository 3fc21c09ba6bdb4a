// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/open_files.hpp>
#include <frugal/error.hpp>

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

// Needs libarchive: FRUGAL_ARCHIVE=ON, and the target frugal::archive.
namespace frugal::detail {

/// The members of a tar file one after the other, as libarchive reads them: ustar, pax and GNU
/// names, sizes above 8 GiB. Tar files that were joined end to end (`cat a.tar b.tar`) are one: the
/// blocks of zeros at the end of each are passed over.
///
/// Errors  DataError for damage; those of PooledFile for a file that cannot be read now, or that
///         has changed.
class TarMembers {
 public:
  enum class Filters {
    none,  ///< positions are those in the file
    all,   ///< decompresses what libarchive can; positions are those in the tar stream
  };

  struct Member {
    std::string name;
    std::uint64_t size = 0;  ///< in bytes
    bool plain = false;      ///< a regular file: no folder, link or device
    bool sparse = false;
  };

  TarMembers(PooledFile file, Filters filters)
      : source_(std::make_unique<Bytes>(std::move(file))), handle_(archive_read_new()) {
    if (!handle_) throw std::bad_alloc();
    require(archive_read_support_format_tar(handle_.get()));
    require(
        archive_read_set_format_option(handle_.get(), "tar", "read_concatenated_archives", "1"));
    // An external program for a filter is a warning, and not our concern.
    if (filters == Filters::all) (void)archive_read_support_filter_all(handle_.get());
    require(archive_read_open2(handle_.get(), source_.get(), nullptr, &Bytes::give, &Bytes::skip,
                               nullptr));
  }

  /// Goes to the next member; false at the end. DataError for damage: nothing can be read after it.
  bool next() {
    archive_entry* entry = nullptr;
    int const result = archive_read_next_header(handle_.get(), &entry);
    if (result == ARCHIVE_EOF && !source_->failure) return false;
    // A warning: a name that this locale cannot convert. It is given as it is stored.
    if (result != ARCHIVE_WARN) require(result);
    char const* const name = archive_entry_pathname(entry);
    member_.name = name == nullptr ? "" : name;
    member_.plain = archive_entry_filetype(entry) == AE_IFREG &&
                    archive_entry_hardlink(entry) == nullptr &&
                    archive_entry_symlink(entry) == nullptr;
    member_.sparse = archive_entry_sparse_reset(entry) > 0;
    la_int64_t const size = archive_entry_size_is_set(entry) == 0 ? 0 : archive_entry_size(entry);
    if (size < 0) fail("a member has a size below 0");
    member_.size = static_cast<std::uint64_t>(size);
    return true;
  }

  Member const& current() const { return member_; }

  /// Bytes of the tar stream that were read: after next(), where the member's content begins.
  std::uint64_t position() const {
    la_int64_t const at = archive_filter_bytes(handle_.get(), 0);
    return at < 0 ? 0 : static_cast<std::uint64_t>(at);
  }

  /// The content of the current member, of at most `most` bytes.
  std::string content(std::uint64_t most) {
    if (member_.size > most) {
      fail("a member has " + std::to_string(member_.size) + " bytes, and at most " +
           std::to_string(most) + " are read");
    }
    std::string out;
    std::string block(std::size_t{1} << 18, '\0');
    // In blocks: a header may claim any size.
    while (out.size() <= member_.size) {
      la_ssize_t const got = archive_read_data(handle_.get(), block.data(), block.size());
      if (got < 0) require(static_cast<int>(got));
      if (got <= 0) break;
      out.append(block, 0, static_cast<std::size_t>(got));
    }
    if (out.size() != member_.size) fail("a member is cut off");
    return out;
  }

 private:
  /// What libarchive reads. An exception must not pass through a C library: it is kept until the
  /// call returns.
  struct Bytes {
    explicit Bytes(PooledFile of) : file(std::move(of)), block(std::size_t{1} << 18) {}

    static la_ssize_t give(archive* handle, void* self, void const** bytes) {
      auto& from = *static_cast<Bytes*>(self);
      try {
        std::size_t const got = from.file.read_some(from.at, from.block);
        from.at += got;
        *bytes = from.block.data();
        return static_cast<la_ssize_t>(got);
      } catch (...) {
        from.failure = std::current_exception();
        archive_set_error(handle, EIO, "the file cannot be read");
        return ARCHIVE_FATAL;
      }
    }
    static la_int64_t skip(archive*, void* self, la_int64_t wanted) {
      auto& from = *static_cast<Bytes*>(self);
      // Not beyond the end: libarchive then reads, and finds that the file is cut off.
      std::uint64_t const left = from.file.size() - std::min(from.at, from.file.size());
      std::uint64_t const skipped = std::min(static_cast<std::uint64_t>(wanted), left);
      from.at += skipped;
      return static_cast<la_int64_t>(skipped);
    }

    PooledFile file;
    std::vector<char> block;
    std::uint64_t at = 0;
    std::exception_ptr failure{};
  };

  struct Free {
    void operator()(archive* handle) const noexcept { archive_free(handle); }
  };

  void require(int result) const {
    if (source_->failure) std::rethrow_exception(source_->failure);
    if (result == ARCHIVE_OK) return;
    char const* const why = archive_error_string(handle_.get());
    fail(why != nullptr ? why : "libarchive gives no reason");
  }

  [[noreturn]] void fail(std::string why) const {
    throw DataError(
        {.what = "a tar file is damaged, or is none",
         .where = source_->file.path().string() + ", byte " + std::to_string(position()),
         .why = std::move(why),
         .fix = "Fetch the file again; OnDamage::Skip keeps its whole samples."});
  }

  std::unique_ptr<Bytes> source_;  // libarchive keeps its address
  std::unique_ptr<archive, Free> handle_;
  Member member_;
};

}  // namespace frugal::detail

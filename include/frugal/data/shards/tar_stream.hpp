// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/open_files.hpp>
#include <frugal/data/shards/tar_sample.hpp>
#include <frugal/error.hpp>

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
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

namespace frugal {

/// Reads the samples of one tar file in their order, compressed or not (gzip, zstd, bzip2, xz, and
/// what else this libarchive can): to pack them. Training reads a TarSet.
///
/// Errors  DataError naming file and member, for what TarSet refuses. After one of a member, next()
///         continues after its sample; after one of the file it gives nothing more. IoError for a
///         file that cannot be read now, ChangedError for one that changes under it.
class TarStream {
 public:
  /// A member above `most` bytes is refused: it is read into memory.
  explicit TarStream(std::filesystem::path path, std::uint64_t most = std::uint64_t{1} << 32)
      : path_(std::move(path)),
        most_(most),
        members_(detail::PooledFile(path_), detail::TarMembers::Filters::all) {}

 private:
  /// What the call gives; an error of it ends the file.
  template <class Call>
  auto or_end(Call&& call) {
    try {
      return call();
    } catch (Error const&) {
      end_ = true;
      throw;
    }
  }

 public:
  /// The next sample; nothing at the end.
  std::optional<PackedSample> next() {
    if (!unsafe_.empty()) tell_of_unsafe();
    PackedSample out;
    bool begun = false;
    std::string lost, why;
    while (ahead(begun)) {
      std::string const& name = members_.current().name;
      auto const parts = detail::split_member_name(name);
      if (begun && parts->key != out.key) break;
      begun = true;
      out.key = parts->key;
      ahead_ = false;
      if (!lost.empty()) continue;
      why = fault_of(out, parts->extension);
      if (!why.empty()) {
        lost = name;
        continue;
      }
      out.fields.push_back({parts->extension, or_end([&] { return members_.content(most_); })});
    }
    if (!begun && !unsafe_.empty()) tell_of_unsafe();
    if (!begun) return std::nullopt;
    if (!lost.empty()) fail(lost, std::move(why));
    return out;
  }

 private:
  struct Unsafe {
    std::string member, why;
  };
  /// The most members with unsafe names that are remembered while a sample is read; more end the
  /// sample.
  static constexpr std::size_t most_unsafe = 1000;

  /// Is there a member of a sample that next() has not taken?
  bool ahead(bool begun) {
    while (!ahead_ && !end_) {
      // The sample that is being read is whole, perhaps with members after it: it is given first.
      if (!unsafe_.empty() && (!begun || unsafe_.size() == most_unsafe)) break;
      end_ = !or_end([&] { return members_.next(); });
      if (end_) break;
      detail::TarMembers::Member const& member = members_.current();
      if (!member.plain || detail::is_meta_name(member.name)) continue;
      if (std::string why = detail::unsafe_name(member.name); !why.empty()) {
        unsafe_.push_back({detail::shown_name(member.name), std::move(why)});
        continue;
      }
      ahead_ = detail::split_member_name(member.name).has_value();
    }
    return ahead_;
  }

  [[noreturn]] void tell_of_unsafe() {
    Unsafe const first = std::move(unsafe_.front());
    unsafe_.pop_front();
    fail(first.member, first.why);
  }

  std::string fault_of(PackedSample const& sample, std::string const& extension) const {
    detail::TarMembers::Member const& member = members_.current();
    if (member.sparse) return "it is a sparse file, stored in pieces";
    if (member.size > most_) {
      return "it has " + std::to_string(member.size) + " bytes, and at most " +
             std::to_string(most_) + " are read";
    }
    bool const twice =
        std::any_of(sample.fields.begin(), sample.fields.end(),
                    [&](PackedSample::Field const& field) { return field.extension == extension; });
    return twice ? "the sample has a member of that name already" : "";
  }

  [[noreturn]] void fail(std::string const& member, std::string why) const {
    throw DataError({.what = "a tar file has a member that cannot be read",
                     .where = path_.string() + ", member " + detail::shown_name(member),
                     .why = std::move(why),
                     .fix = "Fetch the file again or pack it again; OnDamage::Skip leaves that "
                            "sample out."});
  }

  std::filesystem::path path_;
  std::uint64_t most_;
  detail::TarMembers members_;
  std::deque<Unsafe> unsafe_;  // members with unsafe names, each for a call of its own
  bool ahead_ = false;         // current() is a member that no sample has yet
  bool end_ = false;
};

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/folder.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/data/shards/tar_sample.hpp>
#include <frugal/error.hpp>

#include <archive.h>
#include <archive_entry.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

// Needs libarchive: FRUGAL_ARCHIVE=ON, and the target frugal::archive.
namespace frugal {

/// How samples are cut into shards; whichever limit comes first begins another one.
struct ShardLimits {
  std::uint64_t samples = 100'000;  ///< of a shard, at least 1
  std::uint64_t bytes =
      std::uint64_t{3'000'000'000};  ///< of a shard's file; one sample may exceed it
};

/// A field of a sample that is written: "jpg", and its bytes.
struct ShardField {
  std::string_view extension;
  std::string_view bytes;
};

/// Writes samples to the tar files shard-000000.tar, shard-000001.tar, ... of a folder, in
/// WebDataset's layout. The same samples give the same bytes: owner, mode and time are fixed.
///
/// A shard has a temporary name until it is whole and on disk, so that readers never see a part of
/// one. finish() ends the last; a writer that is destroyed before removes it.
///
/// Errors  SettingsError for a limit of 0 samples, or for a shard that is there already; DataError
///         for a sample whose key, extensions or order WebDataset's readers would not give back;
///         StoreError where the disk fails.
class TarShardWriter {
 public:
  explicit TarShardWriter(std::filesystem::path folder, ShardLimits limits = {},
                          std::string prefix = "shard")
      : folder_(std::move(folder)), limits_(limits), prefix_(std::move(prefix)) {
    if (limits_.samples == 0) {
      throw SettingsError({.what = "a shard of 0 samples",
                           .where = "ShardLimits::samples",
                           .why = "",
                           .fix = "Set it to 1 or more."});
    }
    create_folders(folder_);
  }

  /// Appends a sample. Its key must differ from that of the sample before.
  void add(std::string_view key, std::span<ShardField const> fields) {
    check(key, fields);
    std::uint64_t size = 0;
    for (ShardField const& field : fields) size += 512 + (field.bytes.size() + 511) / 512 * 512;
    if (shard_ && (in_shard_ >= limits_.samples || in_bytes_ + size + 1024 > limits_.bytes)) {
      close();
    }
    if (!shard_) open();
    for (ShardField const& field : fields) {
      shard_->add(std::string(key) + "." + std::string(field.extension), field.bytes);
      bytes_ += field.bytes.size();
    }
    last_key_ = key;
    in_bytes_ += size;
    ++in_shard_;
    ++samples_;
  }
  void add(std::string_view key, std::initializer_list<ShardField> fields) {
    add(key, std::span(fields.begin(), fields.size()));
  }

  /// Whether the key is that of the sample before, which readers would make one of the two.
  bool repeats(std::string_view key) const { return shard_ && in_shard_ != 0 && key == last_key_; }

  /// Ends the last shard.
  void finish() {
    if (shard_) close();
  }

  std::uint64_t samples() const { return samples_; }
  std::uint64_t bytes() const { return bytes_; }  ///< of the fields
  /// The shards that are whole.
  std::vector<std::filesystem::path> const& shards() const { return shards_; }

 private:
  struct FreeArchive {
    void operator()(archive* handle) const noexcept { archive_free(handle); }
  };
  struct FreeEntry {
    void operator()(archive_entry* entry) const noexcept { archive_entry_free(entry); }
  };

  /// One tar file that is being written.
  struct Shard {
    explicit Shard(std::filesystem::path const& path) : file(path), handle(archive_write_new()) {
      if (!handle) throw std::bad_alloc();
      // One header of 512 bytes for a member, and another for a name above 100 bytes. libarchive's
      // pax would give each member two more blocks, to say that names are stored as they are.
      require(archive_write_set_format_gnutar(handle.get()));
      require(archive_write_add_filter_none(handle.get()));
      require(archive_write_set_bytes_in_last_block(handle.get(), 1));
      require(archive_write_open(handle.get(), this, nullptr, &Shard::take, nullptr));
    }
    Shard(Shard const&) = delete;
    Shard& operator=(Shard const&) = delete;
    ~Shard() {
      if (closed) return;
      given_up = true;
      archive_write_fail(handle.get());
      archive_write_close(handle.get());
    }

    void add(std::string const& name, std::string_view bytes) {
      std::unique_ptr<archive_entry, FreeEntry> const entry(archive_entry_new());
      if (!entry) throw std::bad_alloc();
      archive_entry_set_pathname(entry.get(), name.c_str());
      archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes.size()));
      archive_entry_set_filetype(entry.get(), AE_IFREG);
      archive_entry_set_perm(entry.get(), 0444);
      archive_entry_set_mtime(entry.get(), 0, 0);
      require(archive_write_header(handle.get(), entry.get()));
      while (!bytes.empty()) {
        la_ssize_t const wrote = archive_write_data(handle.get(), bytes.data(), bytes.size());
        if (wrote <= 0) require(wrote == 0 ? ARCHIVE_FATAL : static_cast<int>(wrote));
        bytes.remove_prefix(static_cast<std::size_t>(wrote));
      }
      require(archive_write_finish_entry(handle.get()));
    }

    void close() {
      require(archive_write_close(handle.get()));
      closed = true;
      file.publish();
    }

    // An exception must not pass through a C library: it is kept until the call returns.
    static la_ssize_t take(archive*, void* self, void const* data, std::size_t size) {
      auto& shard = *static_cast<Shard*>(self);
      try {
        if (!shard.given_up) shard.file.write({static_cast<std::byte const*>(data), size});
      } catch (...) {
        shard.given_up = true;
        shard.failure = std::current_exception();
      }
      return static_cast<la_ssize_t>(size);
    }

    void require(int result) {
      if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
      if (result == ARCHIVE_OK) return;
      char const* const why = archive_error_string(handle.get());
      throw StoreError({.what = "a shard cannot be written",
                        .where = file.path().string(),
                        .why = why != nullptr ? why : "libarchive gives no reason",
                        .fix = "Use shorter keys."});
    }

    detail::NewFile file;
    std::exception_ptr failure;
    bool given_up = false;
    bool closed = false;
    std::unique_ptr<archive, FreeArchive> handle;
  };

  void open() {
    std::string number = std::to_string(shards_.size());
    number.insert(0, number.size() < 6 ? 6 - number.size() : 0, '0');
    target_ = folder_ / (prefix_ + "-" + number + ".tar");
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::symlink_status(target_, ignored))) {
      throw SettingsError({.what = "a shard is there already",
                           .where = target_.string(),
                           .why = "nothing is overwritten",
                           .fix = "Write to an empty folder."});
    }
    shard_.emplace(target_);
    in_shard_ = 0;
    in_bytes_ = 0;
  }

  void close() {
    shard_->close();
    shard_.reset();
    shards_.push_back(target_);
  }

  void check(std::string_view key, std::span<ShardField const> fields) const {
    std::string why;
    std::set<std::string_view> seen;
    if (fields.empty()) why = "it has no field";
    if (repeats(key)) {
      why = "its key is that of the sample before: readers would make one of the two";
    }
    for (ShardField const& field : fields) {
      std::string const name = std::string(key) + "." + std::string(field.extension);
      auto const parts = detail::split_member_name(name);
      if (std::string unsafe = detail::unsafe_name(name); !unsafe.empty()) {
        why = std::move(unsafe);
      } else if (!parts || parts->key != key || parts->extension != field.extension ||
                 field.extension.empty() || detail::is_meta_name(name)) {
        why = "the name " + detail::shown_name(name) +
              " reads as another key and extension: a key has no dot after its last slash, and an "
              "extension has no slash and no capital letter";
      } else if (!seen.insert(field.extension).second) {
        why = "it has the field " + std::string(field.extension) + " twice";
      }
    }
    if (why.empty()) return;
    throw DataError(
        {.what = "a sample cannot be written to a tar shard",
         .where = "sample " + std::to_string(samples_) + ", key " + detail::shown_name(key),
         .why = std::move(why),
         .fix = "Give it another key, or other extensions."});
  }

  std::filesystem::path folder_;
  ShardLimits limits_;
  std::string prefix_;
  std::filesystem::path target_;
  std::optional<Shard> shard_;
  std::uint64_t in_shard_ = 0;  // samples
  std::uint64_t in_bytes_ = 0;  // of its tar file, up to here
  std::uint64_t samples_ = 0;
  std::uint64_t bytes_ = 0;
  std::string last_key_;
  std::vector<std::filesystem::path> shards_;
};

}  // namespace frugal

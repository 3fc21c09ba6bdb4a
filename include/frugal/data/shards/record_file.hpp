// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/little_endian.hpp>
#include <frugal/data/shards/damage.hpp>
#include <frugal/data/shards/record_layout.hpp>
#include <frugal/error.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal {

/// When a block of records is checked against its hash.
enum class Verify {
  FirstTouch,  ///< when the first of its records is read, and not again
  AtOpen,      ///< all of them when the file is opened: it is read once from end to end
  Never,       ///< not at all: for files that were checked before
};

/// Records in one memory-mapped safetensors file, of ShardFiles or of any other program
/// (record_layout.hpp has the format). Safe to read from several threads.
///
/// Cost    opening reads header and hashes: 8 bytes for each block of 64 KiB; and 8 bytes for each
///         record of records of any bytes. A record is views of the file: no copy, no system call.
/// Errors  DataError with file, tensor and byte: empty, cut off, of another format, of a newer
///         version, with tensors that are no records, or damaged in header, hashes or block; with
///         Verify::AtOpen for a file without hashes. StoreError if it cannot be opened.
class RecordFile {
 public:
  explicit RecordFile(std::filesystem::path const& path, Verify verify = Verify::FirstTouch)
      : name_(path.string()), file_(path, MappedFile::Access::normal), bytes_(file_.bytes()) {
    read(verify);
  }

  /// Parses bytes in memory, which must outlive it; errors call them `name`.
  static RecordFile parse(std::span<std::byte const> bytes, std::string name,
                          Verify verify = Verify::FirstTouch) {
    return RecordFile(bytes, std::move(name), verify);
  }

  /// Records.
  std::uint64_t size() const noexcept { return records_; }
  RecordLayout const& layout() const noexcept { return layout_; }
  std::string const& name() const noexcept { return name_; }
  /// Changes with the layout and with every block: the hash of header and hashes; of a file without
  /// hashes, which it reads, that of all its bytes.
  std::uint64_t hash() const;

  /// The bytes of a field of a record below size(), as long as this object lives: those of the next
  /// record follow them. Records of any bytes have one field.
  std::span<std::byte const> get(std::uint64_t record, std::size_t field = 0) const;

 private:
  enum State : unsigned char { unknown, sound, damaged };

  struct Column {
    std::string name;
    std::span<std::byte const> bytes;
    std::uint64_t row = 0;          ///< bytes of one record
    std::uint64_t first_block = 0;  ///< place in the hashes
  };

  RecordFile(std::span<std::byte const> bytes, std::string name, Verify verify)
      : name_(std::move(name)), bytes_(bytes) {
    read(verify);
  }

  void read(Verify verify);

  /// The tensors of another program's file: in the order of their names, since the format has none.
  static std::vector<std::string> all_fields(Safetensors const& tensors);

  std::vector<std::string> hashed_fields(Safetensors const& tensors);

  void read_fields(Safetensors const& tensors);

  void read_bytes(Safetensors const& tensors);

  void read_hashes(TensorView const& table);

  void verify_all() const;

  void check_offsets() const;

  /// Where a record of any bytes begins; negative numbers are larger than any file.
  std::uint64_t offset(std::uint64_t record) const {
    return detail::load_le<std::uint64_t>(columns_[1].bytes, 8 * record);
  }
  std::uint64_t hash_at(std::uint64_t place) const {
    return detail::load_le<std::uint64_t>(hashes_, 8 * place);
  }

  void require_sound(Column const& column, std::uint64_t begin, std::uint64_t end,
                     std::uint64_t record) const;

  void check(Column const& column, std::uint64_t block, std::uint64_t record) const;

  /// The file; and of a tensor that has a name, a byte of it as an offset in the file.
  std::string place(Column const& column, std::uint64_t byte) const;
  [[noreturn]] void fail(Column const& column, std::uint64_t byte, std::string why) const;

  std::string name_;
  MappedFile file_;  ///< empty for bytes in memory
  std::span<std::byte const> bytes_;
  RecordLayout layout_;
  std::vector<Column> columns_;
  std::uint64_t records_ = 0;
  std::uint64_t block_bytes_ = 1;
  std::span<std::byte const> hashes_;  ///< of the blocks, then of header and hashes; may be empty
  std::unique_ptr<std::atomic<unsigned char>[]> checked_;  ///< a State per block; null: never
};

/// How shards are read.
struct RecordReading {
  OnDamage on_damage = OnDamage::Fail;  ///< for shards that are missing, cut off or damaged
  Verify verify = Verify::FirstTouch;   ///< with AtOpen, Skip finds damaged blocks as well
};

/// The records of a folder of shards, or of one file: a SampleSet of the bytes of their first field.
/// Copies share the mapped files.
///
/// Errors  DataError for a shard that is missing, not the one that was written, or does not have
///         the layout of the others, and those of RecordFile. With OnDamage::Skip such a shard is
///         left out, counted and named in damage(): the set is smaller then. A block that is found
///         damaged later is a DataError of get() in either case: size() does not change under a
///         run. IoError for a shard that cannot be opened now; DataError for an index of size() or
///         more.
class RecordFolder {
 public:
  /// Where a record is.
  struct Place {
    std::size_t shard = 0;
    std::uint64_t record = 0;  ///< in the shard
  };

  explicit RecordFolder(std::filesystem::path const& path, RecordReading reading = {})
      : folder_(path), reading_(reading) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
      std::optional<ShardList> list;
      if (open_or_skip(reading_.on_damage, damage_, (path / ShardList::file_name).string(),
                       [&] { list = ShardList::read(path); })) {
        for (ShardList::Shard const& shard : list->shards) open(path / shard.name, shard.hash);
      } else {
        for (auto const& each : entries_of(path)) {
          if (each.extension() == detail::shard_suffix) open(each, std::nullopt);
        }
      }
    } else {
      open(path, std::nullopt);
    }
    if (files_.empty()) {
      throw EmptySourceError({.what = "there is no shard to read",
                              .where = path.string(),
                              .why = damage_.text(),
                              .fix = "Give a folder that ShardWriter finished."});
    }
    uniform_ = files_.front()->size();
    for (std::size_t i = 0; i + 1 < files_.size(); ++i) {
      if (files_[i]->size() != uniform_) uniform_ = 0;
    }
    if (files_.back()->size() > uniform_) uniform_ = 0;
  }

  std::uint64_t size() const noexcept { return starts_.back(); }
  RecordLayout const& layout() const noexcept { return files_.front()->layout(); }

  /// The bytes of a field of a record below size(), as long as a copy of this object lives.
  std::span<std::byte const> get(std::uint64_t index, std::size_t field = 0) const;

  std::string name(std::uint64_t index) const;

  /// Changes with the order and the content of the shards. Reads those that have no hashes.
  std::string identity() const;

  /// What OnDamage::Skip left out.
  DamageLog const& damage() const noexcept { return damage_; }

  /// Records of each shard: what an order by shards needs.
  std::vector<std::uint64_t> shard_sizes() const;

  std::shared_ptr<RecordFile const> const& file(std::size_t shard) const { return files_[shard]; }

  Place place(std::uint64_t index) const;

 private:
  void open(std::filesystem::path const& path, std::optional<std::uint64_t> hash);

  std::filesystem::path folder_;
  RecordReading reading_;
  DamageLog damage_;
  std::vector<std::shared_ptr<RecordFile const>> files_;
  std::vector<std::uint64_t> starts_{0};  ///< first index of each shard, and size()
  std::uint64_t uniform_ = 0;             ///< records of every shard but the last; 0: they differ
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/record_file.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/data/little_endian.hpp>
#include <frugal/data/shards/record_layout.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
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

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/record_file.ipp>
#endif

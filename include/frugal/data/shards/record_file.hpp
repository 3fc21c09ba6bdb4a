// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/base/mapped_file.hpp>
#include <frugal/data/shards/record_index.hpp>
#include <frugal/data/shards/record_layout.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace frugal {

/// When a block of records is checked against its hash.
enum class Verify {
  FirstTouch,  ///< when the first of its records is read, and not again
  AtOpen,      ///< all of them when the file is opened: it is read once from end to end
  Never,       ///< not at all: for files that were checked before
};

/// Records in one memory-mapped file of frugal's own format (RecordWriter writes it). Safe to read
/// from several threads.
///
/// Cost    opening reads header and index: 8 bytes for each block of 64 KiB, and 8 for each record
///         of records of any bytes. A record is a view of the file: no copy, no system call.
/// Errors  DataError with file, byte, block and record: empty, cut off, of another format, of a
///         newer version, or damaged in header, index or block. StoreError if it cannot be opened.
class RecordFile {
 public:
  explicit RecordFile(std::filesystem::path const& path, Verify verify = Verify::FirstTouch)
      : name_(path.string()), file_(path, MappedFile::Access::normal) {
    read(file_.bytes(), verify);
  }

  /// Parses bytes in memory, which must outlive it; errors call them `name`.
  static RecordFile parse(std::span<std::byte const> bytes, std::string name,
                          Verify verify = Verify::FirstTouch) {
    return RecordFile(bytes, std::move(name), verify);
  }

  /// Records.
  std::uint64_t size() const noexcept { return index_.records; }
  RecordLayout const& layout() const noexcept { return index_.header.layout; }
  std::uint64_t data_bytes() const noexcept { return index_.data.size(); }
  /// Changes with the layout and with every block, since the hashes of the blocks are under it.
  std::uint64_t hash() const noexcept { return index_.hash; }
  std::string const& name() const noexcept { return name_; }

  /// The bytes of a record below size(), as long as this object lives.
  std::span<std::byte const> record(std::uint64_t record) const { return records(record, 1); }

  /// The bytes of `count` records, from `first` on, one after the other.
  FRUGAL_INLINE std::span<std::byte const> records(std::uint64_t first, std::uint64_t count) const {
    std::uint64_t const begin = index_.begin(first);
    std::uint64_t const end = index_.begin(first + count);
    if (checked_) require_sound(begin, end, first);
    return index_.data.subspan(begin, end - begin);
  }

 private:
  enum State : unsigned char { unknown, sound, damaged };

  RecordFile(std::span<std::byte const> bytes, std::string name, Verify verify)
      : name_(std::move(name)) {
    read(bytes, verify);
  }

  FRUGAL_INLINE void read(std::span<std::byte const> bytes, Verify verify) {
    index_ = detail::RecordIndexReader(bytes, name_).read();
    if (verify == Verify::Never) return;
    checked_ = std::make_unique<std::atomic<unsigned char>[]>(index_.blocks());
    if (verify == Verify::AtOpen) require_sound(0, index_.data.size(), 0);
  }

  FRUGAL_INLINE void require_sound(std::uint64_t begin, std::uint64_t end,
                                   std::uint64_t record) const {
    if (begin == end) return;
    std::uint64_t const size = index_.header.block_bytes;
    for (std::uint64_t block = begin / size; block <= (end - 1) / size; ++block) {
      // Relaxed: the mapped bytes do not change, so a thread needs nothing but the verdict. Two
      // threads that touch a block first at the same time both hash it.
      auto& state = checked_[block];
      if (state.load(std::memory_order_relaxed) == sound) continue;
      check(block, record);
      state.store(sound, std::memory_order_relaxed);
    }
  }

  FRUGAL_INLINE void check(std::uint64_t block, std::uint64_t record) const {
    std::uint64_t const size = index_.header.block_bytes;
    std::uint64_t const begin = block * size;
    auto const bytes = index_.data.subspan(begin, std::min(size, index_.data.size() - begin));
    if (checked_[block].load(std::memory_order_relaxed) == damaged) fail(block, record);
    if (Hash::of(bytes) == index_.block_hash(block)) return;
    checked_[block].store(damaged, std::memory_order_relaxed);
    fail(block, record);
  }

  [[noreturn]] FRUGAL_INLINE void fail(std::uint64_t block, std::uint64_t record) const {
    std::uint64_t const at = index_.header.data_at + block * index_.header.block_bytes;
    throw DataError({.what = "a block of records is damaged",
                     .where = name_ + ", byte " + std::to_string(at) + ", block " +
                              std::to_string(block) + ", record " + std::to_string(record),
                     .why = "the hash of its bytes is not the one that was written, " +
                            hex_of(index_.block_hash(block)),
                     .fix = "Fetch the file again, or write it again."});
  }

  std::string name_;
  MappedFile file_;  ///< empty for bytes in memory
  detail::RecordIndex index_;
  std::unique_ptr<std::atomic<unsigned char>[]> checked_;  ///< a State per block; null: never
};

}  // namespace frugal

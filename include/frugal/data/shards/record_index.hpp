// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/record_header.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// The end of a record file. Behind the records, at a multiple of 64:
//
//   the index    XXH3 of each block of data (block_bytes bytes, the last one fewer); of records of
//                any bytes also the offset in the data at which each ends
//   the footer   64 bytes: records, bytes of data, offset of the index, bytes of the index, XXH3 of
//                the index, XXH3 of the header's JSON, XXH3 of these 48 bytes, "FRGLEND\n"
namespace frugal::detail {

inline constexpr std::string_view record_end_magic = "FRGLEND\n";
inline constexpr std::uint64_t footer_bytes = 64;

/// A record file, checked: everything that it points to lies inside of it.
struct RecordIndex {
  RecordHeader header;
  std::uint64_t records = 0;
  std::uint64_t hash = 0;            ///< of the footer, which has the hashes of header and index
  std::span<std::byte const> data;   ///< the records
  std::span<std::byte const> index;  ///< block hashes, then record ends

  std::uint64_t blocks() const { return blocks_of(data.size(), header.block_bytes); }
  std::uint64_t block_hash(std::uint64_t block) const {
    return load_le<std::uint64_t>(index, 8 * block);
  }
  /// Offset in the data at which a record begins; that of `records` is the end of the data.
  FRUGAL_INLINE std::uint64_t begin(std::uint64_t record) const {
    if (header.layout.fixed()) return record * header.layout.record_bytes();
    return record == 0 ? 0 : load_le<std::uint64_t>(index, 8 * (blocks() + record - 1));
  }

  static std::uint64_t blocks_of(std::uint64_t bytes, std::uint64_t block_bytes) {
    return bytes / block_bytes + (bytes % block_bytes == 0 ? 0 : 1);
  }
};

/// The last 64 bytes of a file.
FRUGAL_INLINE std::vector<std::byte> record_footer(RecordHeader const& header,
                                                   std::uint64_t records, std::uint64_t data_bytes,
                                                   std::span<std::byte const> index) {
  std::vector<std::byte> bytes;
  append_le(bytes, records);
  append_le(bytes, data_bytes);
  append_le(bytes, record_aligned(header.data_at + data_bytes));
  append_le(bytes, std::uint64_t{index.size()});
  append_le(bytes, Hash::of(index));
  append_le(bytes, header.hash);
  append_le(bytes, Hash::of(bytes));
  append_text(bytes, record_end_magic);
  return bytes;
}

/// Checks a whole file but for the records' bytes. DataError with file and byte for every
/// violation; whatever the bytes are, nothing outside of them is read.
class RecordIndexReader {
 public:
  RecordIndexReader(std::span<std::byte const> file, std::string const& name)
      : file_(file), name_(name) {}

  FRUGAL_INLINE RecordIndex read() const {
    RecordIndex out;
    out.header = RecordHeaderReader(file_, name_).read();
    std::uint64_t const data_at = out.header.data_at;
    if (file_.size() < data_at + footer_bytes) cut_off();
    std::uint64_t const footer_at = file_.size() - footer_bytes;
    auto const footer = file_.subspan(footer_at);
    std::string_view const end(reinterpret_cast<char const*>(footer.data()) + 56, 8);
    if (end != record_end_magic) cut_off();
    out.hash = load_le<std::uint64_t>(footer, 48);
    if (out.hash != Hash::of(footer.first(48))) damaged(footer_at, "the hash of its end differs");
    out.records = load_le<std::uint64_t>(footer, 0);
    auto const data_bytes = load_le<std::uint64_t>(footer, 8);
    auto const index_at = load_le<std::uint64_t>(footer, 16);
    auto const index_bytes = load_le<std::uint64_t>(footer, 24);
    if (load_le<std::uint64_t>(footer, 40) != out.header.hash) {
      damaged(footer_at + 40, "its end belongs to another header");
    }
    // Sizes are compared before they are added: a sum of claims may wrap around.
    if (data_bytes > footer_at - data_at || index_at != record_aligned(data_at + data_bytes) ||
        index_at > footer_at || index_bytes != footer_at - index_at) {
      damaged(footer_at, "data of " + std::to_string(data_bytes) + " bytes and an index of " +
                             std::to_string(index_bytes) + " bytes do not make a file of " +
                             std::to_string(file_.size()));
    }
    out.data = file_.subspan(data_at, data_bytes);
    out.index = file_.subspan(index_at, index_bytes);
    check_counts(out, footer_at);
    if (Hash::of(out.index) != load_le<std::uint64_t>(footer, 32)) {
      damaged(index_at, "the hash of the index differs");
    }
    if (!out.header.layout.fixed()) check_ends(out, index_at);
    return out;
  }

 private:
  FRUGAL_INLINE void check_counts(RecordIndex const& index, std::uint64_t footer_at) const {
    std::uint64_t const size = index.header.layout.record_bytes();
    bool const fixed = index.header.layout.fixed();
    std::uint64_t const entries = index.index.size() / 8;
    bool sound = index.index.size() % 8 == 0 && entries >= index.blocks();
    if (fixed) {
      sound = sound && entries == index.blocks() && index.data.size() % size == 0 &&
              index.data.size() / size == index.records;
    } else {
      sound = sound && entries - index.blocks() == index.records;
    }
    if (!sound) {
      damaged(footer_at, std::to_string(index.records) + " records do not fit " +
                             std::to_string(index.data.size()) + " bytes of data with " +
                             std::to_string(entries) + " entries of the index");
    }
  }

  FRUGAL_INLINE void check_ends(RecordIndex const& index, std::uint64_t index_at) const {
    std::uint64_t last = 0;
    for (std::uint64_t record = 1; record <= index.records; ++record) {
      std::uint64_t const end = index.begin(record);
      if (end < last || end > index.data.size()) {
        damaged(index_at + 8 * (index.blocks() + record - 1),
                "record " + std::to_string(record - 1) + " ends at " + std::to_string(end) +
                    ", and begins at " + std::to_string(last) + " of " +
                    std::to_string(index.data.size()));
      }
      last = end;
    }
    if (last != index.data.size()) {
      damaged(index_at, "the last record ends at " + std::to_string(last) + ", and the data at " +
                            std::to_string(index.data.size()));
    }
  }

  [[noreturn]] FRUGAL_INLINE void cut_off() const {
    record_fail(name_, file_.size(), "the file is cut off",
                "it does not end with \"FRGLEND\": its index is missing");
  }
  [[noreturn]] void damaged(std::uint64_t byte, std::string why) const {
    record_fail(name_, byte, "the index is damaged", std::move(why));
  }

  std::span<std::byte const> file_;
  std::string const& name_;
};

}  // namespace frugal::detail

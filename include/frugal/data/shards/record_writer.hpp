// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/data/shards/record_index.hpp>
#include <frugal/data/shards/record_layout.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// Writes one record file. Until close() it has another name, so that a crash never leaves half of
/// a file under its own; a writer that is destroyed before removes what it wrote.
///
/// Cost    memory for one block, and for the index: 8 bytes a block, and 8 a record of records of
///         any bytes.
/// Errors  StoreError: the file exists, or a call fails. DataError for a record that does not have
///         the size of the layout. SettingsError for a block of no bytes, or of more than 2^30, and
///         for names of fields that do not fit into the header.
class RecordWriter {
 public:
  /// What was written.
  struct Written {
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;  ///< of the whole file
    std::uint64_t hash = 0;   ///< RecordFile::hash()
  };

  explicit RecordWriter(std::filesystem::path path, RecordLayout layout = {},
                        std::uint64_t block_bytes = 1U << 16)
      : header_{.layout = std::move(layout), .block_bytes = checked(block_bytes)},
        file_(std::move(path)) {
    block_.reserve(block_bytes);
    file_.write(header_bytes());
  }

  /// Adds a record: of the layout's size, or any bytes if it has none.
  FRUGAL_INLINE void add(std::span<std::byte const> record) {
    std::uint64_t const size = header_.layout.record_bytes();
    if (header_.layout.fixed() && record.size() != size) {
      throw DataError({.what = "the record has another size than the others",
                       .where = file_.path().string() + ", record " + std::to_string(records_),
                       .why = "it has " + std::to_string(record.size()) +
                              " bytes, and a record of " + header_.layout.text() + " has " +
                              std::to_string(size),
                       .fix = "Give every record the same tensors, or write records of any bytes: "
                              "RecordWriter without a layout."});
    }
    data_bytes_ += record.size();
    ++records_;
    if (!header_.layout.fixed()) ends_.push_back(data_bytes_);
    while (!record.empty()) {
      std::size_t const count = std::min(record.size(), header_.block_bytes - block_.size());
      block_.insert(block_.end(), record.begin(),
                    record.begin() + static_cast<std::ptrdiff_t>(count));
      record = record.subspan(count);
      if (block_.size() == header_.block_bytes) end_block();
    }
  }

  std::uint64_t records() const noexcept { return records_; }
  std::uint64_t data_bytes() const noexcept { return data_bytes_; }

  /// Writes the index, waits until everything is on disk, and gives the file its name.
  FRUGAL_INLINE Written close() {
    if (!block_.empty()) end_block();
    std::uint64_t const data_end = header_.data_at + data_bytes_;
    file_.write(std::vector<std::byte>(detail::record_aligned(data_end) - data_end));
    hashes_.insert(hashes_.end(), ends_.begin(), ends_.end());
    auto const index = std::as_bytes(std::span(hashes_));
    file_.write(index);
    auto const footer = detail::record_footer(header_, records_, data_bytes_, index);
    file_.write(footer);
    file_.publish();
    return {.records = records_,
            .bytes = detail::record_aligned(data_end) + index.size() + footer.size(),
            .hash = detail::load_le<std::uint64_t>(footer, 48)};
  }

 private:
  FRUGAL_INLINE static std::uint64_t checked(std::uint64_t block_bytes) {
    if (block_bytes != 0 && block_bytes <= detail::most_block) return block_bytes;
    throw SettingsError({.what = "a block of " + std::to_string(block_bytes) + " bytes",
                         .where = "RecordWriter",
                         .why = "a block has 1 to 2^30 bytes",
                         .fix = "Leave it at 65536, unless a measurement says otherwise."});
  }

  FRUGAL_INLINE std::vector<std::byte> header_bytes() {
    if (std::uint64_t const size = header_.json().size(); size > detail::most_json) {
      throw SettingsError({.what = "the names of the fields are too long",
                           .where = file_.path().string(),
                           .why = "the header would have " + std::to_string(size) +
                                  " bytes, and readers take " + std::to_string(detail::most_json),
                           .fix = "Give the fields shorter names, or fewer fields."});
    }
    return header_.bytes();
  }

  FRUGAL_INLINE void end_block() {
    hashes_.push_back(Hash::of(block_));
    file_.write(block_);
    block_.clear();
  }

  detail::RecordHeader header_;
  detail::NewFile file_;
  std::vector<std::byte> block_;
  std::vector<std::uint64_t> hashes_;  ///< of the blocks
  std::vector<std::uint64_t> ends_;    ///< of records of any bytes
  std::uint64_t records_ = 0;
  std::uint64_t data_bytes_ = 0;
};

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/data/arrow/cells.hpp>
#include <frugal/data/arrow/status.hpp>
#include <frugal/data/tables/row.hpp>

#include <arrow/array.h>
#include <arrow/array/builder_binary.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/chunked_array.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/byte_size.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// What a column that is too large for Arrow's types of 32-bit offsets takes to be read.
inline constexpr char const* smaller_groups =
    "Write the file with smaller row groups: bytes_per_group of ParquetWriter, row_group_size of "
    "pyarrow.";

/// The texts or bytes of all chunks, with offsets of 64 bits.
inline std::shared_ptr<::arrow::Array> large_text(::arrow::ChunkedArray const& chunks,
                                                  std::int64_t bytes, std::string const& where) {
  std::unique_ptr<::arrow::LargeBinaryBuilder> builder;
  if (chunks.type()->id() == ::arrow::Type::STRING) {
    builder = std::make_unique<::arrow::LargeStringBuilder>();
  } else {
    builder = std::make_unique<::arrow::LargeBinaryBuilder>();
  }
  constexpr char const* what = "a column does not fit into memory";
  check_arrow(builder->Reserve(chunks.length()), where, what, smaller_groups);
  check_arrow(builder->ReserveData(bytes), where, what, smaller_groups);
  for (auto const& chunk : chunks.chunks()) {
    for (std::int64_t i = 0; i < chunk->length(); ++i) {
      check_arrow(
          chunk->IsNull(i) ? builder->AppendNull() : builder->Append(arrow_text_at(*chunk, i)),
          where, what, smaller_groups);
    }
  }
  return arrow_value(builder->Finish(), where, what, smaller_groups);
}

/// A column in one piece. `most` bytes of texts have offsets of 32 bits, and more have 64.
inline std::shared_ptr<::arrow::Array> whole_column(
    ::arrow::ChunkedArray const& chunks, std::string const& where,
    std::int64_t most = std::numeric_limits<std::int32_t>::max()) {
  if (chunks.num_chunks() == 1) return chunks.chunk(0);
  if (chunks.num_chunks() == 0) {
    return arrow_value(::arrow::MakeEmptyArray(chunks.type()), where, "no memory");
  }
  auto const type = chunks.type()->id();
  if (type == ::arrow::Type::STRING || type == ::arrow::Type::BINARY) {
    std::int64_t bytes = 0;
    for (auto const& chunk : chunks.chunks()) {
      bytes += static_cast<::arrow::BinaryArray const&>(*chunk).total_values_length();
    }
    if (bytes > most) return large_text(chunks, bytes, where);
  }
  return arrow_value(::arrow::Concatenate(chunks.chunks()), where,
                     "the pieces of a column cannot be joined", smaller_groups);
}

/// Rows of an Arrow table, each column in one piece. Const, and safe to read from several threads.
class ArrowTable {
 public:
  /// `first` is the number that the table's first row has in its file.
  ArrowTable(::arrow::Table const& table, std::shared_ptr<RowHead const> head, std::uint64_t first)
      : head_(std::move(head)), first_(first), rows_(static_cast<std::uint64_t>(table.num_rows())) {
    check_arrow(table.Validate(), head_->source, "the columns are damaged");
    for (int i = 0; i < table.num_columns(); ++i) {
      require_cells(*table.schema()->field(i), head_->source);
      columns_.push_back(
          whole_column(*table.column(i), head_->source + ", column " + table.field(i)->name()));
      // Now, since Arrow does both at the first use and keeps them; the second without a lock in
      // versions before 26 (https://github.com/apache/arrow/issues/36503).
      static_cast<void>(columns_.back()->null_count());
      if (columns_.back()->type_id() == ::arrow::Type::DICTIONARY) {
        static_cast<void>(
            static_cast<::arrow::DictionaryArray const&>(*columns_.back()).dictionary());
      }
    }
    auto const bytes = ::arrow::util::ReferencedBufferSize(table);
    bytes_ = bytes.ok() ? static_cast<std::uint64_t>(*bytes) : 0;
  }

  std::uint64_t rows() const { return rows_; }
  std::uint64_t first() const { return first_; }
  std::uint64_t bytes() const { return bytes_; }
  RowHead const& head() const { return *head_; }
  std::shared_ptr<::arrow::Array> const& column(std::size_t i) const { return columns_[i]; }

  /// Row `i` of this table, below rows().
  Row row(std::uint64_t i) const {
    std::vector<Cell> cells;
    cells.reserve(columns_.size());
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      cells.push_back(arrow_cell(*columns_[c], static_cast<std::int64_t>(i),
                                 {.head = *head_, .column = c, .row = first_ + i}));
    }
    return Row(head_, first_ + i, std::move(cells));
  }

 private:
  std::shared_ptr<RowHead const> head_;
  std::uint64_t first_;
  std::uint64_t rows_;
  std::uint64_t bytes_ = 0;
  std::vector<std::shared_ptr<::arrow::Array>> columns_;
};

}  // namespace frugal::detail

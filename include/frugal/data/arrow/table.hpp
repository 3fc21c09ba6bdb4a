// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/checkpoint/dtype.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <arrow/array.h>
#include <arrow/array/builder_binary.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/chunked_array.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/byte_size.h>
#include <arrow/util/float16.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Throws the DataError of a status that is no success. `what` is the clause of the error.
inline void check_arrow(::arrow::Status const& status, std::string const& where, char const* what,
                        char const* fix = "Fetch or write the file again.") {
  if (status.ok()) return;
  throw DataError({.what = what,
                   .where = where,
                   .why = "Arrow says: " + status.CodeAsString() + ": " + status.message(),
                   .fix = fix});
}

/// The value of a result, or its DataError.
template <class T>
T arrow_value(::arrow::Result<T> result, std::string const& where, char const* what,
              char const* fix = "Fetch or write the file again.") {
  check_arrow(result.status(), where, what, fix);
  return std::move(result).MoveValueUnsafe();
}

/// What `read` returns. Arrow's readers throw for some damaged files, too (ParquetException, and
/// std::bad_alloc or std::length_error for a size that no memory holds): such is the same
/// DataError.
template <class Read>
auto arrow_guarded(Read&& read, std::string const& where, char const* what) {
  try {
    return std::forward<Read>(read)();
  } catch (Error const&) {
    throw;
  } catch (std::exception const& error) {
    throw DataError({.what = what,
                     .where = where,
                     .why = std::string("Arrow says: ") + error.what(),
                     .fix = "Fetch or write the file again."});
  }
}

/// The numbers of an Arrow type that a tensor can hold; times are int64 or int32 of their unit.
inline std::optional<Dtype> arrow_dtype(::arrow::DataType const& type) {
  using ::arrow::Type;
  switch (type.id()) {
    case Type::BOOL:
      return Dtype::boolean;
    case Type::UINT8:
      return Dtype::u8;
    case Type::INT8:
      return Dtype::i8;
    case Type::UINT16:
      return Dtype::u16;
    case Type::INT16:
      return Dtype::i16;
    case Type::UINT32:
      return Dtype::u32;
    case Type::INT32:
    case Type::DATE32:
    case Type::TIME32:
      return Dtype::i32;
    case Type::UINT64:
      return Dtype::u64;
    case Type::INT64:
    case Type::DATE64:
    case Type::TIME64:
    case Type::TIMESTAMP:
    case Type::DURATION:
      return Dtype::i64;
    case Type::HALF_FLOAT:
      return Dtype::f16;
    case Type::FLOAT:
      return Dtype::f32;
    case Type::DOUBLE:
      return Dtype::f64;
    default:
      return std::nullopt;
  }
}

/// What a column of this type has: the numbers, and the unit of times.
inline ColumnFormat arrow_format(::arrow::DataType const& type) {
  using ::arrow::Type;
  switch (type.id()) {
    case Type::DICTIONARY:
      return arrow_format(*static_cast<::arrow::DictionaryType const&>(type).value_type());
    case Type::LIST:
    case Type::LARGE_LIST:
    case Type::FIXED_SIZE_LIST:
      return {.unit = arrow_format(*type.field(0)->type()).unit};
    default:
      break;
  }
  ColumnFormat format{.dtype = arrow_dtype(type)};
  auto const unit = [](::arrow::TimeUnit::type of) {
    switch (of) {
      case ::arrow::TimeUnit::SECOND:
        return TimeUnit::second;
      case ::arrow::TimeUnit::MILLI:
        return TimeUnit::millisecond;
      case ::arrow::TimeUnit::MICRO:
        return TimeUnit::microsecond;
      case ::arrow::TimeUnit::NANO:
        break;
    }
    return TimeUnit::nanosecond;
  };
  switch (type.id()) {
    case Type::DATE32:
      format.unit = TimeUnit::day;
      break;
    case Type::DATE64:
      format.unit = TimeUnit::millisecond;
      break;
    case Type::TIME32:
    case Type::TIME64:
      format.unit = unit(static_cast<::arrow::TimeType const&>(type).unit());
      break;
    case Type::TIMESTAMP:
      format.unit = unit(static_cast<::arrow::TimestampType const&>(type).unit());
      break;
    case Type::DURATION:
      format.unit = unit(static_cast<::arrow::DurationType const&>(type).unit());
      break;
    default:
      break;
  }
  return format;
}

/// The names and formats of the columns of a table.
inline RowHead arrow_head(std::string source, ::arrow::Schema const& schema) {
  RowHead head{.source = std::move(source), .columns = schema.field_names()};
  for (auto const& field : schema.fields()) head.formats.push_back(arrow_format(*field->type()));
  return head;
}

inline bool arrow_text(::arrow::DataType const& type) {
  using ::arrow::Type;
  return type.id() == Type::STRING || type.id() == Type::LARGE_STRING ||
         type.id() == Type::BINARY || type.id() == Type::LARGE_BINARY ||
         type.id() == Type::FIXED_SIZE_BINARY;
}

/// The items of a list type, or null.
inline ::arrow::DataType const* arrow_items(::arrow::DataType const& type) {
  using ::arrow::Type;
  if (type.id() != Type::LIST && type.id() != Type::LARGE_LIST &&
      type.id() != Type::FIXED_SIZE_LIST) {
    return nullptr;
  }
  return static_cast<::arrow::BaseListType const&>(type).value_type().get();
}

/// SettingsError for a type that no cell holds.
inline void require_cells(::arrow::Field const& field, std::string const& source) {
  ::arrow::DataType const* type = field.type().get();
  if (type->id() == ::arrow::Type::NA) return;
  if (type->id() == ::arrow::Type::DICTIONARY) {
    type = static_cast<::arrow::DictionaryType const*>(type)->value_type().get();
  } else if (auto const* const items = arrow_items(*type)) {
    type = items;
  }
  if (arrow_dtype(*type) || arrow_text(*type)) return;
  throw SettingsError(
      {.what = "a column's type is not read",
       .where = source + ", column " + field.name(),
       .why = "it is " + field.type()->ToString() +
              "; cells are numbers, booleans, times, texts, bytes, and lists of these",
       .fix = "Leave the column out by naming the others in `columns`, or write it as "
              "one of these types."});
}

inline std::string_view arrow_text_at(::arrow::Array const& array, std::int64_t i) {
  using ::arrow::Type;
  switch (array.type_id()) {
    case Type::STRING:
    case Type::BINARY:
      return static_cast<::arrow::BinaryArray const&>(array).GetView(i);
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY:
      return static_cast<::arrow::LargeBinaryArray const&>(array).GetView(i);
    default:
      return static_cast<::arrow::FixedSizeBinaryArray const&>(array).GetView(i);
  }
}

/// `count` values from `first` on, packed; none of them is null.
inline Numbers arrow_numbers(::arrow::Array const& values, std::int64_t first, std::int64_t count) {
  Numbers out{.dtype = *arrow_dtype(*values.type()), .bytes = {}};
  auto const size = static_cast<std::size_t>(count);
  if (out.dtype == Dtype::boolean) {
    auto const& bits = static_cast<::arrow::BooleanArray const&>(values);
    out.bytes.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
      out.bytes[i] = bits.Value(first + static_cast<std::int64_t>(i)) ? 1 : 0;
    }
    return out;
  }
  std::size_t const width = dtype_bits(out.dtype) / 8;
  if (size > 0) {
    auto const* const from = values.data()->buffers[1]->data_as<char>();
    out.bytes.assign(from + static_cast<std::size_t>(values.offset() + first) * width,
                     size * width);
  }
  return out;
}

/// Where a cell is: a text only for an error.
struct CellPlace {
  RowHead const& head;
  std::size_t column;
  std::uint64_t row;

  std::string text() const {
    return head.source + ", row " + std::to_string(row) + ", column " + head.columns[column];
  }
};

/// DataError for a null among `count` items of a list: neither a number nor a text stands for it.
inline void require_items(::arrow::Array const& values, std::int64_t first, std::int64_t count,
                          CellPlace const& place) {
  if (values.null_count() == 0) return;
  for (std::int64_t i = first; i < first + count; ++i) {
    if (values.IsValid(i)) continue;
    throw DataError({.what = "a list has a null",
                     .where = place.text(),
                     .why = "item " + std::to_string(i - first) + " of " + std::to_string(count),
                     .fix = "Write a value in its place, or leave the column out by naming the "
                            "others in `columns`."});
  }
}

/// The cell of an integer or float that lies at `bytes`.
inline Cell number_cell(Dtype dtype, char const* bytes, CellPlace const& place) {
  auto const as = [&]<class T>(T value) {
    std::memcpy(&value, bytes, sizeof(T));
    return value;
  };
  if (dtype == Dtype::u64) {
    auto const value = as(std::uint64_t{});
    return unsigned_cell(value, value > std::uint64_t{INT64_MAX} ? place.text() : std::string());
  }
  if (dtype == Dtype::f16) {
    return ::arrow::util::Float16::FromBits(as(std::uint16_t{})).ToDouble();
  }
  return packed_cell(dtype, bytes);
}

/// Cell `i` of a column.
inline Cell arrow_cell(::arrow::Array const& array, std::int64_t i, CellPlace const& place) {
  using ::arrow::Type;
  if (array.IsNull(i)) return {};
  ::arrow::DataType const& type = *array.type();
  if (type.id() == Type::BOOL) return static_cast<::arrow::BooleanArray const&>(array).Value(i);
  if (auto const dtype = arrow_dtype(type)) {
    auto const at = static_cast<std::size_t>(array.offset() + i) * (dtype_bits(*dtype) / 8);
    return number_cell(*dtype, array.data()->buffers[1]->data_as<char>() + at, place);
  }
  if (arrow_text(type)) return std::string(arrow_text_at(array, i));
  if (type.id() == Type::DICTIONARY) {
    auto const& coded = static_cast<::arrow::DictionaryArray const&>(array);
    return arrow_cell(*coded.dictionary(), coded.GetValueIndex(i), place);
  }
  std::int64_t first = 0;
  std::int64_t count = 0;
  ::arrow::Array const* values = nullptr;
  auto const list = [&](auto const& lists) {
    first = lists.value_offset(i);
    count = lists.value_length(i);
    values = lists.values().get();
  };
  if (type.id() == Type::LIST) {
    list(static_cast<::arrow::ListArray const&>(array));
  } else if (type.id() == Type::LARGE_LIST) {
    list(static_cast<::arrow::LargeListArray const&>(array));
  } else {
    list(static_cast<::arrow::FixedSizeListArray const&>(array));
  }
  require_items(*values, first, count, place);
  if (!arrow_text(*values->type())) return arrow_numbers(*values, first, count);
  std::vector<std::string> texts;
  for (std::int64_t t = first; t < first + count; ++t) {
    texts.emplace_back(arrow_text_at(*values, t));
  }
  return texts;
}

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

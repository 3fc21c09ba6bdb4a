// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/base/utf8.hpp>
#include <frugal/data/arrow/table.hpp>
#include <frugal/data/shards/new_file.hpp>
#include <frugal/data/tables/files.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <arrow/array/builder_base.h>
#include <arrow/array/builder_binary.h>
#include <arrow/array/builder_nested.h>
#include <arrow/array/builder_primitive.h>
#include <arrow/buffer.h>
#include <arrow/builder.h>
#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/compression.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace frugal::detail {

/// The Arrow type of packed numbers; null for formats that Arrow lacks.
inline std::shared_ptr<::arrow::DataType> arrow_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::boolean:
      return ::arrow::boolean();
    case Dtype::u8:
      return ::arrow::uint8();
    case Dtype::i8:
      return ::arrow::int8();
    case Dtype::u16:
      return ::arrow::uint16();
    case Dtype::i16:
      return ::arrow::int16();
    case Dtype::f16:
      return ::arrow::float16();
    case Dtype::u32:
      return ::arrow::uint32();
    case Dtype::i32:
      return ::arrow::int32();
    case Dtype::f32:
      return ::arrow::float32();
    case Dtype::u64:
      return ::arrow::uint64();
    case Dtype::i64:
      return ::arrow::int64();
    case Dtype::f64:
      return ::arrow::float64();
    default:
      return nullptr;
  }
}

/// The Arrow type that a cell is written as; null for a null.
inline std::shared_ptr<::arrow::DataType> arrow_type(Cell const& cell, bool binary) {
  struct Of {
    bool binary;
    std::shared_ptr<::arrow::DataType> operator()(std::monostate) const { return nullptr; }
    std::shared_ptr<::arrow::DataType> operator()(bool) const { return ::arrow::boolean(); }
    std::shared_ptr<::arrow::DataType> operator()(std::int64_t) const { return ::arrow::int64(); }
    std::shared_ptr<::arrow::DataType> operator()(double) const { return ::arrow::float64(); }
    std::shared_ptr<::arrow::DataType> operator()(std::string const&) const {
      return binary ? ::arrow::binary() : ::arrow::utf8();
    }
    std::shared_ptr<::arrow::DataType> operator()(Numbers const& list) const {
      auto items = arrow_type(list.dtype);
      return items ? ::arrow::list(items) : nullptr;
    }
    std::shared_ptr<::arrow::DataType> operator()(std::vector<std::string> const&) const {
      return ::arrow::list(::arrow::utf8());
    }
  };
  return std::visit(Of{binary}, cell);
}

/// The types of the columns, by the first cell of each that is not null.
inline std::shared_ptr<::arrow::Schema> schema_of_rows(std::vector<Row> const& rows,
                                                       std::vector<std::string> const& binary,
                                                       std::string const& where) {
  std::vector<std::string> const& names = rows.front().columns();
  std::vector<std::shared_ptr<::arrow::Field>> fields;
  for (std::string const& column : binary) static_cast<void>(rows.front().cell(column));  // throws
  for (std::size_t c = 0; c < names.size(); ++c) {
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(c), names[c]) !=
        names.begin() + static_cast<std::ptrdiff_t>(c)) {
      throw DataError({.what = "two columns have one name",
                       .where = where + ", column " + names[c],
                       .why = "readers find columns by their names",
                       .fix = "Rename one of them."});
    }
    bool const bytes = std::find(binary.begin(), binary.end(), names[c]) != binary.end();
    std::shared_ptr<::arrow::DataType> type;
    for (std::size_t i = 0; !type && i < rows.size(); ++i) {
      if (c < rows[i].cells().size()) type = arrow_type(rows[i].cells()[c], bytes);
    }
    if (!type) {
      throw DataError({.what = "the type of a column is not known",
                       .where = where + ", column " + names[c],
                       .why = "it is null in the first " + std::to_string(rows.size()) +
                              " rows, or of a type that the format lacks",
                       .fix = "Write a value first, or leave the column out."});
    }
    fields.push_back(::arrow::field(names[c], type));
  }
  return ::arrow::schema(fields);
}

/// DataError for bytes in a column of texts: readers decode them as UTF-8.
template <class Where>
void require_text(std::string const& text, Where const& where) {
  if (is_utf8(text)) return;
  throw DataError({.what = "a text is not UTF-8",
                   .where = where(),
                   .why = "the column was not declared as bytes",
                   .fix = "Name the column in ParquetWriterSettings::binary."});
}

/// Appends a cell to the builder of its column; false for a cell of another type. `where()` is what
/// errors call it.
template <class Where>
bool append_cell(::arrow::ArrayBuilder& builder, Cell const& cell, Where const& where) {
  using ::arrow::Type;
  auto const done = [&](::arrow::Status const& status) {
    if (status.ok()) return true;
    check_arrow(status, where(), "a cell cannot be written",
                "Store it in a file of its own, and the file's path in the column.");
    return true;
  };
  auto const type = builder.type();
  if (std::holds_alternative<std::monostate>(cell)) return done(builder.AppendNull());
  if (auto const* const value = std::get_if<bool>(&cell); value && type->id() == Type::BOOL) {
    return done(static_cast<::arrow::BooleanBuilder&>(builder).Append(*value));
  }
  if (auto const* const value = std::get_if<std::int64_t>(&cell)) {
    if (type->id() == Type::INT64) {
      return done(static_cast<::arrow::Int64Builder&>(builder).Append(*value));
    }
    if (type->id() == Type::DOUBLE) {
      if (!fits_double(*value)) {
        throw DataError({.what = "an integer is no double",
                         .where = where(),
                         .why = "it is " + std::to_string(*value) + ", and double has 53 bits",
                         .fix = "Write the column's first value as an integer, too."});
      }
      return done(
          static_cast<::arrow::DoubleBuilder&>(builder).Append(static_cast<double>(*value)));
    }
  }
  if (auto const* const value = std::get_if<double>(&cell); value && type->id() == Type::DOUBLE) {
    return done(static_cast<::arrow::DoubleBuilder&>(builder).Append(*value));
  }
  if (auto const* const value = std::get_if<std::string>(&cell)) {
    if (type->id() == Type::STRING) require_text(*value, where);
    if (type->id() == Type::STRING || type->id() == Type::BINARY) {
      return done(static_cast<::arrow::BinaryBuilder&>(builder).Append(*value));
    }
  }
  if (type->id() != Type::LIST) return false;
  auto& lists = static_cast<::arrow::ListBuilder&>(builder);
  auto const& items = *static_cast<::arrow::ListType const&>(*type).value_type();
  if (auto const* const texts = std::get_if<std::vector<std::string>>(&cell)) {
    if (items.id() != Type::STRING) return false;
    done(lists.Append());
    for (std::string const& text : *texts) {
      require_text(text, where);
      done(static_cast<::arrow::StringBuilder&>(*lists.value_builder()).Append(text));
    }
    return true;
  }
  auto const* const list = std::get_if<Numbers>(&cell);
  auto const wanted = list ? arrow_type(list->dtype) : nullptr;
  if (!wanted || !wanted->Equals(items)) return false;
  done(lists.Append());
  auto const count = static_cast<std::int64_t>(list->count());
  auto const buffer = ::arrow::Buffer::FromString(list->bytes);
  if (list->dtype == Dtype::boolean) {
    for (char const value : list->bytes) {
      done(static_cast<::arrow::BooleanBuilder&>(*lists.value_builder()).Append(value != 0));
    }
    return true;
  }
  auto const values = ::arrow::ArrayData::Make(wanted, count, {nullptr, buffer}, 0);
  return done(lists.value_builder()->AppendArraySlice(::arrow::ArraySpan(*values), 0, count));
}

/// The rows as a table of that schema; `first` is the number of the first in its file.
inline std::shared_ptr<::arrow::Table> table_of_rows(std::vector<Row> const& rows,
                                                     std::shared_ptr<::arrow::Schema> schema,
                                                     std::string const& where,
                                                     std::uint64_t first) {
  std::vector<std::shared_ptr<::arrow::Array>> columns;
  for (Row const& row : rows) {
    if (row.columns() == schema->field_names() && row.cells().size() == row.columns().size()) {
      continue;
    }
    throw DataError(
        {.what = "a row has other columns than the first",
         .where = where + ", row " +
                  std::to_string(first + static_cast<std::uint64_t>(&row - rows.data())),
         .why = "",
         .fix = "Give every row the same columns, in one order."});
  }
  for (int c = 0; c < schema->num_fields(); ++c) {
    std::unique_ptr<::arrow::ArrayBuilder> builder;
    check_arrow(
        ::arrow::MakeBuilder(::arrow::default_memory_pool(), schema->field(c)->type(), &builder),
        where, "a column cannot be written");
    std::uint64_t row = first;
    auto const column = [&] {
      return where + ", row " + std::to_string(row) + ", column " + schema->field(c)->name();
    };
    for (Row const& each : rows) {
      Cell const& cell = each.cells()[static_cast<std::size_t>(c)];
      if (append_cell(*builder, cell, column)) {
        ++row;
        continue;
      }
      throw DataError({.what = "a cell is of another type than its column",
                       .where = column(),
                       .why = "it is " + std::string(cell_kind(cell)) + ", and the column is " +
                              schema->field(c)->type()->ToString(),
                       .fix = "Write one type per column."});
    }
    columns.push_back(arrow_value(builder->Finish(), where, "a column cannot be written"));
  }
  return ::arrow::Table::Make(std::move(schema), std::move(columns),
                              static_cast<std::int64_t>(rows.size()));
}

/// The output of Arrow: a file that gets its name when it is complete. Arrow takes a status,
/// and no exception: rethrow() throws the StoreError behind one.
class ArrowSink : public ::arrow::io::OutputStream {
 public:
  explicit ArrowSink(std::filesystem::path const& path) : file_(path) {}

  using ::arrow::io::OutputStream::Write;
  ::arrow::Status Write(void const* data, std::int64_t size) override {
    try {
      file_.write({static_cast<std::byte const*>(data), static_cast<std::size_t>(size)});
    } catch (std::exception const& error) {
      failure_ = std::current_exception();
      return ::arrow::Status::IOError(error.what());
    }
    written_ += size;
    return ::arrow::Status::OK();
  }
  ::arrow::Result<std::int64_t> Tell() const override { return written_; }
  ::arrow::Status Close() override {
    closed_ = true;
    return ::arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  /// Makes the file durable under its name.
  void publish() { file_.publish(); }

 private:
  NewFile file_;
  std::int64_t written_ = 0;
  bool closed_ = false;
  std::exception_ptr failure_;
};

}  // namespace frugal::detail

namespace frugal {

/// How a Parquet file is written.
struct ParquetWriterSettings {
  std::uint64_t rows_per_group = 10000;       ///< at most: what a reader decodes at once
  std::uint64_t bytes_per_group = 16U << 20;  ///< at most, decoded; a row above it is a group
  std::string compression = "zstd";           ///< or "none", "snappy", "gzip", "lz4", "brotli"
  std::vector<std::string> binary = {};  ///< columns of std::string that hold bytes, no UTF-8 text
};

namespace detail {

/// SettingsError for an unknown compression, and for groups of 0 rows or bytes.
inline std::shared_ptr<::parquet::WriterProperties> parquet_properties(
    ParquetWriterSettings const& settings, std::string const& where) {
  std::string const& name = settings.compression;
  auto const codec = ::arrow::util::Codec::GetCompressionType(name == "none"  ? "uncompressed"
                                                              : name == "lz4" ? "lz4_raw"
                                                                              : name);
  if (!codec.ok() || !::arrow::util::Codec::IsAvailable(*codec)) {
    throw SettingsError({.what = "there is no compression " + name,
                         .where = where,
                         .why = "",
                         .fix = "Name one of none, snappy, gzip, zstd, lz4 and brotli."});
  }
  if (settings.rows_per_group == 0 || settings.bytes_per_group == 0) {
    throw SettingsError({.what = "groups of 0 rows or bytes",
                         .where = where,
                         .why = "",
                         .fix = "Set rows_per_group and bytes_per_group to 1 or more."});
  }
  return ::parquet::WriterProperties::Builder()
      .compression(*codec)
      ->max_row_group_length(static_cast<std::int64_t>(settings.rows_per_group))
      ->enable_page_checksum()
      ->build();
}

}  // namespace detail

/// Writes rows as a Parquet file, with checksums. The file has its name once close() has returned;
/// without close() nothing is left of it.
///
/// The rows of the first group say what type a column has: int64, double, bool, string or binary,
/// lists of numbers of their type, lists of strings. Holds one group of rows in memory. A group
/// ends before the row with which it would exceed rows_per_group or bytes_per_group: readers hold
/// whole groups, and Arrow reads no column of a group beyond 2 GiB.
///
/// Errors  DataError for a row of other columns, or a cell of another type than its column's; for a
///         column that is null in all rows of the first group. StoreError if `path` exists, or the
///         disk does not take the file. SettingsError for an unknown compression, groups of 0
///         rows or bytes, and a `binary` column that does not exist.
class ParquetWriter {
 public:
  explicit ParquetWriter(std::filesystem::path const& path, ParquetWriterSettings settings = {})
      : settings_(std::move(settings)), where_(path.string()) {
    detail::require_free(path);
    properties_ = detail::parquet_properties(settings_, where_);
    sink_ = std::make_shared<detail::ArrowSink>(path);
  }

  void add(Row row) {
    std::uint64_t bytes = 0;
    for (Cell const& cell : row.cells()) bytes += detail::cell_bytes(cell);
    if (!rows_.empty() && bytes_ + bytes > settings_.bytes_per_group) flush();
    rows_.push_back(std::move(row));
    bytes_ += bytes;
    if (rows_.size() == settings_.rows_per_group) flush();
  }

  /// Writes what is left and the footer, and makes the file durable under its name.
  void close() {
    if (!rows_.empty()) flush();
    if (!writer_) {
      throw DataError({.what = "a Parquet file without rows",
                       .where = where_,
                       .why = "its columns are not known",
                       .fix = "Add a row before close()."});
    }
    written(writer_->Close());
    sink_->publish();
  }

 private:
  void flush() {
    if (!schema_) {
      schema_ = detail::schema_of_rows(rows_, settings_.binary, where_);
      open();
    }
    auto const table = detail::table_of_rows(rows_, schema_, where_, written_);
    written(writer_->WriteTable(*table, table->num_rows()));
    written_ += rows_.size();
    rows_.clear();
    bytes_ = 0;
  }

  void open() {
    auto writer = ::parquet::arrow::FileWriter::Open(
        *schema_, ::arrow::default_memory_pool(), sink_, properties_,
        ::parquet::ArrowWriterProperties::Builder().store_schema()->build());
    written(writer.status());
    writer_ = std::move(*writer);
  }

  void written(::arrow::Status const& status) const {
    sink_->rethrow();
    if (status.ok()) return;
    throw StoreError({.what = "the file cannot be written",
                      .where = where_,
                      .why = "Arrow says: " + status.ToString(),
                      .fix = "Make room, or choose another folder."});
  }

  ParquetWriterSettings settings_;
  std::string where_;
  std::shared_ptr<::parquet::WriterProperties> properties_;
  std::vector<Row> rows_;
  std::uint64_t bytes_ = 0;    ///< of rows_
  std::uint64_t written_ = 0;  ///< rows in groups before
  std::shared_ptr<::arrow::Schema> schema_;
  std::shared_ptr<detail::ArrowSink> sink_;
  std::unique_ptr<::parquet::arrow::FileWriter> writer_;
};

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/data/arrow/table.hpp>
#include <frugal/data/shards/open_files.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/type_fwd.h>
#include <parquet/arrow/reader.h>
#include <parquet/column_reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/schema.h>
#include <parquet/types.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal::detail {

/// A PooledFile as Arrow reads files: for one call into Arrow, which may read in several threads.
///
/// Arrow takes no exceptions of ours: what the file throws is a status for Arrow, and is kept for
/// rethrow().
class PooledInput final : public ::arrow::io::RandomAccessFile {
 public:
  explicit PooledInput(PooledFile file) : file_(std::move(file)) {
    set_mode(::arrow::io::FileMode::READ);
  }

  /// Throws what the file threw, if it did.
  void rethrow() const {
    std::lock_guard const lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

  ::arrow::Status Close() override {
    closed_ = true;
    return ::arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  ::arrow::Result<std::int64_t> GetSize() override {
    return static_cast<std::int64_t>(file_.size());
  }
  ::arrow::Result<std::int64_t> Tell() const override { return at_.load(); }
  ::arrow::Status Seek(std::int64_t position) override {
    at_ = position;
    return ::arrow::Status::OK();
  }
  ::arrow::Result<std::int64_t> Read(std::int64_t bytes, void* out) override {
    ARROW_ASSIGN_OR_RAISE(std::int64_t const got, ReadAt(at_, bytes, out));
    at_ += got;
    return got;
  }
  ::arrow::Result<std::shared_ptr<::arrow::Buffer>> Read(std::int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(at_, bytes));
    at_ += buffer->size();
    return buffer;
  }

  using ::arrow::io::RandomAccessFile::ReadAt;
  ::arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t bytes,
                                       void* out) override {
    if (position < 0 || bytes < 0) return ::arrow::Status::Invalid("a read at a negative place");
    try {
      return static_cast<std::int64_t>(
          file_.read_some(static_cast<std::uint64_t>(position),
                          {static_cast<char*>(out), static_cast<std::size_t>(bytes)}));
    } catch (...) {
      std::lock_guard const lock(mutex_);
      failure_ = std::current_exception();
      return ::arrow::Status::IOError("the file cannot be read");
    }
  }
  ::arrow::Result<std::shared_ptr<::arrow::Buffer>> ReadAt(std::int64_t position,
                                                           std::int64_t bytes) override {
    if (bytes < 0) return ::arrow::Status::Invalid("a read of a negative size");
    ARROW_ASSIGN_OR_RAISE(std::unique_ptr<::arrow::ResizableBuffer> buffer,
                          ::arrow::AllocateResizableBuffer(bytes));
    ARROW_ASSIGN_OR_RAISE(std::int64_t const got, ReadAt(position, bytes, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(got));
    return std::shared_ptr<::arrow::Buffer>(std::move(buffer));
  }

 private:
  PooledFile file_;
  std::atomic<std::int64_t> at_{0};
  std::atomic<bool> closed_{false};
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
};

/// Nanoseconds in a unit of time, and Arrow's name of the unit. SettingsError for a unit that INT96
/// cannot be read in.
struct Int96Unit {
  std::uint64_t nanoseconds = 1;
  ::arrow::TimeUnit::type arrow = ::arrow::TimeUnit::NANO;

  explicit Int96Unit(TimeUnit unit) {
    switch (unit) {
      case TimeUnit::second:
        nanoseconds = 1000000000;
        arrow = ::arrow::TimeUnit::SECOND;
        return;
      case TimeUnit::millisecond:
        nanoseconds = 1000000;
        arrow = ::arrow::TimeUnit::MILLI;
        return;
      case TimeUnit::microsecond:
        nanoseconds = 1000;
        arrow = ::arrow::TimeUnit::MICRO;
        return;
      case TimeUnit::nanosecond:
        return;
      case TimeUnit::none:
      case TimeUnit::day:
        break;
    }
    throw SettingsError({.what = "INT96 times are not read in this unit",
                         .where = "ParquetSettings::int96_unit",
                         .why = "",
                         .fix = "Set it to second, millisecond, microsecond or nanosecond."});
  }
};

/// Why an INT96 time is not exactly a number of units in an int64; null if it is. Arrow's
/// conversion wraps and cuts off without a word.
///
/// Source  Parquet's INT96: nanoseconds of the day, and the Julian day, as Impala and Spark write
///         them; day 2440588 is 1970-01-01.
inline char const* int96_fault(::parquet::Int96 const& value, Int96Unit const& unit) {
  std::uint64_t of_day = 0;
  std::memcpy(&of_day, &value.value[0], sizeof of_day);
  if (of_day % unit.nanoseconds != 0) return "it is no whole number of these units";
  std::int64_t days = std::int64_t{value.value[2]} - 2440588;
  auto const day = static_cast<std::int64_t>(std::uint64_t{86400000000000} / unit.nanoseconds);
  std::uint64_t const units = of_day / unit.nanoseconds;
  if (units >= static_cast<std::uint64_t>(day)) return "its day has more than 24 hours";
  auto rest = static_cast<std::int64_t>(units);
  if (days < 0) {  // from the end of the day, so that the first day that fits in part does
    ++days;
    rest -= day;
  }
  std::int64_t sum = 0;
  bool const wraps =
      __builtin_mul_overflow(days, day, &sum) || __builtin_add_overflow(sum, rest, &sum);
  return wraps ? "it is beyond what 64 bits hold of these units" : nullptr;
}

/// DataError for an INT96 time in a column chunk that would be read as another time.
inline void require_int96(::parquet::ColumnReader& column, Int96Unit const& unit,
                          std::string const& where) {
  auto& reader = static_cast<::parquet::Int96Reader&>(column);
  ::parquet::ColumnDescriptor const& type = *reader.descr();
  constexpr std::int64_t batch = 1024;
  std::vector<std::int16_t> defined(batch, type.max_definition_level());
  std::vector<std::int16_t> repeated(batch, 0);
  std::vector<::parquet::Int96> values(batch);
  std::int64_t row = -1;
  while (reader.HasNext()) {
    std::int64_t count = 0;
    std::int64_t const levels =
        reader.ReadBatch(batch, defined.data(), repeated.data(), values.data(), &count);
    std::size_t at = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(levels); ++i) {
      if (repeated[i] == 0) ++row;
      if (defined[i] != type.max_definition_level()) continue;
      char const* const fault = int96_fault(values[at++], unit);
      if (!fault) continue;
      throw DataError({.what = "a time is not read",
                       .where = where + ", row " + std::to_string(row) +
                                " of the row group, column " + type.path()->ToDotString(),
                       .why = std::string(fault) + ": ParquetSettings::int96_unit",
                       .fix = "Set int96_unit to another unit, such as TimeUnit::microsecond, or "
                              "write the column as a timestamp of microseconds."});
    }
    if (levels == 0 && count == 0) break;
  }
}

/// A Parquet file whose footer was read. Const, and safe to read from several threads: each read
/// has a reader of its own, and they share the footer. It is open while it is read alone
/// (FilePool).
class ParquetFile {
 public:
  /// Reads the footer. `columns` are the names of the columns to read; empty means all.
  ///
  /// Errors  DataError for a file that is missing, truncated, damaged or no Parquet; IoError for
  ///         one that cannot be read now; SettingsError for a column that it lacks.
  ParquetFile(std::filesystem::path const& path, std::vector<std::string> columns, bool verify,
              TimeUnit int96 = TimeUnit::nanosecond)
      : name_(path.string()),
        verify_(verify),
        int96_(int96),
        columns_(std::move(columns)),
        file_(table_file(path, "Give the path of a readable Parquet file.")) {
    guarded(
        [&](std::shared_ptr<PooledInput> const& input) {
          footer_ = ::parquet::ParquetFileReader::Open(input, properties())->metadata();
          find_columns();
          check_arrow(reader(input, false)->GetSchema(&schema_), name_,
                      "the schema cannot be read");
          for (std::string const& column : columns_) {
            if (schema_->GetFieldIndex(column) >= 0) continue;
            throw DataError({.what = "two columns have one name",
                             .where = name_,
                             .why = "both are called " + column,
                             .fix = "Leave the column out by naming others in `columns`."});
          }
        },
        name_, "the footer cannot be read");
  }

  std::string const& name() const { return name_; }
  std::vector<std::string> const& columns() const { return columns_; }
  int groups() const { return footer_->num_row_groups(); }

  /// Rows of a group. DataError for a claim that cannot be.
  std::uint64_t rows(int group) const {
    return arrow_guarded(
        [&] {
          std::int64_t const rows = footer_->RowGroup(group)->num_rows();
          if (rows < 0 || rows > std::int64_t{1} << 40) {
            throw DataError({.what = "a row group has " + std::to_string(rows) + " rows",
                             .where = where(group),
                             .why = "",
                             .fix = "Fetch or write the file again."});
          }
          return static_cast<std::uint64_t>(rows);
        },
        where(group), "the footer is damaged");
  }

  /// Bytes that the columns of a row group take when they are decoded, by the footer: too few where
  /// repeated texts are stored once.
  std::uint64_t bytes(int group) const {
    return arrow_guarded(
        [&] {
          auto const chunks = footer_->RowGroup(group);
          std::uint64_t sum = 0;
          for (int const leaf : leaves_) {
            auto const chunk = chunks->ColumnChunk(leaf);
            int const width = ::parquet::GetTypeByteSize(chunk->type());
            std::int64_t const stored = chunk->total_uncompressed_size();
            sum += static_cast<std::uint64_t>(
                std::max<std::int64_t>({stored, width * chunk->num_values(), 0}));
          }
          return sum;
        },
        where(group), "the footer is damaged");
  }

  /// Decodes the columns of a row group, in the order of columns().
  std::shared_ptr<::arrow::Table> read(int group, bool threads) const {
    constexpr char const* what = "a row group cannot be read";
    BlockedSignals const blocked;  // threads that Arrow starts take no signals
    auto table = guarded(
        [&](std::shared_ptr<PooledInput> const& input) {
          auto const from = reader(input, threads);
          for (int const leaf : int96_leaves_) {
            require_int96(*from->parquet_reader()->RowGroup(group)->Column(leaf), int96_,
                          where(group));
          }
          auto read = from->ReadRowGroup(group, leaves_);
          // A list or a dictionary of texts beyond 2 GiB; a plain column comes in chunks.
          bool const large = read.status().IsNotImplemented() || read.status().IsCapacityError();
          return arrow_value(std::move(read), where(group), what,
                             large ? smaller_groups : "Fetch or write the file again.");
        },
        where(group), what);
    if (static_cast<std::uint64_t>(table->num_rows()) != rows(group)) {
      throw DataError({.what = "a row group is damaged",
                       .where = where(group),
                       .why = "the footer promises " + std::to_string(rows(group)) +
                              " rows, and its pages hold " + std::to_string(table->num_rows()),
                       .fix = "Fetch or write the file again."});
    }
    std::vector<int> order;
    for (std::string const& column : columns_) {
      order.push_back(table->schema()->GetFieldIndex(column));
    }
    return arrow_value(table->SelectColumns(order), where(group), what);
  }

  ::arrow::Field const& field(std::string const& column) const {
    return *schema_->field(schema_->GetFieldIndex(column));
  }

  /// Names and types of the columns that are read.
  std::string schema_text() const {
    std::string text;
    for (std::string const& column : columns_) {
      text += column + ": " + field(column).type()->ToString() + "; ";
    }
    return text;
  }

  std::string where(int group) const { return name_ + ", row group " + std::to_string(group); }

 private:
  ::parquet::ReaderProperties properties() const {
    ::parquet::ReaderProperties properties = ::parquet::default_reader_properties();
    properties.set_page_checksum_verification(verify_);
    return properties;
  }

  /// What `read(input)` returns. What the file threw goes before what Arrow makes of it.
  template <class Read>
  std::invoke_result_t<Read&, std::shared_ptr<PooledInput> const&> guarded(Read&& read,
                                                                           std::string const& where,
                                                                           char const* what) const {
    auto const input = std::make_shared<PooledInput>(file_);
    try {
      return arrow_guarded([&] { return read(input); }, where, what);
    } catch (...) {
      input->rethrow();
      throw;
    }
  }

  std::unique_ptr<::parquet::arrow::FileReader> reader(std::shared_ptr<PooledInput> const& input,
                                                       bool threads) const {
    ::parquet::arrow::FileReaderBuilder builder;
    check_arrow(builder.Open(input, properties(), footer_), name_, "the file cannot be read");
    ::parquet::ArrowReaderProperties how;
    how.set_use_threads(threads);
    how.set_coerce_int96_timestamp_unit(int96_.arrow);
    how.set_pre_buffer(false);  // that would read in a thread of Arrow's own
    builder.properties(how);
    std::unique_ptr<::parquet::arrow::FileReader> reader;
    check_arrow(builder.Build(&reader), name_, "the schema cannot be read");
    return reader;
  }

  /// Finds the leaves of the columns that are to be read: a nested column has several.
  void find_columns() {
    ::parquet::SchemaDescriptor const& schema = *footer_->schema();
    std::vector<std::string> all;
    for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
      std::string const& root = schema.GetColumnRoot(leaf)->name();
      if (std::find(all.begin(), all.end(), root) == all.end()) all.push_back(root);
    }
    if (columns_.empty()) columns_ = all;
    for (std::string const& column : columns_) {
      if (std::find(all.begin(), all.end(), column) != all.end()) continue;
      std::string names;
      for (std::string const& each : all) names += (names.empty() ? "" : ", ") + each;
      throw SettingsError({.what = "there is no column " + column,
                           .where = name_,
                           .why = "the columns are " + names,
                           .fix = "Name one of them."});
    }
    for (int leaf = 0; leaf < schema.num_columns(); ++leaf) {
      std::string const& root = schema.GetColumnRoot(leaf)->name();
      if (std::find(columns_.begin(), columns_.end(), root) != columns_.end()) {
        leaves_.push_back(leaf);
        if (schema.Column(leaf)->physical_type() == ::parquet::Type::INT96) {
          int96_leaves_.push_back(leaf);
        }
      }
    }
  }

  std::string name_;
  bool verify_;
  Int96Unit int96_;
  std::vector<std::string> columns_;
  std::vector<int> leaves_;
  std::vector<int> int96_leaves_;
  PooledFile file_;
  std::shared_ptr<::parquet::FileMetaData> footer_;
  std::shared_ptr<::arrow::Schema> schema_;
};

}  // namespace frugal::detail

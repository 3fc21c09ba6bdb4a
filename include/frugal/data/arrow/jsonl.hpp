// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/base/signal_free_thread.hpp>
#include <frugal/data/arrow/csv.hpp>
#include <frugal/data/arrow/table.hpp>
#include <frugal/data/arrow/table_set.hpp>
#include <frugal/data/arrow/text_reading.hpp>
#include <frugal/data/tables/files.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/error.hpp>

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/json/api.h>
#include <arrow/memory_pool.h>
#include <arrow/record_batch.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <arrow/table.h>
#include <arrow/type.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Looks at JSON lines, piece by piece, before a parser does: how deep arrays and objects are
/// nested, which integers no double holds, and whether columns occur at all.
///
/// The depth is at least what a parser sees that begins at the start of any line: a line feed ends
/// a string, which may have none, and closes nothing.
class JsonDepth {
 public:
  static constexpr std::size_t most = 64;

  /// An integer that no double holds.
  struct Integer {
    std::uint64_t line = 0;  ///< from 1
    std::string digits;
  };

  /// How a name occurs: as a key of a line's object, as a field of an object within, or not.
  struct Seen {
    bool key = false;
    bool field = false;
  };

  /// `watched` are names of columns, "box.width" for a field of an object.
  explicit JsonDepth(std::vector<std::string> const& watched = {}) : unseen_(watched.size()) {
    for (std::string const& name : watched) watched_.emplace(name, Seen{});
  }

  /// Whether all of it is nested at most 64 levels deep.
  bool take(std::string_view text) {
    for (char const c : text) {
      if (in_string_ && c != '\n') {
        if (c == '"' && !escaped_) {
          in_string_ = false;
        } else if (in_key_ && key_.size() < longest_key) {
          key_ += c;
        }
        escaped_ = c == '\\' && !escaped_;
        continue;
      }
      if (!digits_.empty()) {
        if ((c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' || c == '-' || c == '+') {
          if (digits_.size() < most_digits) digits_ += c;
          continue;
        }
        end_number();
      }
      switch (c) {
        case '\n':
          in_string_ = escaped_ = false;
          ++line_;
          break;
        case '"':
          in_string_ = true;
          in_key_ = depth_ > 0 && levels_[depth_ - 1].wants_key;
          if (in_key_) key_.clear();
          break;
        case ':':
          if (depth_ > 0 && levels_[depth_ - 1].wants_key) name();
          break;
        case ',':
          if (depth_ > 0) levels_[depth_ - 1].wants_key = levels_[depth_ - 1].object;
          break;
        case '[':
        case '{':
          if (depth_ == most) return false;
          levels_[depth_].object = levels_[depth_].wants_key = c == '{';
          levels_[depth_++].name.clear();
          break;
        case ']':
        case '}':
          if (depth_ > 0) --depth_;
          break;
        default:
          if (c == '-' || (c >= '0' && c <= '9')) digits_ = c;
      }
    }
    return true;
  }

  /// From 1.
  std::uint64_t line() const { return line_; }
  /// The first integer of each column that no double holds.
  std::map<std::string, Integer> const& integers() const { return integers_; }
  /// How a watched name occurred so far.
  Seen seen(std::string const& name) const { return watched_.at(name); }

 private:
  static constexpr std::size_t longest_key = std::size_t{1} << 16;
  static constexpr std::size_t most_digits = 400;  // a double has 309

  struct Level {
    bool object = false;
    bool wants_key = false;
    std::string name = {};
  };

  /// The name of the column in which this is.
  std::string const& path() {
    path_.clear();
    for (std::size_t i = 0; i < depth_; ++i) {
      if (!levels_[i].object) continue;
      if (i != 0) path_ += '.';
      path_ += levels_[i].name;
    }
    return path_;
  }

  void name() {
    Level& level = levels_[depth_ - 1];
    level.wants_key = false;
    level.name = key_;
    if (key_.find('\\') != key_.npos) {
      if (auto const plain = Json::parse('"' + key_ + '"')) level.name = plain->text();
    }
    if (unseen_ == 0) return;
    auto const found = watched_.find(path());
    if (found == watched_.end()) return;
    Seen& seen = found->second;
    if (!seen.key && !seen.field) --unseen_;
    (depth_ == 1 ? seen.key : seen.field) = true;
  }

  void end_number() {
    constexpr std::size_t exact_digits = 15;
    if (digits_.size() > exact_digits && digits_.find_first_of(".eE") == digits_.npos) {
      char const* const end = digits_.data() + digits_.size();
      std::int64_t whole = 0;
      double real = 0;
      bool const fits = std::from_chars(digits_.data(), end, whole).ec == std::errc();
      if (!fits) static_cast<void>(std::from_chars(digits_.data(), end, real));
      bool const exact = fits ? fits_double(whole) : exact_number(digits_, real);
      if (!exact && !integers_.contains(path())) {
        integers_.emplace(path_, Integer{.line = line_, .digits = digits_});
      }
    }
    digits_.clear();
  }

  std::array<Level, most> levels_;
  std::size_t depth_ = 0;
  bool in_string_ = false;
  bool in_key_ = false;
  bool escaped_ = false;
  std::uint64_t line_ = 1;
  std::string key_;
  std::string digits_;
  std::string path_;
  std::map<std::string, Integer> integers_;
  std::map<std::string, Seen> watched_;
  std::size_t unseen_;
};

/// A stream of JSON lines that ends with an error where they are nested too deep: Arrow builds and
/// frees nested types by recursion, and a line of some thousand brackets ends the process.
class ShallowJson : public ::arrow::io::InputStream {
 public:
  explicit ShallowJson(std::shared_ptr<::arrow::io::InputStream> input,
                       std::vector<std::string> const& watched = {})
      : input_(std::move(input)), depth_(watched) {}

  /// What was seen so far, from any thread.
  std::map<std::string, JsonDepth::Integer> integers() const {
    std::lock_guard const lock(mutex_);
    return depth_.integers();
  }
  JsonDepth::Seen seen(std::string const& name) const {
    std::lock_guard const lock(mutex_);
    return depth_.seen(name);
  }

  ::arrow::Status Close() override { return input_->Close(); }
  bool closed() const override { return input_->closed(); }
  ::arrow::Result<std::int64_t> Tell() const override { return input_->Tell(); }

  ::arrow::Result<std::int64_t> Read(std::int64_t size, void* to) override {
    ARROW_ASSIGN_OR_RAISE(std::int64_t const got, input_->Read(size, to));
    ARROW_RETURN_NOT_OK(checked({static_cast<char const*>(to), static_cast<std::size_t>(got)}));
    return got;
  }
  ::arrow::Result<std::shared_ptr<::arrow::Buffer>> Read(std::int64_t size) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, input_->Read(size));
    ARROW_RETURN_NOT_OK(checked(std::string_view(*buffer)));
    return buffer;
  }

 private:
  ::arrow::Status checked(std::string_view text) {
    std::lock_guard const lock(mutex_);
    if (depth_.take(text)) return ::arrow::Status::OK();
    return ::arrow::Status::Invalid("line " + std::to_string(depth_.line()) +
                                    " is nested deeper than " + std::to_string(JsonDepth::most) +
                                    " levels");
  }

  std::shared_ptr<::arrow::io::InputStream> input_;
  mutable std::mutex mutex_;
  JsonDepth depth_;
};

}  // namespace frugal::detail

namespace frugal {

/// How a JSONL file is read: an object on each line.
struct JsonlSettings {
  std::vector<std::string> columns = {};              ///< the columns to read; empty: all
  std::map<std::string, ColumnType> types = {};       ///< of columns; the others are inferred
  std::uint64_t most_bytes = std::uint64_t{1} << 30;  ///< of a file that is read into memory
  std::uint64_t most_record_bytes = 256U << 20;       ///< of a line, and of a block of lines
};

namespace detail {

/// A column whose type is given: its keys, from the line's object inwards.
struct JsonColumn {
  std::vector<std::string> keys;
  ColumnType type;
};

/// The columns as fields; fields of an object as fields of a struct.
inline ::arrow::FieldVector json_fields(std::vector<JsonColumn> const& columns,
                                        std::string const& where) {
  std::map<std::string, std::vector<JsonColumn>> by_key;
  for (JsonColumn const& column : columns) by_key[column.keys.front()].push_back(column);
  ::arrow::FieldVector fields;
  for (auto& [key, inner] : by_key) {
    auto const leaf = std::find_if(inner.begin(), inner.end(),
                                   [](JsonColumn const& each) { return each.keys.size() == 1; });
    if (leaf != inner.end()) {
      if (inner.size() > 1) {
        throw SettingsError({.what = "a column has a type, and fields that have types",
                             .where = where + ", `types`, " + key,
                             .why = "a value is no object as well",
                             .fix = "Name either of them."});
      }
      if (leaf->type == ColumnType::days) {
        throw SettingsError({.what = "JSON has no dates",
                             .where = where + ", `types`, " + key,
                             .why = "",
                             .fix = "Read them as ColumnType::text, or as seconds."});
      }
      fields.push_back(::arrow::field(key, arrow_type(leaf->type)));
      continue;
    }
    for (JsonColumn& each : inner) each.keys.erase(each.keys.begin());
    fields.push_back(::arrow::field(key, ::arrow::struct_(json_fields(inner, where))));
  }
  return fields;
}

/// A JSONL file that is read: its options, and what is seen of it on the way.
class JsonlReading {
 public:
  JsonlReading(std::filesystem::path const& path, JsonlSettings const& settings, TextWay const& way)
      : path_(path), settings_(settings), input_(open(path, names(settings))) {
    read.block_size = static_cast<std::int32_t>(way.block_bytes);
    std::vector<JsonColumn> columns;
    std::vector<std::string> const dotted = dotted_keys();
    for (auto const& [column, type] : settings.types) {
      JsonColumn each{.keys = {}, .type = type};
      bool const whole = std::find(dotted.begin(), dotted.end(), column) != dotted.end();
      for (std::size_t begin = 0; begin <= column.size();) {
        std::size_t const end =
            whole ? column.size() : std::min(column.find('.', begin), column.size());
        each.keys.push_back(column.substr(begin, end - begin));
        begin = end + 1;
      }
      columns.push_back(std::move(each));
    }
    if (!columns.empty()) {
      parse.explicit_schema = ::arrow::schema(json_fields(columns, path.string()));
    }
  }

  std::shared_ptr<ShallowJson> const& input() const { return input_; }

  /// DataError for an integer so far that is another number in its column.
  void require_digits(::arrow::Schema const& schema) const {
    for (auto const& [column, integer] : input_->integers()) {
      auto const field = schema.GetFieldByName(column);
      if (!field || settings_.types.contains(column)) continue;
      auto const* const items = arrow_items(*field->type());
      if ((items ? items : field->type().get())->id() != ::arrow::Type::DOUBLE) continue;
      inexact_number(
          path_.string() + ", line " + std::to_string(integer.line) + ", column " + column,
          integer.digits,
          "Write such numbers as strings; or give the column the type ColumnType::real in "
          "`types` to have them rounded.");
    }
  }

  /// SettingsError for a column of `types` that no line has. Arrow makes one of nulls.
  void require_columns(std::vector<std::string> columns) const {
    auto const missing = [&](std::string const& column) {
      if (!settings_.types.contains(column)) return false;
      auto const seen = input_->seen(column);
      return !seen.key && !seen.field;
    };
    std::erase_if(columns, missing);
    for (auto const& [column, type] : settings_.types) {
      if (missing(column)) require_column(column, columns, path_.string() + ", `types`");
    }
  }

  ::arrow::json::ReadOptions read = ::arrow::json::ReadOptions::Defaults();
  ::arrow::json::ParseOptions parse = ::arrow::json::ParseOptions::Defaults();

 private:
  static std::vector<std::string> names(JsonlSettings const& settings) {
    std::vector<std::string> names;
    for (auto const& [column, type] : settings.types) names.push_back(column);
    return names;
  }

  static std::shared_ptr<ShallowJson> open(std::filesystem::path const& path,
                                           std::vector<std::string> const& watched) {
    return std::make_shared<ShallowJson>(open_text(path), watched);
  }

  /// The names with a dot that are keys as they are, and no fields of objects, in the first MiB.
  std::vector<std::string> dotted_keys() const {
    std::vector<std::string> dotted = names(settings_);
    std::erase_if(dotted, [](std::string const& name) { return name.find('.') == name.npos; });
    if (dotted.empty()) return dotted;
    auto const head = open(path_, dotted);
    static_cast<void>(head->Read(std::int64_t{1} << 20));  // what is wrong with it, the reader says
    std::erase_if(dotted, [&](std::string const& name) {
      JsonDepth::Seen const seen = head->seen(name);
      return !seen.key || seen.field;
    });
    return dotted;
  }

  std::filesystem::path path_;
  JsonlSettings const& settings_;
  std::shared_ptr<ShallowJson> input_;
};

}  // namespace detail

/// Reads a JSONL file into memory, with Arrow. Numbers are integers or floats, strings texts, or
/// times if all look like "2026-01-31 12:00:00" (integers in seconds); arrays of numbers or strings
/// are lists. Fields of an object within the object have names with a dot, in `types` as well. A
/// field that a line lacks is null.
///
/// Errors  DataError: a missing file, a line that is no object, a value of another type than those
///         before, an integer that would be rounded to another one (beyond int64, or beyond 2^53
///         among fractions), more than 64 levels of arrays and objects. SettingsError for a file
///         above most_bytes, for an unknown column, in `types` too, and for one whose type no cell
///         holds. EmptySourceError for a file without rows.
inline TableSet read_jsonl(std::filesystem::path const& path, JsonlSettings const& settings = {}) {
  std::string const where = path.string();
  detail::require_small(path, settings.most_bytes, "JsonlSettings", "jsonl_to_parquet");
  constexpr char const* what = "the JSONL file cannot be read";
  detail::BlockedSignals const blocked;  // threads that Arrow starts take no signals
  auto const read = [&](detail::TextWay const& way) {
    detail::JsonlReading const file(path, settings, way);
    auto const reader =
        detail::text_value(::arrow::json::TableReader::Make(::arrow::default_memory_pool(),
                                                            file.input(), file.read, file.parse),
                           where);
    auto table = detail::flat(detail::text_value(reader->Read(), where), where);
    file.require_columns(table->ColumnNames());
    table = detail::chosen(table, settings.columns, where);
    file.require_digits(*table->schema());
    return table;
  };
  auto table = detail::read_text(path, settings.most_record_bytes, settings.most_bytes, what, read);
  return detail::table_set(std::move(table), {}, where, detail::file_identity(path));
}

/// Writes a JSONL file of any size as Parquet, block by block. Columns and types are those of the
/// first MiB, and of `types`. Returns the rows. The Parquet file must not exist.
///
/// Errors  those of read_jsonl, most_bytes aside, and those of ParquetWriter.
inline std::uint64_t jsonl_to_parquet(std::filesystem::path const& from,
                                      std::filesystem::path const& to,
                                      JsonlSettings const& settings = {},
                                      ParquetWriterSettings const& writer = {}) {
  std::string const where = from.string();
  constexpr char const* what = "the JSONL file cannot be read";
  detail::BlockedSignals const blocked;
  auto const convert = [&](detail::TextWay const& way) {
    detail::JsonlReading const file(from, settings, way);
    auto const reader = detail::text_value(
        ::arrow::json::StreamingReader::Make(file.input(), file.read, file.parse), where);
    return detail::to_parquet(
        *reader, settings.columns, where, what, to, writer,
        [&](::arrow::RecordBatch const& batch, std::uint64_t) {
          file.require_digits(*batch.schema());
        },
        [&] {
          auto const schema = detail::flat(
              detail::arrow_value(::arrow::Table::MakeEmpty(reader->schema()), where, what), where);
          file.require_columns(schema->ColumnNames());
        });
  };
  return detail::read_text(from, settings.most_record_bytes, 0, what, convert);
}

}  // namespace frugal

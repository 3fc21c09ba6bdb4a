// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/data/arrow/status.hpp>
#include <frugal/error.hpp>

#include <arrow/result.h>
#include <arrow/status.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace frugal::detail {

inline constexpr char const* fix_text =
    "Correct the file there, or give the column a type in `types`.";

/// What Arrow said while it read a text file: `read_text` tries once more, or throws the DataError.
struct TextFailure {
  ::arrow::Status status;
  std::string where;
};

template <class T>
T text_value(::arrow::Result<T> result, std::string const& where) {
  if (!result.ok()) throw TextFailure{.status = result.status(), .where = where};
  return std::move(result).MoveValueUnsafe();
}

/// How a text file is read this time.
struct TextWay {
  std::int64_t block_bytes = std::int64_t{1} << 20;  ///< a record does not fit into two blocks
  bool threads = true;                               ///< without, Arrow's errors have the row
  bool zoned = false;                                ///< times of given units have a zone
  bool blank_rows = false;                           ///< blank lines are rows

  /// Another way after Arrow's `error`; false if there is none. `whole`: the file in one block, so
  /// that an error counts rows from the beginning of the file.
  bool change(std::string_view error, std::int64_t most, std::int64_t whole) {
    auto const says = [&](char const* text) { return error.find(text) != error.npos; };
    if (straddles(error)) {
      if (block_bytes >= most) return false;
      block_bytes = std::min(most, 4 * block_bytes);
      return true;
    }
    if (says("expected no zone offset") && !zoned) return zoned = true;
    bool const other = threads || (says("in row") && block_bytes < whole);
    if (says("in row")) block_bytes = std::max(block_bytes, whole);
    threads = false;
    return other;
  }

  static bool straddles(std::string_view error) {
    return error.find("straddles two block boundaries") != error.npos;
  }
};

/// What `read(way)` returns, with larger blocks until the longest record fits. After an error a
/// file of up to `most_whole` bytes is read once more in one block.
template <class Read>
auto read_text(std::filesystem::path const& path, std::uint64_t most_record,
               std::uint64_t most_whole, char const* what, Read const& read) {
  constexpr std::uint64_t limit = std::numeric_limits<std::int32_t>::max();  // Arrow's
  auto const most = static_cast<std::int64_t>(std::clamp<std::uint64_t>(most_record, 2, limit));
  std::error_code error;
  std::uint64_t const size = std::filesystem::file_size(path, error);
  std::int64_t const whole =
      error || size > std::min(most_whole, limit - 1) ? 0 : static_cast<std::int64_t>(size) + 1;
  TextWay way;
  way.block_bytes = std::min(way.block_bytes, most);
  while (true) {
    try {
      return arrow_guarded([&] { return read(std::as_const(way)); }, path.string(), what);
    } catch (TextFailure const& failure) {
      if (way.change(failure.status.message(), most, whole)) continue;
      if (TextWay::straddles(failure.status.message())) {
        throw DataError({.what = "a record of the file is too long",
                         .where = failure.where,
                         .why = "it does not fit into " + std::to_string(most) +
                                " bytes, as most_record_bytes says",
                         .fix = "Raise most_record_bytes, or look for a quotation mark that is not "
                                "closed."});
      }
      check_arrow(failure.status, failure.where, what, fix_text);
    }
  }
}

/// Whether a double that was read from this number is what the text says: integers without point
/// and exponent to the last digit, others rounded, and none of them infinite.
inline bool exact_number(std::string_view text, double value) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  if (text.find_first_of("nN") != text.npos) return true;  // nan, inf
  bool const negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (value > std::numeric_limits<double>::max() || value < std::numeric_limits<double>::lowest()) {
    return false;
  }
  if (text.find_first_not_of("0123456789") != text.npos) return true;
  while (text.size() > 1 && text.front() == '0') text.remove_prefix(1);
  char digits[400];
  int const count = std::snprintf(digits, sizeof digits, "%.0f", negative ? -value : value);
  return text == std::string_view(digits, static_cast<std::size_t>(std::max(count, 0)));
}

/// The error for an integer that the type of its column, double, does not hold.
[[noreturn]] inline void inexact_number(std::string const& where, std::string const& number,
                                        std::string fix) {
  throw DataError({.what = "a number would be read as another number",
                   .where = where,
                   .why = "it is " + number.substr(0, 60) +
                          ", which neither int64 nor double holds, or its column has fractions",
                   .fix = std::move(fix)});
}

}  // namespace frugal::detail

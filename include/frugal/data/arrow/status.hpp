// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/error.hpp>

#include <arrow/result.h>
#include <arrow/status.h>

#include <exception>
#include <string>
#include <utility>

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

}  // namespace frugal::detail

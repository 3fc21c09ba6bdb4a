// SPDX-License-Identifier: Apache-2.0
// Shapes: B rows in a batch, C columns, n numbers in a list.
#pragma once

#include <frugal/data/batch.hpp>
#include <frugal/data/data_identity.hpp>
#include <frugal/data/tables/row.hpp>
#include <frugal/data/tables/row_tensor.hpp>
#include <frugal/error.hpp>

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace frugal {

/// The columns of a table that a Batch has. A collate function for rows, too.
///
/// One data column: lists of equal length or bytes [B, n], or numbers [B], of the type in the file.
/// Several: numbers side by side [B, C], float32. A target of integers or booleans is int64, as
/// class labels are. float64 becomes float32 everywhere; unsigned integers above 8 bits become the
/// next wider signed type.
///
/// Errors  SettingsError without a data column; DataError for a null, a text in place of a number,
///         or lists of unlike length, with file and row.
struct BatchColumns {
  std::vector<std::string> data = {};  ///< at least one
  std::string target = {};             ///< empty: the batch's target is undefined

  void identify(DataIdentity& to) const {
    std::string text;
    for (std::string const& column : data) text += column + ", ";
    to.add("batch columns", text + "target " + (target.empty() ? "nothing" : target));
  }

  /// Stacks the columns of some rows.
  Batch operator()(std::vector<Row> const& rows) const {
    std::vector<at::Tensor> parts;
    for (std::string const& column : data) parts.push_back(column_of(rows, column));
    return batch(std::move(parts), target.empty() ? at::Tensor() : column_of(rows, target));
  }

  /// The batch of whole columns: data as above, target undefined without one.
  Batch batch(std::vector<at::Tensor> parts, at::Tensor labels) const {
    if (parts.empty()) {
      throw SettingsError({.what = "a batch without data columns",
                           .where = "BatchColumns",
                           .why = "",
                           .fix = "Name at least one in `data`."});
    }
    for (at::Tensor& part : parts) part = narrowed(std::move(part));
    if (parts.size() > 1) {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if (parts[i].dim() == 1) continue;
        throw ShapeError({.what = "a list among several data columns",
                          .where = "column " + data[i],
                          .why = "columns of numbers are put side by side, and lists are not",
                          .fix = "Give one list, or columns of numbers."});
      }
      for (at::Tensor& part : parts) part = part.to(at::kFloat);
    }
    if (labels.defined()) {
      labels = narrowed(std::move(labels));
      bool const counts = at::isIntegralType(labels.scalar_type(), /*includeBool=*/true);
      if (counts && labels.dim() == 1) labels = labels.to(at::kLong);
    }
    return {parts.size() == 1 ? std::move(parts[0]) : at::stack(parts, 1), std::move(labels)};
  }

 private:
  static at::Tensor narrowed(at::Tensor column) {
    return column.scalar_type() == at::kDouble ? column.to(at::kFloat) : column;
  }

  static at::Tensor column_of(std::vector<Row> const& rows, std::string const& column) {
    std::vector<at::Tensor> each;
    each.reserve(rows.size());
    for (Row const& row : rows) {
      each.push_back(row.tensor(column));
      if (each.back().sizes() != each.front().sizes() ||
          each.back().scalar_type() != each.front().scalar_type()) {
        throw DataError(
            {.what = "rows of a batch have lists of unlike length or type",
             .where = row.where() + ", column " + column,
             .why = detail::shape_text(each.back()) + " after " + detail::shape_text(each.front()),
             .fix = "Pad the lists with a transform, or collate the rows with Pad."});
      }
    }
    return at::stack(each);
  }
};

}  // namespace frugal

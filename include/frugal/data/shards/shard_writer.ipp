// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/shard_writer.hpp>

#include <frugal/core/source/shape_text.hpp>
#include <frugal/data/tensor_dtype.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>

namespace frugal {

FRUGAL_INLINE RecordLayout ShardWriter::layout() {
  std::vector<RecordField> fields;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    auto const type = detail::stored_type(parts_[k].scalar_type());
    if (!type) {
      throw DtypeError(
          {.what = "the dtype cannot be stored",
           .where = "sample 0, '" + names_[k] + "'",
           .why = std::string("records have no type ") + at::toString(parts_[k].scalar_type()),
           .fix = "Convert the tensor first."});
    }
    fields.push_back({.name = names_[k], .dtype = *type, .shape = {}});
    for (std::int64_t const extent : parts_[k].sizes()) {
      fields.back().shape.push_back(static_cast<std::uint64_t>(extent));
    }
  }
  std::string why;
  auto layout = RecordLayout::of(std::move(fields), why);
  if (!layout) {
    throw ShapeError({.what = "the sample cannot be a record",
                      .where = "sample 0",
                      .why = why,
                      .fix = "Give every sample tensors with elements, or store bytes."});
  }
  return *std::move(layout);
}

FRUGAL_INLINE void ShardWriter::require_alike() const {
  auto const& fields = files_.layout().fields();
  bool shapes = fields.size() == parts_.size();
  bool types = true;
  std::string text;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    text += (k == 0 ? "" : ", ") + names_[k] + " " + detail::shape_text(parts_[k]);
    if (k >= fields.size()) continue;
    shapes = shapes && fields[k].name == names_[k] &&
             std::ranges::equal(fields[k].shape, parts_[k].sizes());
    types = types && detail::torch_type(fields[k].dtype) == parts_[k].scalar_type();
  }
  if (shapes && types) return;
  Fault fault{.what = "the sample differs from the first one",
              .where = "sample " + std::to_string(files_.records()),
              .why = "it is " + (text.empty() ? "bytes" : text) + ", and a record is " +
                     files_.layout().text(),
              .fix =
                  "Give every sample the same parts, shapes and dtypes: pad or convert them "
                  "first, or write samples of unlike sizes as bytes (std::string)."};
  if (shapes) throw DtypeError(std::move(fault));
  throw ShapeError(std::move(fault));
}

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/tensor_dataset.hpp>

#include <frugal/core/source/shape_text.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

namespace frugal {

FRUGAL_INLINE Rows::Rows(at::Tensor tensor)
    : tensor_(std::move(tensor)),
      sizes_(tensor_.sizes().begin(), tensor_.sizes().end()),
      blocks_(tensor_.is_cpu() && tensor_.layout() == at::kStrided && tensor_.is_contiguous() &&
              !tensor_.is_quantized() && !tensor_.is_conj() && !tensor_.is_neg()) {
  if (blocks_ && tensor_.size(0) > 0) row_bytes_ = tensor_.nbytes() / count(tensor_.size(0));
}

FRUGAL_INLINE at::Tensor Rows::slice(std::int64_t first, std::int64_t n) {
  sizes_[0] = n;
  return tensor_.as_strided(sizes_, tensor_.strides(),
                            tensor_.storage_offset() + first * tensor_.stride(0));
}

FRUGAL_INLINE at::Tensor Rows::gather(std::span<std::int64_t const> indices) {
  sizes_[0] = static_cast<std::int64_t>(indices.size());
  at::Tensor out = at::empty(sizes_, tensor_.options());
  if (row_bytes_ == 0) return out;
  auto const* const from = static_cast<std::byte const*>(tensor_.const_data_ptr());
  auto* const to = static_cast<std::byte*>(out.mutable_data_ptr());
  // Below a quarter of a mebibyte per thread, waking threads costs more than copying.
  std::int64_t const grain =
      std::max<std::int64_t>(1, (std::int64_t{1} << 18) / static_cast<std::int64_t>(row_bytes_));
  at::parallel_for(0, sizes_[0], grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (i + rows_ahead < end) prefetch(from + count(indices[count(i + rows_ahead)]) * row_bytes_);
      std::memcpy(to + count(i) * row_bytes_, from + count(indices[count(i)]) * row_bytes_,
                  row_bytes_);
    }
  });
  return out;
}

FRUGAL_INLINE void Rows::prefetch(std::byte const* row) const {
  for (std::size_t i = 0; i < std::min(row_bytes_, begin_bytes); i += line_bytes) {
    __builtin_prefetch(row + i);
  }
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE at::Tensor resident(at::Tensor tensor, std::string const& name) {
  if (!tensor.defined() || tensor.dim() == 0) {
    throw ShapeError({.what = name + " has no first dimension to take samples from",
                      .where = tensor.defined() ? "shape []" : "an undefined tensor",
                      .why = "",
                      .fix = "Give a tensor of shape [samples, ...]."});
  }
  if (tensor.requires_grad()) return tensor.detach();
  return tensor;
}

FRUGAL_INLINE void refuse_moved_set(char const* type) {
  throw DataError({.what = "the set has no samples any more",
                   .where = type,
                   .why = "std::move has given them to another object",
                   .fix = "Use that one, or copy the set: a copy shares the tensors."});
}

FRUGAL_INLINE void require_resident_alike(at::Tensor const& data, at::Tensor const& other,
                                          std::string const& name) {
  if (data.size(0) != other.size(0)) {
    throw ShapeError({.what = "data and " + name + " differ in length",
                      .where = "data " + shape_text(data) + ", " + name + " " + shape_text(other),
                      .why = "the first dimension counts samples in both",
                      .fix = "Give one " + name + " per sample."});
  }
  if (data.device() != other.device()) {
    throw DataError(
        {.what = "data and " + name + " are on two devices",
         .where = "data on " + data.device().str() + ", " + name + " on " + other.device().str(),
         .why = "",
         .fix = "Move both to one of them."});
  }
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::optional<Batch> TensorDataset::next() {
  if (!data_.tensor().defined()) [[unlikely]]
    detail::refuse_moved_set("TensorDataset");
  Pass::Slice const slice = pass_.advance();
  if (slice.count == 0) return std::nullopt;
  auto const first = static_cast<std::int64_t>(slice.first);
  auto const count = static_cast<std::int64_t>(slice.count);
  if (!pass_.shuffles()) {
    return Batch{data_.slice(first, count), target_.slice(first, count)};
  }
  indices_.resize(slice.count);
  pass_.indices(slice, std::span(indices_));
  if (data_.by_blocks() && target_.by_blocks()) {
    return Batch{data_.gather(indices_), target_.gather(indices_)};
  }
  // Pageable memory is staged before an asynchronous copy comes back: no wait for the device,
  // and nothing that the next batch could overwrite.
  at::Tensor const index_B =
      at::tensor(indices_).to(data_.tensor().device(), /*non_blocking=*/true);
  return Batch{data_.gather(index_B), target_.gather(index_B)};
}

FRUGAL_INLINE void TensorDataset::identify(DataIdentity& to) const {
  pass_.identify(to);
  to.add("data", detail::tensor_identity(data_.tensor()));
  to.add("target", detail::tensor_identity(target_.tensor()));
}

FRUGAL_INLINE FieldsDataset::FieldsDataset(FieldsBatch set, LoaderOptions loading)
    : FieldsDataset(rows_of(std::move(set)), loading) {}

FRUGAL_INLINE std::optional<FieldsBatch> FieldsDataset::next() {
  if (parts_.empty()) [[unlikely]]
    detail::refuse_moved_set("FieldsDataset");
  Pass::Slice const slice = pass_.advance();
  if (slice.count == 0) return std::nullopt;
  at::Tensor index_B;
  if (pass_.shuffles()) {
    indices_.resize(slice.count);
    pass_.indices(slice, std::span(indices_));
  }
  FieldsBatch batch;
  for (auto& [name, rows] : parts_) {
    at::Tensor part;
    if (!pass_.shuffles()) {
      part = rows.slice(static_cast<std::int64_t>(slice.first),
                        static_cast<std::int64_t>(slice.count));
    } else if (rows.by_blocks()) {
      part = rows.gather(indices_);
    } else {
      if (!index_B.defined()) {
        index_B = at::tensor(indices_).to(rows.tensor().device(), /*non_blocking=*/true);
      }
      part = rows.gather(index_B);
    }
    place(batch, name, std::move(part));
  }
  return batch;
}

FRUGAL_INLINE void FieldsDataset::identify(DataIdentity& to) const {
  pass_.identify(to);
  for (auto const& [name, rows] : parts_) {
    to.add(label(name), detail::tensor_identity(rows.tensor()));
  }
}

FRUGAL_INLINE FieldsDataset::FieldsDataset(Parts parts, LoaderOptions loading)
    : parts_(std::move(parts)),
      pass_(static_cast<std::uint64_t>(parts_.front().second.tensor().size(0)), loading,
            "resident data " + detail::shape_text(parts_.front().second.tensor())) {}

FRUGAL_INLINE FieldsDataset::Parts FieldsDataset::rows_of(FieldsBatch set) {
  Parts parts;
  auto const add = [&](Kind kind, std::string const& text, at::Tensor tensor) {
    Name const name{kind, text};
    at::Tensor rows = detail::resident(std::move(tensor), label(name));
    if (!parts.empty()) {
      detail::require_resident_alike(parts.front().second.tensor(), rows, label(name));
    }
    parts.emplace_back(name, Rows(std::move(rows)));
  };
  add(Kind::data, "data", std::move(set.data));
  if (set.target.defined()) add(Kind::target, "target", std::move(set.target));
  for (auto& [name, tensor] : set.fields) add(Kind::field, name, std::move(tensor));
  return parts;
}

FRUGAL_INLINE void FieldsDataset::place(FieldsBatch& batch, Name const& name, at::Tensor part) {
  switch (name.kind) {
    case Kind::data:
      batch.data = std::move(part);
      break;
    case Kind::target:
      batch.target = std::move(part);
      break;
    case Kind::field:
      batch.fields.emplace_hint(batch.fields.end(), name.text, std::move(part));
      break;
  }
}

}  // namespace frugal

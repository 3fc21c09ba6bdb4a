// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/tensor_dataset.hpp>

#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <span>

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

}  // namespace frugal

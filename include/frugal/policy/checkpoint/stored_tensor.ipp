// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/stored_tensor.hpp>

#include <frugal/data/tensor_dtype.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace frugal::detail {

FRUGAL_INLINE TensorView stored_view(std::string const& name, at::Tensor const& tensor) {
  auto const type = stored_type(tensor.scalar_type());
  if (!type) {
    throw FormatError(
        {.what = "the tensor '" + name + "' cannot be stored",
         .where = "safetensors",
         .why = std::string("the format has no type ") + at::toString(tensor.scalar_type()),
         .fix = "Store it as another type, or take it out of the module."});
  }
  // An int64 may be read as a uint64, and a size is never negative.
  auto const* const sizes = reinterpret_cast<std::uint64_t const*>(tensor.sizes().data());
  return {.name = name,
          .dtype = *type,
          .shape = {sizes, tensor.sizes().size()},
          .bytes = {static_cast<std::byte const*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

FRUGAL_INLINE at::Tensor tensor_in_file(TensorView const& view) {
  auto const type = torch_type(view.dtype);
  if (!type) return {};
  auto const* const sizes = reinterpret_cast<std::int64_t const*>(view.shape.data());
  at::IntArrayRef const shape(sizes, view.shape.size());
  at::TensorOptions const options = at::TensorOptions().dtype(type);
  auto* const data = const_cast<std::byte*>(view.bytes.data());  // never written to
  if (view.aligned()) return at::from_blob(data, shape, options);
  at::Tensor copy = at::empty(shape, options);
  std::copy(view.bytes.begin(), view.bytes.end(), static_cast<std::byte*>(copy.mutable_data_ptr()));
  return copy;
}

FRUGAL_INLINE std::string type_and_shape(at::Tensor const& tensor) {
  auto const type = stored_type(tensor.scalar_type());
  std::string text(type ? dtype_name(*type) : std::string_view(at::toString(tensor.scalar_type())));
  text += " [";
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(tensor.size(i));
  }
  return text + "]";
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/cache/sample_codec.hpp>

#include <frugal/data/tensor_dtype.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void SampleEncoder::add_tensor(at::Tensor const& tensor) {
  if (!tensor.defined()) return append_le(bytes_, std::uint8_t{0xff});
  // A conjugate and a negative view have a flag in place of other bytes.
  at::Tensor const whole = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
  auto const type = stored_type(whole.scalar_type());
  if (!type) {
    throw DtypeError({.what = "the dtype cannot be stored in a cache",
                      .where = "a tensor of a sample",
                      .why = std::string("it is ") + at::toString(whole.scalar_type()),
                      .fix = "Convert it in the transform."});
  }
  append_le(bytes_, static_cast<std::uint8_t>(*type));
  append_le(bytes_, static_cast<std::uint8_t>(whole.dim()));
  for (std::int64_t const extent : whole.sizes()) append_le(bytes_, extent);
  append_bytes(bytes_, {static_cast<std::byte const*>(whole.const_data_ptr()), whole.nbytes()});
}

FRUGAL_INLINE at::Tensor SampleDecoder::read_tensor() {
  auto const code = number<std::uint8_t>();
  if (code == 0xff) return {};
  if (code >= dtype_cards.size()) fail("a tensor has an unknown dtype");
  auto const dtype = static_cast<Dtype>(code);
  auto const type = torch_type(dtype);
  if (!type) fail("a tensor has a dtype that LibTorch lacks");
  std::vector<std::uint64_t> shape(number<std::uint8_t>());
  for (std::uint64_t& extent : shape) extent = number<std::uint64_t>();
  auto const bits = tensor_bits(dtype, shape);
  if (!bits) fail("a tensor is too large");
  auto const data = take(*bits / 8);
  std::vector<std::int64_t> const sizes(shape.begin(), shape.end());
  at::Tensor tensor = at::empty(sizes, at::TensorOptions().dtype(type));
  if (!data.empty()) std::memcpy(tensor.mutable_data_ptr(), data.data(), data.size());
  return tensor;
}

FRUGAL_INLINE std::uint64_t SampleDecoder::count() {
  auto const items = number<std::uint64_t>();
  if (items > bytes_.size()) fail("a list is longer than the sample");
  return items;
}

FRUGAL_INLINE std::span<std::byte const> SampleDecoder::take(std::uint64_t size) {
  if (size > bytes_.size()) fail("it ends too early");
  auto const taken = bytes_.first(size);
  bytes_ = bytes_.subspan(size);
  return taken;
}

FRUGAL_INLINE void SampleDecoder::fail(std::string why) const {
  throw DataError({.what = "a cached sample cannot be read",
                   .where = name_,
                   .why = std::move(why),
                   .fix = "Raise the version of the transform: the cache was written by other "
                          "code."});
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <utility>

#include <frugal/checkpoint/dtype.hpp>

namespace frugal::detail {

/// LibTorch's element types and those of stored tensors. Types that the format lacks (complex
/// doubles, quantized integers) have no row.
inline constexpr std::array<std::pair<at::ScalarType, Dtype>, 19> stored_types{{
    {at::ScalarType::Bool, Dtype::boolean},
    {at::ScalarType::Byte, Dtype::u8},
    {at::ScalarType::Char, Dtype::i8},
    {at::ScalarType::Short, Dtype::i16},
    {at::ScalarType::UInt16, Dtype::u16},
    {at::ScalarType::Int, Dtype::i32},
    {at::ScalarType::UInt32, Dtype::u32},
    {at::ScalarType::Long, Dtype::i64},
    {at::ScalarType::UInt64, Dtype::u64},
    {at::ScalarType::Half, Dtype::f16},
    {at::ScalarType::BFloat16, Dtype::bf16},
    {at::ScalarType::Float, Dtype::f32},
    {at::ScalarType::Double, Dtype::f64},
    {at::ScalarType::ComplexFloat, Dtype::c64},
    {at::ScalarType::Float8_e5m2, Dtype::f8_e5m2},
    {at::ScalarType::Float8_e4m3fn, Dtype::f8_e4m3},
    {at::ScalarType::Float8_e8m0fnu, Dtype::f8_e8m0},
    {at::ScalarType::Float8_e4m3fnuz, Dtype::f8_e4m3fnuz},
    {at::ScalarType::Float8_e5m2fnuz, Dtype::f8_e5m2fnuz},
}};

std::optional<Dtype> stored_type(at::ScalarType type);

std::optional<at::ScalarType> torch_type(Dtype type);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/tensor_dtype.ipp>
#endif

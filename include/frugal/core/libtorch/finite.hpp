// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <vector>

// Which tensors hold NaN or infinity. Each tensor is read once, and none is written. No square is
// computed: numbers whose squares overflow are finite.
namespace frugal::detail {

/// The elements of a tensor that can be NaN or infinite, as real numbers of a type for which all
/// kernels exist: the stored values of a sparse tensor, real and imaginary parts of a complex one.
/// Undefined if it has none, as integers and empty tensors.
at::Tensor numbers_of(at::Tensor const& tensor);

/// Whether one of `count` floating-point numbers has an exponent of all ones: it is NaN or
/// infinite.
template <class Word, Word exponent>
bool any_exponent_full(void const* data, std::size_t count) {
  // Independent lanes, and an inner loop of constant length, so that compilers use vectors.
  constexpr std::size_t lanes = 64 / sizeof(Word);
  constexpr std::size_t blocks = 256;  // between two looks at the result
  auto const* from = static_cast<std::byte const*>(data);
  std::array<Word, lanes> words{};
  std::array<Word, lanes> found{};
  auto const look = [&] {
    for (std::size_t k = 0; k < lanes; ++k) {
      found[k] = static_cast<Word>(found[k] | ((words[k] & exponent) == exponent ? 1 : 0));
    }
  };
  auto const any = [&] {
    return std::any_of(found.begin(), found.end(), [](Word each) { return each != 0; });
  };
  for (std::size_t block = 0; count >= lanes; count -= lanes, from += sizeof words) {
    std::memcpy(words.data(), from, sizeof words);
    look();
    if (++block % blocks == 0 && any()) return true;
  }
  words = {};
  std::memcpy(words.data(), from, count * sizeof(Word));
  look();
  return any();
}

/// Whether a tensor in host memory, of numbers_of(), holds NaN or infinity. Reads the memory
/// directly: no operator, no allocation.
bool non_finite_on_host(at::Tensor const& numbers);

/// A number for each tensor of numbers_of(), on the first one's device: 0, or NaN if the tensor
/// holds NaN or infinity. No host sync.
at::Tensor non_finite_marks(std::vector<at::Tensor> const& numbers);

/// A bool scalar on the device of the first tensor: whether any tensor holds NaN or infinity. Of
/// operators alone, so that it can be captured; no host sync.
at::Tensor non_finite_flag(std::vector<at::Tensor> const& tensors);

/// The index of the first tensor that holds NaN or infinity. Waits once for each device.
std::optional<std::size_t> first_non_finite(std::vector<at::Tensor> const& tensors);

/// The largest number of a floating-point type.
double largest_number(at::ScalarType type);

/// Whether stored numbers of a type may become those of another: floating-point types are rounded to each
/// other, integers only become wider. Numbers of 8 bits are meant to be multiplied by scales, which are
/// tensors of their own.
bool convertible(at::ScalarType from, at::ScalarType to);

/// The largest magnitude of a tensor's finite numbers, if it is beyond those of `type`, where it would
/// become infinite, or the largest of them if it is that near. Reads the tensor only if its own type has such numbers.
std::optional<double> beyond_range(at::Tensor const& tensor, at::ScalarType type);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/finite.ipp>
#endif

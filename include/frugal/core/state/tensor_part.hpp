// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>

namespace frugal {

/// A run of a tensor's elements, in the order in which they lie in memory: what one of several
/// processes holds of it.
///
///     archive("weight", tensor);                                      // a whole tensor
///     archive.part("exp_avg", mine, TensorPart::of(tensor, 0, 4096)); // its first elements
///
/// A checkpoint has whole tensors, so a run may go on with other parts, or with none.
struct TensorPart {
  std::vector<std::int64_t> sizes{};    ///< of the whole tensor
  std::vector<std::int64_t> strides{};  ///< of the whole tensor
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::size_t parameter = 0;  ///< which of the run's parameters has this shape and these parts

  static TensorPart of(at::Tensor const& whole, std::int64_t first, std::int64_t count,
                       std::size_t parameter = 0);

  std::int64_t whole_count() const;
  std::string text() const {
    return "elements " + std::to_string(first) + " to " + std::to_string(first + count) + " of " +
           std::to_string(whole_count());
  }
};

namespace detail {

/// All elements of a tensor without gaps, in the order of its memory.
at::Tensor in_memory_order(at::Tensor const& tensor);

}  // namespace detail

/// A parameter that a process has in part alone: the module's tensor is without values.
struct HeldPart {
  at::Tensor mine{};
  TensorPart which{};

  /// Takes its elements of a whole tensor.
  void copy_from(at::Tensor const& whole) const;
};
/// What a process has of a parameter, if that is a part.
using HeldParts = std::function<std::optional<HeldPart>(at::Tensor const&)>;

/// Makes a tensor whole of the parts that the processes hold, in the one that saves it; in the others,
/// which call it at the same moments, the result is undefined. It is new, or the part itself.
using WholeTensor = std::function<at::Tensor(at::Tensor const&, TensorPart const&)>;

/// Parts of parameters: this process's elements of each, as a tensor of one dimension.
struct ParameterParts {
  Parameters parameters{};
  std::vector<std::optional<TensorPart>> of{};  ///< nothing for a parameter that is there as it is
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/state/tensor_part.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace frugal::detail {

/// What errors call the samples of a batch: by their number in the set, where it is known.
class SampleNames {
 public:
  SampleNames() = default;
  explicit SampleNames(std::span<std::size_t const> indices) : indices_(indices) {}

  std::string operator()(std::size_t i) const {
    if (i < indices_.size()) return "sample " + std::to_string(indices_[i]);
    return "sample " + std::to_string(i) + " of the batch";
  }

 private:
  std::span<std::size_t const> indices_{};
};

/// Requires one type and one shape of tensors that are combined into one; if they are padded, one
/// shape from the second dimension on. `part` names the part of a sample.
void require_alike(std::vector<at::Tensor> const& all, SampleNames const& name,
                   std::string const& part, bool padded);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/data/sample_names.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include <frugal/core/source/batch.hpp>

namespace frugal::detail {

/// The types and shapes of a batch's tensors, for which a recording is valid.
class Shapes {
 public:
  template <class B>
  void read(B const& batch) {
    numbers_.clear();
    batch_tensors(batch, [&](at::Tensor const& tensor) {
      if (!tensor.defined()) {
        numbers_.push_back(-1);
        return;
      }
      numbers_.push_back(static_cast<std::int64_t>(tensor.scalar_type()));
      numbers_.push_back(tensor.dim());
      for (std::int64_t const size : tensor.sizes()) numbers_.push_back(size);
    });
  }
  void clear() { numbers_.clear(); }

  friend bool operator==(Shapes const&, Shapes const&) = default;

 private:
  std::vector<std::int64_t> numbers_;
};

/// "[32, 784] Float, [32] Long", for error messages.
template <class B>
std::string shapes_text(B const& batch) {
  std::string text;
  batch_tensors(batch, [&](at::Tensor const& tensor) {
    text += (text.empty() ? "" : ", ") + shape_text(tensor);
  });
  return text;
}

}  // namespace frugal::detail

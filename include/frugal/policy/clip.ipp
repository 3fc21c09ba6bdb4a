// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/clip.hpp>

#include <frugal/core/run/loss_accumulator.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace frugal::detail {

FRUGAL_INLINE void require_norm_limit(double limit) {
  if (limit > 0) return;
  throw SettingsError({.what = "ClipNorm has a limit of " + general(limit, 6),
                       .where = "ClipNorm::max_norm",
                       .why = "a norm to clip to is positive",
                       .fix = "Set max_norm above 0, or leave ClipNorm out."});
}

FRUGAL_INLINE bool all_on_host(std::vector<at::Tensor> const& norms) {
  return std::all_of(norms.begin(), norms.end(), [](auto const& norm) { return norm.is_cpu(); });
}

FRUGAL_INLINE double norm_in_double(at::Tensor const& gradient) {
  return at::linalg_vector_norm(gradient.to(at::kDouble), 2).item<double>();
}

FRUGAL_INLINE double norm_on_host(std::vector<at::Tensor> const& gradients,
                                  std::vector<at::Tensor> const& norms) {
  double squares = 0;
  for (std::size_t i = 0; i < norms.size(); ++i) {
    double norm = host_scalar(norms[i]);
    if (!std::isfinite(norm)) [[unlikely]]
      norm = norm_in_double(gradients[i]);
    squares += norm * norm;
  }
  return std::sqrt(squares);
}

FRUGAL_INLINE void clip_on_host(std::vector<at::Tensor> const& gradients, double norm,
                                double limit) {
  double const factor = limit / (norm + tiny_norm);
  // Written so that a NaN norm makes the gradients NaN, as on a device.
  if (!(factor >= 1) && !gradients.empty()) at::_foreach_mul_(gradients, factor);
}

FRUGAL_INLINE at::Tensor clip_on_device(std::vector<at::Tensor> const& gradients,
                                        std::vector<at::Tensor>& norms, double limit) {
  for (at::Tensor& norm : norms) {
    if (norm.device() != norms.front().device()) {
      norm = norm.to(norms.front().device(), /*non_blocking=*/true);
    }
  }
  at::Tensor norm = at::linalg_vector_norm(at::stack(norms), 2);
  at::_foreach_mul_(gradients, at::reciprocal(norm + tiny_norm).mul_(limit).clamp_max_(1.0));
  return norm;
}

FRUGAL_INLINE at::Tensor unit_norms(at::Tensor const& tensor) {
  if (tensor.dim() <= 1) return at::linalg_vector_norm(tensor, 2);
  at::DimVector inputs;
  for (std::int64_t d = 1; d < tensor.dim(); ++d) inputs.push_back(d);
  return at::linalg_vector_norm(tensor, 2, at::IntArrayRef(inputs), /*keepdim=*/true);
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
// Recipes "fp16", "value" and "adaptive", for gradients, with their hand-written loops.
#pragma once

#include "job.hpp"

namespace frugal_bench {

/// Recipe "fp16": FP16 autocast with dynamic loss scaling.
using Fp16Trainer =
    fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>, fr::Precision<fr::FP16>>;
/// Recipe "value": gradients clipped by value.
using ValueTrainer =
    fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>, fr::ClipValue<0.5>>;
/// Recipe "adaptive": gradients clipped by unit, to a fraction of its weights' norm.
using AdaptiveTrainer =
    fr::Trainer<Net, fr::CrossEntropy, fr::Optimize<fr::AdamW>, fr::ClipAdaptive<0.01>>;

/// Specialised for the CPU: scale and flag are plain numbers, and only operations for which
/// PyTorch's scaler has a kernel are operators.
inline void rival_fp16(Net& net, fr::TensorDataset& source, std::uint64_t steps) {
  at::Tensor scale = torch::full({}, 65536.0F);
  at::Tensor const inverse = torch::empty({});
  at::Tensor found = torch::zeros({});
  at::Tensor good_steps = torch::zeros({}, torch::kInt);
  auto const pass = [&](fr::Batch const& batch) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
    at::autocast::increment_nesting();
    at::Tensor loss = at::cross_entropy_loss(net->forward(batch.data), batch.target);
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    if (loss.scalar_type() == at::kHalf) loss = loss.to(at::kFloat);
    loss.backward(scale);
  };
  auto const update = [&](RivalAdamW& optimizer) {
    torch::NoGradGuard const no_gradients;
    *found.data_ptr<float>() = 0;
    *inverse.data_ptr<float>() = 1 / *scale.data_ptr<float>();
    at::_amp_foreach_non_finite_check_and_unscale_(optimizer.gradients(), found, inverse);
    if (*found.data_ptr<float>() == 0) {
      optimizer.step(learning_rate);
    } else {
      optimizer.drop();
    }
    at::_amp_update_scale_(scale, good_steps, found, 2.0, 0.5, 2000);
  };
  rival_loop(net, source, steps, pass, update, nothing_after);
}

inline void rival_value(Net& net, fr::TensorDataset& source, std::uint64_t steps) {
  auto const update = [](RivalAdamW& optimizer) {
    at::_foreach_clamp_min_(optimizer.gradients(), -0.5);
    at::_foreach_clamp_max_(optimizer.gradients(), 0.5);
    optimizer.step(learning_rate);
  };
  rival_loop(net, source, steps, plain_pass(net), update, nothing_after);
}

inline at::Tensor norm_by_unit(at::Tensor const& tensor) {
  if (tensor.dim() <= 1) return at::linalg_vector_norm(tensor, 2);
  return at::linalg_vector_norm(tensor, 2, at::IntArrayRef{1}, true);
}

inline void rival_adaptive(Net& net, fr::TensorDataset& source, std::uint64_t steps) {
  auto const update = [](RivalAdamW& optimizer) {
    {
      torch::NoGradGuard const no_gradients;
      for (std::size_t i = 0; i < optimizer.gradients().size(); ++i) {
        at::Tensor& gradient = optimizer.gradients()[i];
        at::Tensor const limit =
            norm_by_unit(optimizer.parameters()[i]).clamp_min_(1e-3).mul_(0.01);
        gradient.mul_(limit.div_(norm_by_unit(gradient).clamp_min_(1e-6)).clamp_max_(1.0));
      }
    }
    optimizer.step(learning_rate);
  };
  rival_loop(net, source, steps, plain_pass(net), update, nothing_after);
}

}  // namespace frugal_bench

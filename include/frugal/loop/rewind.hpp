// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <optional>
#include <vector>

#include <frugal/libtorch/generators.hpp>
#include <frugal/loop/measure.hpp>
#include <frugal/libtorch/parameters.hpp>

namespace frugal::detail {

/// Puts a module's parameters and buffers, its modes, its device and the generators back to where
/// they were. The copies lie in host memory: what tries how much a device holds must not fill it.
class Rewind {
 public:
  /// `run_on`: the device whose generators a run draws from.
  Rewind(torch::nn::Module& module, c10::Device run_on)
      : module_(module), modes_(module), generators_(run_on) {
    for (at::Tensor const& tensor : tensors()) {
      if (!device_) device_ = tensor.device();
      before_.push_back(tensor.detach().to(at::Device(at::kCPU), tensor.scalar_type(),
                                           /*non_blocking=*/false, /*copy=*/true));
    }
  }
  Rewind(Rewind const&) = delete;
  Rewind& operator=(Rewind const&) = delete;
  ~Rewind() {
    at::NoGradGuard const no_gradients;
    auto const now = tensors();
    if (!now.empty() && now.front().device() != *device_) module_.to(*device_);
    for (std::size_t i = 0; i < now.size(); ++i) now[i].copy_(before_[i]);
  }

 private:
  // A module may register a buffer that is not there, as BatchNorm without statistics does.
  std::vector<at::Tensor> tensors() const {
    std::vector<at::Tensor> all = Parameters::of(module_).tensors;
    for (at::Tensor const& buffer : module_.buffers()) {
      if (buffer.defined()) all.push_back(buffer);
    }
    return all;
  }

  torch::nn::Module& module_;
  KeepModes modes_;
  KeepGenerators<true> generators_;
  std::optional<c10::Device> device_;
  std::vector<at::Tensor> before_;
};

}  // namespace frugal::detail

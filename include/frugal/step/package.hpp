// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include <frugal/step/code.hpp>
#include <frugal/step/manifest.hpp>
#include <frugal/step/module.hpp>
#include <frugal/step/objective.hpp>

namespace frugal {

/// A training step that Python's frugal_step.export_step() has written: the forward and the backward pass of any
/// module as machine code, which runs without Python.
///
///     fr::StepPackage package("packages/bert");
///     fr::Trainer trainer{package.module(), package.objective(), fr::Settings{.epochs = 3}, ...};
///
/// Lever   hours per run: kernels are fused, and no graph of autograd is built.
/// Cost    the export, once; opening takes milliseconds, and reads every file once.
/// Errors  before any code is loaded: FormatError for missing, damaged and changed files, DeviceError for another
///         LibTorch, CPU or device.
///
/// A package is code: trust it like a program.
class StepPackage {
 public:
  /// `device`: of the kind for which it was exported; without it the CPU, or the first GPU.
  explicit StepPackage(std::filesystem::path folder, std::optional<at::Device> device = {})
      : code_(std::make_shared<detail::StepCode>(std::move(folder), device)) {}

  StepManifest const& manifest() const { return code_->manifest(); }

  /// A module of its own, with the weights of the package.
  std::shared_ptr<StepModule> module() const { return std::make_shared<StepModule>(code_); }
  StepObjective objective() const { return StepObjective(code_); }

 private:
  std::shared_ptr<detail::StepCode const> code_;
};

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/version.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/error.hpp>
#include <frugal/policy/precision/hardware.hpp>
#include <frugal/step/fields.hpp>
#include <frugal/step/machine.hpp>
#include <frugal/step/manifest.hpp>
#include <frugal/step/program.hpp>

namespace frugal::detail {

/// The checked and loaded code of a step package. Modules and objectives share it.
class StepCode {
 public:
  using Kind = StepManifest::Kind;

  explicit StepCode(std::filesystem::path folder, std::optional<at::Device> device)
      : folder_(std::move(folder)),
        manifest_(StepManifest::open(folder_)),
        device_(device_of(device)),
        fields_(manifest_.fields) {
    require_machine(manifest_, StepMachine::here(TORCH_VERSION), folder_);
    auto const layouts = [](std::vector<StepManifest::Tensor> const& tensors,
                            std::vector<StepLayout>& out) {
      for (StepManifest::Tensor const& each : tensors) {
        out.push_back({.name = each.name,
                       .type = step_type(each.type, each.name),
                       .sizes = each.sizes,
                       .strides = each.strides});
      }
    };
    layouts(manifest_.parameters, tensors_);
    layouts(manifest_.buffers, tensors_);
    for (StepManifest::Program const& each : manifest_.programs) {
      programs_.push_back(std::make_unique<StepProgram>(manifest_, each, folder_, device_));
    }
  }

  std::filesystem::path const& folder() const { return folder_; }
  StepManifest const& manifest() const { return manifest_; }
  at::Device device() const { return device_; }
  /// The parameters, then the buffers: the first inputs of every program.
  std::vector<StepLayout> const& tensors() const { return tensors_; }

  /// The program of a kind that takes a batch, and the batch's tensors as its inputs, behind those that are there.
  /// Throws ShapeError if no program takes it, DataError if it lacks a field.
  template <class B>
  StepProgram const& choose(Kind kind, B const& batch, std::vector<at::Tensor>& inputs) const {
    std::string misfits;
    for (auto const& each : programs_) {
      auto const& fields = each->entry().fields;
      if (each->entry().kind != kind) continue;
      auto const tensor = [&](std::size_t i) -> at::Tensor const& {
        return fields_.of(batch, fields[i].field);
      };
      std::size_t const misfit = each->misfit(tensor);
      if (misfit == fields.size()) [[likely]] {
        for (std::size_t i = 0; i < fields.size(); ++i) inputs.push_back(readable(tensor(i)));
        return *each;
      }
      misfits += (misfits.empty() ? "" : "; ") + each->misfit_text(misfit, tensor(misfit));
    }
    refuse(std::move(misfits));
  }

 private:
  at::Device device_of(std::optional<at::Device> wanted) const {
    std::string const& made_for = manifest_.device;
    at::Device const device = made_for == "cpu" ? at::Device(at::kCPU) : at::Device(at::kCUDA, 0);
    if (!wanted) return device.is_cpu() ? device : require_capability(device);
    if (wanted->type() == device.type()) {
      if (device.is_cpu()) return device;
      return require_capability(wanted->has_index() ? *wanted : device);
    }
    throw DeviceError(
        {.what = "the step package is of another device",
         .where = folder_.string(),
         .why = "it was exported for " + made_for + ", and is to run on " + wanted->str(),
         .fix = "Export it with the module on that kind of device."});
  }

  /// DeviceError for a GPU of another generation than that of the export, if this build knows GPUs.
  at::Device require_capability(at::Device device) const {
    auto const gpu = capability_of(device);
    if (!gpu) return device;
    std::string const found = "cuda:sm_" + std::to_string(gpu->major) + std::to_string(gpu->minor);
    if (found == manifest_.device) return device;
    throw DeviceError({.what = "the step package is of another generation of GPUs",
                       .where = folder_.string(),
                       .why = "it was exported for " + manifest_.device + ", and this is " + found,
                       .fix = "Export it on a GPU of this kind."});
  }

  /// Compiled code reads dense tensors, on a GPU from multiples of 16 bytes.
  at::Tensor readable(at::Tensor const& tensor) const {
    if (!tensor.is_contiguous()) return tensor.contiguous();
    constexpr std::uintptr_t alignment = 16;
    if (!device_.is_cpu() &&
        reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % alignment != 0) {
      return tensor.clone();
    }
    return tensor;
  }

  [[noreturn]] void refuse(std::string why) const {
    if (why.empty()) {
      throw ModuleError(
          {.what = "the step package has no prediction",
           .where = folder_.string(),
           .why = "its loss function returned no output",
           .fix = "Export it with a loss function that returns frugal_step.Loss(value, weight, "
                  "output)."});
    }
    throw ShapeError(
        {.what = "the step package was not exported for this batch",
         .where = folder_.string(),
         .why = std::move(why),
         .fix =
             "Export it with `dynamic` for dimensions that vary, or with a batch of this shape in "
             "`shapes`."});
  }

  std::filesystem::path folder_;
  StepManifest manifest_;
  at::Device device_;
  StepFields fields_;
  std::vector<StepLayout> tensors_;
  std::vector<std::unique_ptr<StepProgram>> programs_;
};

}  // namespace frugal::detail

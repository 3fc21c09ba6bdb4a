// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/batch_norms.hpp>
#include <frugal/core/libtorch/devices.hpp>
#include <frugal/error.hpp>
#include <frugal/model/load_weights.hpp>
#include <frugal/step/code.hpp>

namespace frugal {

/// A module whose forward pass is the compiled code of a step package, and whose parameters and buffers have the
/// names that they have in Python. It has the layers' names as submodules, and no layers: policies that work on
/// names and tensors work on it.
class StepModule : public torch::nn::Module,
                   public detail::ChangesBuffers,
                   public detail::StaysOnDevice {
 public:
  /// With the weights of the package, where its code runs.
  explicit StepModule(std::shared_ptr<detail::StepCode const> code)
      : torch::nn::Module(code->manifest().module), code_(std::move(code)) {
    StepManifest const& manifest = code_->manifest();
    std::vector<detail::StepLayout> const& layouts = code_->tensors();
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      bool const is_parameter = i < manifest.parameters.size();
      at::Tensor tensor = at::empty_strided(layouts[i].sizes, layouts[i].strides,
                                            at::TensorOptions(layouts[i].type))
                              .zero_();
      if (is_parameter) tensor.set_requires_grad(manifest.parameters[i].trained);
      torch::nn::Module const& part = add(layouts[i].name, tensor, is_parameter);
      if (!is_parameter) parts_of_buffers_.push_back(&part);
      tensors_.push_back(std::move(tensor));
    }
    for (StepManifest::Tied const& tied : manifest.tied) {
      for (std::size_t i = 0; i < layouts.size(); ++i) {
        if (layouts[i].name == tied.of) add(tied.name, tensors_[i], i < manifest.parameters.size());
      }
    }
    WeightRules rules;
    if (!manifest.tied.empty()) {
      std::vector<std::string> names;
      for (StepManifest::Tied const& tied : manifest.tied) names.push_back(tied.name);
      rules.allow_missing = NamePatterns(std::move(names));
    }
    load_weights(*this, code_->folder() / manifest.weights.name, rules);
    to(code_->device());
  }

  detail::StepCode const& code() const { return *code_; }
  std::shared_ptr<detail::StepCode const> const& shared_code() const { return code_; }
  /// The parameters, then the buffers, in the package's order.
  std::vector<at::Tensor> const& tensors() const { return tensors_; }

  /// What the package's loss function returned as its output, in evaluation mode, without gradients. ShapeError
  /// for a batch that the package was not exported for.
  template <class B>
  at::Tensor forward_batch(B const& batch) {
    require_evaluation();
    std::vector<at::Tensor> inputs = checked_tensors();
    detail::StepProgram const& program = code_->choose(StepManifest::Kind::predict, batch, inputs);
    return std::move(program.run(inputs).front());
  }
  at::Tensor forward(at::Tensor const& data) { return forward_batch(data); }

  /// Compiled code checks nothing itself. ModuleError for a tensor that is no longer as it was exported.
  std::vector<at::Tensor> const& checked_tensors() const {
    std::vector<detail::StepLayout> const& layouts = code_->tensors();
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      if (!layouts[i].fits(tensors_[i], code_->device())) [[unlikely]]
        refuse(layouts[i], tensors_[i]);
    }
    return tensors_;
  }

  /// ModuleError if a training step of a program would do something else than the modes and flags say: they were
  /// other ones when it was exported.
  void require_trainable(StepManifest::Program const& program) const {
    std::vector<StepManifest::Tensor> const& parameters = code_->manifest().parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!parameters[i].trained && tensors_[i].requires_grad()) [[unlikely]]
        refuse_training(parameters[i].name);
    }
    for (std::size_t const at : program.buffers) {
      if (!parts_of_buffers_[at]->is_training()) [[unlikely]]
        refuse_mode(code_->manifest().buffers[at].name);
    }
  }

  c10::Device own_device() const override { return code_->device(); }

  std::vector<detail::BatchNormBuffers> changed_batch_norms() const override {
    StepManifest const& manifest = code_->manifest();
    auto const buffer = [&](std::size_t at) { return tensors_[manifest.parameters.size() + at]; };
    std::vector<detail::BatchNormBuffers> all;
    for (StepManifest::Statistics const& each : manifest.statistics) {
      all.push_back({.mean = buffer(each.mean),
                     .variance = buffer(each.variance),
                     .tracked = buffer(each.tracked),
                     .momentum = each.momentum});
    }
    return all;
  }
  std::string other_changed_buffer() const override {
    StepManifest const& manifest = code_->manifest();
    std::vector<bool> known(manifest.buffers.size());
    for (StepManifest::Statistics const& each : manifest.statistics) {
      known[each.mean] = known[each.variance] = known[each.tracked] = true;
    }
    for (StepManifest::Program const& program : manifest.programs) {
      for (std::size_t const at : program.buffers) {
        if (!known[at]) return manifest.buffers[at].name;
      }
    }
    return {};
  }

 private:
  /// Registers a tensor, and returns the submodule that has it.
  torch::nn::Module const& add(std::string const& name, at::Tensor const& tensor,
                               bool is_parameter) {
    torch::nn::Module* part = this;
    std::string_view rest = name;
    for (std::size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      std::string const child(rest.substr(0, dot));
      rest.remove_prefix(dot + 1);
      auto const children = part->named_children();
      torch::nn::Module* const known = children.contains(child) ? children[child].get() : nullptr;
      part = known != nullptr
                 ? known
                 : part->register_module(child, std::make_shared<torch::nn::Module>(child)).get();
    }
    if (is_parameter) {
      part->register_parameter(std::string(rest), tensor, tensor.requires_grad());
    } else {
      part->register_buffer(std::string(rest), tensor);
    }
    return *part;
  }

  void require_evaluation() const {
    if (!is_training() || (!at::GradMode::is_enabled() && !has_statistics())) return;
    throw ModuleError(
        {.what = "the forward pass of a StepModule was called in training mode",
         .where = code_->folder().string(),
         .why = "its code predicts without gradients, and changes no statistics of BatchNorm; a "
                "step of "
                "StepPackage::objective() does both",
         .fix =
             "Train with the package's own objective, or call eval() on the module to predict."});
  }
  bool has_statistics() const {
    for (StepManifest::Program const& each : code_->manifest().programs) {
      if (!each.buffers.empty()) return true;
    }
    return false;
  }

  [[noreturn]] void refuse_training(std::string const& name) const {
    throw ModuleError(
        {.what = "the parameter '" + name + "' is to be trained",
         .where = code_->folder().string(),
         .why =
             "it required no gradient when the package was exported, so the code has none for it",
         .fix = "Export the package with requires_grad_() on it; Freeze holds it still from C++."});
  }
  [[noreturn]] void refuse_mode(std::string const& name) const {
    throw ModuleError(
        {.what = "the layer of the buffer '" + name + "' is frozen, or in evaluation mode",
         .where = code_->folder().string(),
         .why =
             "it was in training mode when the package was exported, and compiled code updates its "
             "statistics",
         .fix = "Call eval() on the layer in Python, and train() on nothing above it, before the "
                "export."});
  }

  [[noreturn]] void refuse(detail::StepLayout const& layout, at::Tensor const& tensor) const {
    std::string const found = detail::shape_text(tensor) + " on " + tensor.device().str();
    throw ModuleError(
        {.what = "the tensor '" + layout.name + "' is not as the step package was exported",
         .where = code_->folder().string(),
         .why = "it is " + found + ", and the compiled code reads " + c10::toString(layout.type) +
                " of " + std::to_string(layout.sizes.size()) + " dimensions on " +
                code_->device().str(),
         .fix = "Leave type, shape, strides and device of a StepModule as they are; for another "
                "device open the package with it."});
  }

  std::shared_ptr<detail::StepCode const> code_;
  std::vector<at::Tensor> tensors_;
  std::vector<torch::nn::Module const*> parts_of_buffers_;
};

}  // namespace frugal

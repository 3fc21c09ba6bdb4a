// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/core/compose/declared.hpp>
#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/loss.hpp>
#include <frugal/core/run/seed_scale.hpp>
#include <frugal/error.hpp>
#include <frugal/step/code.hpp>
#include <frugal/step/module.hpp>

namespace frugal::detail {

FRUGAL_DIAGNOSTIC(works_in_compiled_layers,
                  "frugal: a StepPackage runs the layers of its module as compiled code, and a "
                  "policy of this recipe works in "
                  "layers. The compiler's note names the policy. Remove it, and ask for the same "
                  "in Python before the export: "
                  "memory_budget in place of Recompute and Activations, PEFT's adapters in place "
                  "of Lora, torch.ao in place of "
                  "Qat, and autocast in place of Precision<INT8> and <FP8>.");

/// StepObjective's demand on every policy of its recipe.
struct LeavesLayersAlone {
  using sentence = works_in_compiled_layers;
  template <class P>
  static constexpr bool met = !has_property<property::works_in_layers, P>;
};

/// Assigns a tensor that is nearly always the same: a comparison is cheaper than two counts.
inline void keep(at::Tensor& as, at::Tensor const& tensor) {
  if (!as.is_same(tensor)) as = tensor;
}

/// The gradients that a step has computed together with its loss.
class StepGradients final : public LossGradients {
 public:
  /// Takes over the gradients of a run of `program`, whose inputs were `inputs`. `scale`: the seed that they
  /// started from, if it was not one.
  void take(StepManifest::Program const& program, std::vector<at::Tensor> const& inputs,
            std::size_t first, std::vector<at::Tensor>&& outputs, at::Tensor const* scale) {
    loss_ = outputs.front();
    scale_ = scale == nullptr ? at::Tensor() : *scale;
    gradients_.assign(std::move_iterator(outputs.begin() + static_cast<std::ptrdiff_t>(first)),
                      std::move_iterator(outputs.end()));
    parameters_.resize(program.gradients.size());
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      keep(parameters_[i], inputs[program.gradients[i]]);
  }

  void add(at::Tensor const& loss, at::Tensor const& seed, std::optional<double> value) override {
    if (!loss.is_same(loss_)) refuse();
    loss_.reset();
    at::NoGradGuard const no_gradients;
    multiply(seed, value);
    std::vector<at::Tensor> sums, more;
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      if (!parameters_[i].requires_grad()) continue;
      at::Tensor& gradient = parameters_[i].mutable_grad();
      if (gradient.defined()) {
        sums.push_back(gradient);
        more.push_back(std::move(gradients_[i]));
      } else {
        gradient = std::move(gradients_[i]);
      }
    }
    if (!sums.empty()) at::_foreach_add_(sums, more);
    gradients_.clear();
    for (at::Tensor const& parameter : parameters_) {
      if (!parameter.requires_grad()) continue;
      auto const& hook = torch::autograd::impl::post_acc_grad_hooks(parameter);
      if (hook != nullptr) (*hook)(parameter);
    }
  }

 private:
  void multiply(at::Tensor const& seed, std::optional<double> value) {
    if (scale_.defined()) {
      if (seed.is_same(scale_)) return;
      at::_foreach_mul_(gradients_, seed / scale_);
      return;
    }
    double const factor = value ? *value : seed.is_cpu() ? seed.item<double>() : 0;
    if (!value && !seed.is_cpu()) {
      at::_foreach_mul_(gradients_, seed);
    } else if (factor != 1) {
      at::_foreach_mul_(gradients_, factor);
    }
  }

  [[noreturn]] static void refuse() {
    throw ModuleError(
        {.what = "a step package's loss was changed, or its backward pass was called twice",
         .where = "StepPackage",
         .why = "its gradients were computed together with the loss, and are of that alone",
         .fix =
             "Leave the loss as it is: put the change into the loss function that is exported."});
  }

  at::Tensor loss_, scale_;
  std::vector<at::Tensor> gradients_, parameters_;
};

}  // namespace frugal::detail

namespace frugal {

/// The objective of a step package: in training mode its step, which computes the gradients with the loss, and in
/// evaluation mode its evaluation. Trains a StepModule of the same package.
///
/// Cost    no graph of autograd, and no copy of the gradients: they become those of the parameters.
/// Errors  ShapeError for a batch that the package was not exported for; SettingsError for a recipe with
///         another Precision than that of the export; DataError for a batch without one of its fields.
class StepObjective {
 public:
  /// On every policy of a recipe.
  using demands = list<detail::LeavesLayersAlone>;

  explicit StepObjective(std::shared_ptr<detail::StepCode const> code) : code_(std::move(code)) {}
  StepObjective(StepObjective const& other) : StepObjective(other.code_) {}
  StepObjective(StepObjective&&) noexcept = default;
  StepObjective& operator=(StepObjective const& other) { return *this = StepObjective(other); }
  StepObjective& operator=(StepObjective&&) noexcept = default;
  ~StepObjective() = default;

  /// A hash of what the package computes, for a comparison with another run's.
  std::string identity() const { return hex_of(code_->manifest().identity()); }

  template <class Module, class B>
  Loss operator()(Module& module, B const& batch) {
    StepModule& own = step_module(base_module(module));
    if (own.shared_code() != accepted_) [[unlikely]]
      accept(own.shared_code());
    require_precision();
    bool const trains = own.is_training() && at::GradMode::is_enabled();
    std::vector<at::Tensor> const& tensors = own.checked_tensors();
    inputs_.resize(tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) detail::keep(inputs_[i], tensors[i]);
    using Kind = StepManifest::Kind;
    detail::StepProgram const& program =
        code_->choose(trains ? Kind::step : Kind::evaluate, batch, inputs_);
    Loss loss = trains ? train(own, program) : loss_of(program.entry(), program.run(inputs_));
    // Not the batch, whose memory the next one may need.
    inputs_.resize(tensors.size());
    return loss;
  }

 private:
  using Program = StepManifest::Program;

  static StepModule& step_module(torch::nn::Module& module);
  /// Notes that a module's package is this one, or another copy of it; ModuleError if it is neither.
  void accept(std::shared_ptr<detail::StepCode const> const& of_module);

  Loss train(StepModule const& own, detail::StepProgram const& program) {
    own.require_trainable(program.entry());
    at::Tensor const* const scale = detail::SeedScale::current();
    inputs_.push_back(scale != nullptr ? *scale : one());
    std::vector<at::Tensor> outputs = program.run(inputs_);
    Program const& entry = program.entry();
    require_own_memory(program, outputs);
    std::size_t const first = program.first_of_state();
    Loss loss = loss_of(entry, outputs);
    std::size_t const parameters = code_->manifest().parameters.size();
    if (!entry.buffers.empty()) {
      at::NoGradGuard const no_gradients;
      for (std::size_t i = 0; i < entry.buffers.size(); ++i) {
        inputs_[parameters + entry.buffers[i]].copy_(outputs[first + i]);
      }
    }
    gradients_->take(entry, inputs_, first + entry.buffers.size(), std::move(outputs), scale);
    loss.gradients = gradients_.get();
    return loss;
  }

  static Loss loss_of(Program const& entry, std::vector<at::Tensor> const& outputs) {
    Loss loss{.value = outputs[0]};
    if (entry.weight) loss.weight = outputs[1].item<double>();
    if (entry.output) loss.output = outputs[1 + std::size_t{entry.weight}];
    return loss;
  }

  at::Tensor const& one() {
    if (!one_.defined()) one_ = at::ones({}, at::TensorOptions(at::kFloat).device(code_->device()));
    return one_;
  }

  void require_precision() const {
    at::DeviceType const device = code_->device().type();
    std::string_view recipe = "FP32";
    if (at::autocast::is_autocast_enabled(device)) {
      at::ScalarType const type = at::autocast::get_autocast_dtype(device);
      recipe = type == at::kBFloat16 ? "BF16" : type == at::kHalf ? "FP16" : "another format";
    }
    if (recipe == code_->manifest().precision) return;
    refuse_precision(recipe);
  }
  [[noreturn]] void refuse_precision(std::string_view recipe) const;

  /// Gradients are changed in place, one by one. Once for each program: its code decides it.
  void require_own_memory(detail::StepProgram const& program,
                          std::vector<at::Tensor> const& outputs);

  std::shared_ptr<detail::StepCode const> code_;
  std::unique_ptr<detail::StepGradients> gradients_ = std::make_unique<detail::StepGradients>();
  std::vector<at::Tensor> inputs_;
  std::shared_ptr<detail::StepCode const>
      accepted_;  // of the module, which may be of another opening
  std::vector<detail::StepProgram const*> checked_;
  at::Tensor one_;
};

inline StepModule& StepObjective::step_module(torch::nn::Module& module) {
  if (auto* const own = dynamic_cast<StepModule*>(&module)) [[likely]]
    return *own;
  throw ModuleError({.what = "the objective of a step package got another module",
                     .where = "StepPackage::objective()",
                     .why = "it computes the step of the exported module alone",
                     .fix = "Give the trainer StepPackage::module() of the same package."});
}

inline void StepObjective::accept(std::shared_ptr<detail::StepCode const> const& of_module) {
  if (of_module != code_ && of_module->manifest().identity() != code_->manifest().identity()) {
    throw ModuleError({.what = "the objective of a step package got the module of another package",
                       .where = code_->folder().string(),
                       .why = "the module is of " + of_module->folder().string() +
                              ", which computes something else",
                       .fix = "Give the trainer StepPackage::module() of the same package."});
  }
  accepted_ = of_module;
}

inline void StepObjective::refuse_precision(std::string_view recipe) const {
  std::string const& made = code_->manifest().precision;
  throw SettingsError(
      {.what = "the step package is of another precision than the recipe",
       .where = code_->folder().string(),
       .why = "it was exported for " + made + ", and the recipe computes in " + std::string(recipe),
       .fix = "Write Precision<" + made +
              "> in the recipe, or export the package with the other autocast."});
}

inline void StepObjective::require_own_memory(detail::StepProgram const& program,
                                              std::vector<at::Tensor> const& outputs) {
  if (std::ranges::find(checked_, &program) != checked_.end()) [[likely]]
    return;
  auto const& entry = program.entry();
  std::vector<void const*> memory;
  for (at::Tensor const& input : inputs_) memory.push_back(input.storage().data());
  std::size_t const others = outputs.size() - entry.gradients.size();
  bool own = true;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    void const* const at = outputs[i].storage().data();
    own = own && (outputs[i].numel() == 0 || std::ranges::find(memory, at) == memory.end());
    memory.push_back(at);
    if (i < others) continue;
    auto const& layout = code_->tensors()[entry.gradients[i - others]];
    own = own && layout.fits(outputs[i], code_->device());
  }
  if (!own) {
    throw FormatError(
        {.what =
             "the step of a package returns gradients that are not of their own memory or layout",
         .where = code_->folder().string(),
         .why = "they are changed in place, so that others would change with them",
         .fix = "Export the package again with this version of frugal_step, and report it."});
  }
  checked_.push_back(&program);
}

}  // namespace frugal

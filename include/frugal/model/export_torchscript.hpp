// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

/// What export_torchscript checks.
struct TorchscriptOptions {
  /// The exported module must take batches of another size. False for a module that computes with
  /// the size of its batch, such as torch::nn::MultiheadAttention: it then takes the example's.
  bool dynamic_batch = true;
};

namespace detail {

using TensorStack = std::vector<c10::IValue>;

/// Why a trace depends on the example's data, as far as it shows while the module is traced: the
/// tracer warns, or a tensor becomes a number of the host, which the tracer does not see. In this
/// thread, for as long as it lives.
class DataDependence {
 public:
  DataDependence()
      : outer_(std::exchange(current(), this)),
        callback_(at::addThreadLocalCallback(
            at::RecordFunctionCallback(&called).scopes({at::RecordScope::FUNCTION}))) {
    torch::jit::tracer::setWarn(&warned);
  }
  DataDependence(DataDependence const&) = delete;
  DataDependence& operator=(DataDependence const&) = delete;
  ~DataDependence() {
    at::removeCallback(callback_);
    current() = outer_;
  }

  std::string const& why() const { return why_; }

 private:
  static DataDependence*& current() {
    static thread_local DataDependence* innermost = nullptr;
    return innermost;
  }
  // The former function cannot be asked for; outside of an export this does what it did.
  FRUGAL_INLINE static void warned(std::string const& text) {
    if (DataDependence* const here = current()) {
      here->note(text);
    } else {
      TORCH_WARN(text);
    }
  }
  FRUGAL_INLINE static std::unique_ptr<at::ObserverContext> called(at::RecordFunction const& call) {
    std::string_view const name = call.name();
    for (char const* each : {"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero",
                             "aten::equal", "aten::allclose"}) {
      if (name != each || current() == nullptr) continue;
      current()->note("it calls " + std::string(name) + ", whose result is that of the example");
    }
    return nullptr;
  }
  void note(std::string why) {
    if (why_.empty()) why_ = std::move(why);
  }

  DataDependence* outer_;
  at::CallbackHandle callback_;
  std::string why_{};
};

/// A scripted module with the parameters, buffers and children of a module, by their names. It
/// shares the tensors, by which the tracer knows them.
FRUGAL_INLINE torch::jit::Module scripted_like(
    torch::nn::Module const& module, std::shared_ptr<torch::jit::CompilationUnit> const& unit) {
  torch::jit::Module made(c10::QualifiedName("__torch__.frugal.Exported"), unit,
                          /*shouldMangle=*/true);
  made.register_attribute("training", c10::BoolType::get(), false);
  for (auto const& item : module.named_parameters(/*recurse=*/false)) {
    if (item.value().defined()) made.register_parameter(item.key(), item.value(), false);
  }
  for (auto const& item : module.named_buffers(/*recurse=*/false)) {
    if (item.value().defined()) made.register_buffer(item.key(), item.value());
  }
  for (auto const& item : module.named_children()) {
    made.register_module(item.key(), scripted_like(*item.value(), unit));
  }
  return made;
}

[[noreturn]] FRUGAL_INLINE void refuse_export(std::string what, std::string why, std::string fix) {
  throw ModuleError({.what = std::move(what),
                     .where = "export_torchscript",
                     .why = std::move(why),
                     .fix = std::move(fix)});
}

/// Weights in INT8 and NF4 are multiplied by kernels of frugal: a trace would have their memory in place
/// of their results, and a check may find there what the last call has left.
FRUGAL_INLINE void require_seen_by_tracer(torch::nn::Module const& root) {
  for (auto const& item : root.named_modules({}, /*include_self=*/false)) {
    if (dynamic_cast<ComputesUnseen const*>(item.value().get()) == nullptr) continue;
    refuse_export(
        "the layer of '" + item.key() + "' computes with a kernel of frugal",
        "it is quantised (quantise<INT8>, convert, Base<NF4>), and TorchScript has no such "
        "operator",
        "Export the module before it is quantised, or quantise in Python.");
  }
}

/// All tensors of an output.
FRUGAL_INLINE std::vector<at::Tensor> tensors_in(c10::IValue const& value) {
  if (value.isTensor()) return {value.toTensor()};
  std::vector<at::Tensor> all;
  for (c10::IValue const& each : value.toTupleRef().elements()) {
    for (at::Tensor const& tensor : tensors_in(each)) all.push_back(tensor);
  }
  return all;
}

FRUGAL_INLINE bool agree(c10::IValue const& one, c10::IValue const& other) {
  auto const left = tensors_in(one);
  auto const right = tensors_in(other);
  return std::ranges::equal(left, right, [](at::Tensor const& a, at::Tensor const& b) {
    if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
    if (b.numel() == 0) return true;
    // Small outputs are compared as closely as others.
    at::Tensor const size = b.is_complex() ? b.abs() : b.to(at::kDouble).nan_to_num(0, 0, 0).abs();
    double const nothing = std::min(1e-5, 1e-4 * size.max().item<double>());
    return at::allclose(a, b, 1e-4, nothing, /*equal_nan=*/true);
  });
}

/// Traces and checks a module that is in evaluation mode. `run` is its forward.
class TorchscriptExport {
 public:
  using Run = std::function<c10::IValue(TensorStack const&)>;

  FRUGAL_INLINE static torch::jit::Module of(torch::nn::Module const& module, Run run,
                                             TensorStack const& example,
                                             TorchscriptOptions const& options) {
    TorchscriptExport const task(std::move(run));
    use_interception();
    torch::jit::Module made = task.trace(module, example);
    task.check(made, example, options);
    return made;
  }

 private:
  explicit TorchscriptExport(Run run) : run_(std::move(run)) {}

  FRUGAL_INLINE torch::jit::Module trace(torch::nn::Module const& module,
                                         TensorStack const& example) const {
    auto const unit = std::make_shared<torch::jit::CompilationUnit>();
    torch::jit::Module made = scripted_like(module, unit);
    DataDependence const dependence;
    std::shared_ptr<torch::jit::Graph> graph;
    try {
      graph = torch::jit::tracer::trace(
                  example, [this](TensorStack inputs) { return TensorStack{run_(inputs)}; },
                  [](at::Tensor const&) { return std::string(); }, /*strict=*/true,
                  /*force_outplace=*/false, &made)
                  .first->graph;
    } catch (c10::Error const& error) {
      refuse_export("the module cannot be traced", error.what_without_backtrace(),
                    "Call its forward with the example. Tensors that it computes with and that "
                    "require a gradient must be its parameters.");
    }
    if (!dependence.why().empty()) refuse_data(dependence.why());
    auto* const forward =
        unit->create_function(c10::QualifiedName(*made.type()->name(), "forward"), graph);
    made.type()->addMethod(forward);
    // Its own tensors: those of the module go on being trained, and their layers are intercepted.
    torch::jit::Module copy = made.deepcopy();
    auto const trained = module.named_parameters();
    for (auto const& item : copy.named_parameters()) {
      at::Tensor tensor = item.value;
      tensor.requires_grad_(trained[item.name].requires_grad());
    }
    return copy;
  }

  [[noreturn]] static void refuse_data(std::string why) {
    refuse_export("the module's trace depends on the data of the example", std::move(why),
                  "A trace has no branches. Compute with operators in place of numbers of the "
                  "host: at::where, masks.");
  }

  FRUGAL_INLINE void check(torch::jit::Module& made, TensorStack const& example,
                           TorchscriptOptions const& options) const {
    if (!agree(made.forward(example), run_(example))) {
      refuse_data(
          "of the example itself the exported module makes something else: its forward "
          "draws random numbers, or keeps state");
    }
    if (options.dynamic_batch) check_batch(made, example);
    bool fractions = false;
    TensorStack other;
    for (c10::IValue const& each : example) {
      bool const floating = each.toTensor().is_floating_point();
      fractions = fractions || floating;
      other.emplace_back(floating ? each.toTensor().neg() : each.toTensor());
    }
    if (!fractions) return;
    std::optional<c10::IValue> wanted;
    try {
      wanted = run_(other);
    } catch (std::exception const&) {
      return;  // a module that takes no such data
    }
    if (!agree(made.forward(other), *wanted))
      refuse_data(
          "of the example times -1 it makes "
          "something else");
  }

  /// Of twice as many samples.
  FRUGAL_INLINE void check_batch(torch::jit::Module& made, TensorStack const& example) const {
    TensorStack more;
    for (c10::IValue const& each : example) {
      at::Tensor const& tensor = each.toTensor();
      if (tensor.dim() == 0) {
        more.emplace_back(tensor);
      } else {
        more.emplace_back(at::cat({tensor, tensor.flip(0)}));
      }
    }
    std::string why = "it makes something else of them";
    try {
      if (agree(made.forward(more), run_(more))) return;
    } catch (std::exception const& error) {
      why = error.what();
    }
    refuse_export("the exported module takes no batches of another size", std::move(why),
                  "Reshape without sizes, as flatten(1) and view({-1, n}) do, or export with "
                  "{.dynamic_batch = false}, for batches of the example's size alone.");
  }

  Run run_;
};

template <class Output>
c10::IValue as_ivalue(Output output) {
  if constexpr (std::convertible_to<Output, at::Tensor>) {
    return at::Tensor(std::move(output));
  } else {
    static_assert(
        requires { std::tuple_size<Output>::value; },
        "frugal: export_torchscript exports modules whose forward returns a tensor, or a "
        "pair or tuple of tensors.");
    return std::apply(
        [](auto const&... each) {
          return c10::ivalue::Tuple::create(std::vector<c10::IValue>{at::Tensor(each)...});
        },
        output);
  }
}

}  // namespace detail

/// A module in TorchScript, which Python loads without its C++: traced on example inputs, in
/// evaluation mode, and checked on others. Parameters, buffers and children have their names.
/// Adapters and other hooks of its layers are part of it. Save it with `.save("net.pt")`.
///
/// Cost    the module's tensors once more, and four forward passes.
/// Errors  ModuleError if the trace depends on the example's data, or on the size of its batch
///         (TorchscriptOptions::dynamic_batch), or cannot be made, for weights in INT8 or NF4, and for a
///         module of which other processes have a part.
///
///     export_torchscript(net, torch::rand({1, 1, 28, 28})).save("net.pt");
///     export_torchscript(bert, std::tuple{ids, mask}).save("bert.pt");
template <class Module, class... Inputs>
  requires(... && std::convertible_to<Inputs, at::Tensor>)
torch::jit::Module export_torchscript(Module& module, std::tuple<Inputs...> const& example,
                                      TorchscriptOptions const& options = {}) {
  torch::nn::Module& root = base_module(module);
  detail::require_one_process(root, "export_torchscript");
  detail::register_members(root);
  detail::require_seen_by_tracer(root);
  detail::EvaluationMode const mode(root);
  at::NoGradGuard const no_gradients;
  auto const run = [&module]<std::size_t... I>(std::index_sequence<I...>,
                                               detail::TensorStack const& inputs) {
    return detail::as_ivalue(forward(module, inputs[I].toTensor()...));
  };
  detail::TensorStack inputs;
  std::apply([&](auto const&... each) { (inputs.emplace_back(at::Tensor(each).detach()), ...); },
             example);
  return detail::TorchscriptExport::of(
      root,
      [&](detail::TensorStack const& given) {
        return run(std::index_sequence_for<Inputs...>{}, given);
      },
      inputs, options);
}
template <class Module>
torch::jit::Module export_torchscript(Module& module, at::Tensor const& example,
                                      TorchscriptOptions const& options = {}) {
  return export_torchscript(module, std::tuple(example), options);
}

}  // namespace frugal

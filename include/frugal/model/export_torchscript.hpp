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

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/interception.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/modes.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/state/cut_tensors.hpp>

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
  static void warned(std::string const& text);
  static std::unique_ptr<at::ObserverContext> called(at::RecordFunction const& call);
  void note(std::string why) {
    if (why_.empty()) why_ = std::move(why);
  }

  DataDependence* outer_;
  at::CallbackHandle callback_;
  std::string why_{};
};

/// A scripted module with the parameters, buffers and children of a module, by their names. It
/// shares the tensors, by which the tracer knows them.
torch::jit::Module scripted_like(torch::nn::Module const& module,
                                 std::shared_ptr<torch::jit::CompilationUnit> const& unit);

[[noreturn]] void refuse_export(std::string what, std::string why, std::string fix);

/// Weights in INT8 and NF4 are multiplied by kernels of frugal: a trace would have their memory in place
/// of their results, and a check may find there what the last call has left.
void require_seen_by_tracer(torch::nn::Module const& root);

/// All tensors of an output.
std::vector<at::Tensor> tensors_in(c10::IValue const& value);

bool agree(c10::IValue const& one, c10::IValue const& other);

/// Traces and checks a module that is in evaluation mode. `run` is its forward.
class TorchscriptExport {
 public:
  using Run = std::function<c10::IValue(TensorStack const&)>;

  static torch::jit::Module of(torch::nn::Module const& module, Run run, TensorStack const& example,
                               TorchscriptOptions const& options);

 private:
  explicit TorchscriptExport(Run run) : run_(std::move(run)) {}

  torch::jit::Module trace(torch::nn::Module const& module, TensorStack const& example) const;

  [[noreturn]] static void refuse_data(std::string why) {
    refuse_export("the module's trace depends on the data of the example", std::move(why),
                  "A trace has no branches. Compute with operators in place of numbers of the "
                  "host: at::where, masks.");
  }

  void check(torch::jit::Module& made, TensorStack const& example,
             TorchscriptOptions const& options) const;

  /// Of twice as many samples.
  void check_batch(torch::jit::Module& made, TensorStack const& example) const;

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

#ifndef FRUGAL_COMPILED
#include <frugal/model/export_torchscript.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/export_torchscript.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace frugal::detail {

FRUGAL_INLINE void DataDependence::warned(std::string const& text) {
  if (DataDependence* const here = current()) {
    here->note(text);
  } else {
    TORCH_WARN(text);
  }
}

FRUGAL_INLINE std::unique_ptr<at::ObserverContext> DataDependence::called(
    at::RecordFunction const& call) {
  std::string_view const name = call.name();
  for (char const* each : {"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero",
                           "aten::equal", "aten::allclose"}) {
    if (name != each || current() == nullptr) continue;
    current()->note("it calls " + std::string(name) + ", whose result is that of the example");
  }
  return nullptr;
}

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

FRUGAL_INLINE void refuse_export(std::string what, std::string why, std::string fix) {
  throw ModuleError({.what = std::move(what),
                     .where = "export_torchscript",
                     .why = std::move(why),
                     .fix = std::move(fix)});
}

FRUGAL_INLINE void require_seen_by_tracer(torch::nn::Module const& root) {
  for (auto const& item : root.named_modules({}, /*include_self=*/false)) {
    if (dynamic_cast<ComputesUnseen const*>(item.value().get()) == nullptr) continue;
    refuse_export(
        "the layer of '" + item.key() + "' computes with a kernel of frugal",
        "it is quantized (quantize<INT8>, convert, Base<NF4>), and TorchScript has no such "
        "operator",
        "Export the module before it is quantized, or quantize in Python.");
  }
}

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

FRUGAL_INLINE torch::jit::Module TorchscriptExport::of(torch::nn::Module const& module, Run run,
                                                       TensorStack const& example,
                                                       TorchscriptOptions const& options) {
  TorchscriptExport const task(std::move(run));
  use_interception();
  torch::jit::Module made = task.trace(module, example);
  task.check(made, example, options);
  return made;
}

FRUGAL_INLINE torch::jit::Module TorchscriptExport::trace(torch::nn::Module const& module,
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

FRUGAL_INLINE void TorchscriptExport::check(torch::jit::Module& made, TensorStack const& example,
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

FRUGAL_INLINE void TorchscriptExport::check_batch(torch::jit::Module& made,
                                                  TensorStack const& example) const {
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

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/meta_meter.hpp>

#include <cstddef>
#include <optional>
#include <utility>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE void MetaMeter::release(void* context) {
  std::unique_ptr<Block> const block(static_cast<Block*>(context));
  if (block) *block->live -= block->size;
}

FRUGAL_INLINE void OnMeta::refer(at::Tensor const& tensor, at::Tensor const& data) {
  if (tensor.is_leaf()) tensor.mutable_grad().reset();
  Access::copy(data.unsafeGetTensorImpl(), tensor.unsafeGetTensorImpl());
  // It knows the device of the gradients that it adds up.
  if (auto* const meta = torch::autograd::impl::get_autograd_meta(tensor)) {
    meta->grad_accumulator_.reset();
  }
}

FRUGAL_INLINE bool MetaFallback::is_composite(c10::OperatorHandle const& op) {
  using Key = c10::DispatchKey;
  return op.hasKernelForDispatchKey(Key::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(Key::CompositeExplicitAutogradNonFunctional) ||
         op.hasKernelForDispatchKey(Key::CompositeImplicitAutograd);
}

FRUGAL_INLINE c10::IValue MetaFallback::Stands::on_host(c10::IValue const& value) {
  if (value.isTensor()) return on_host(value.toTensor());
  if (value.isDevice() && value.toDevice().is_meta()) return c10::Device(c10::kCPU);
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (at::Tensor const& each : value.toTensorVector()) list.push_back(on_host(each));
    return list;
  }
  if (value.isList() && value.type()->cast<c10::ListType>() != nullptr) {
    c10::List<c10::IValue> const from = value.toList();
    bool const of_optionals = from.elementType()->isSubtypeOf(*c10::OptionalType::ofTensor()) &&
                              !from.elementType()->isSubtypeOf(*c10::NoneType::get());
    if (!of_optionals) return value;
    c10::List<std::optional<at::Tensor>> list;
    for (c10::IValue const& each : from) {
      list.push_back(each.isNone() ? std::optional<at::Tensor>()
                                   : std::optional<at::Tensor>(on_host(each.toTensor())));
    }
    return list;
  }
  return value;
}

FRUGAL_INLINE c10::IValue MetaFallback::Stands::on_meta(c10::IValue const& value) const {
  if (value.isTensor()) return on_meta(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (at::Tensor const& each : value.toTensorVector()) list.push_back(on_meta(each));
    return list;
  }
  return value;
}

FRUGAL_INLINE at::Tensor MetaFallback::Stands::on_host(at::Tensor const& tensor) {
  if (!tensor.defined() || !tensor.is_meta()) return tensor;
  for (auto const& [meta, host] : pairs_) {
    if (meta.is_same(tensor)) return host;
  }
  at::Tensor host =
      at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kCPU));
  host.zero_();
  pairs_.emplace_back(tensor, host);
  return host;
}

FRUGAL_INLINE at::Tensor MetaFallback::Stands::on_meta(at::Tensor const& tensor) const {
  if (!tensor.defined()) return tensor;
  for (auto const& [meta, host] : pairs_) {
    if (host.is_same(tensor)) return meta;
    if (host.is_alias_of(tensor)) {
      return meta.as_strided(tensor.sizes(), tensor.strides(),
                             meta.storage_offset() + tensor.storage_offset());
    }
  }
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

FRUGAL_INLINE void MetaFallback::run(c10::OperatorHandle const& op, torch::jit::Stack* stack) {
  std::size_t const count = op.schema().arguments().size();
  std::string const name = c10::toString(op.operator_name());
  if (name == "aten::equal") {
    at::Tensor const b = torch::jit::pop(*stack).toTensor();
    at::Tensor const a = torch::jit::pop(*stack).toTensor();
    torch::jit::push(*stack, a.is_same(b));
    return;
  }
  if (op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape)) {
    throw ModuleError({.what = "the result of " + name + " depends on values",
                       .where = "a dry run on the meta device",
                       .why = "meta tensors have shapes and no values",
                       .fix = "Put the module on the CPU, where the dry run computes."});
  }
  Stands stands;
  auto arguments = torch::jit::last(*stack, count).vec();
  torch::jit::drop(*stack, count);
  for (c10::IValue const& each : arguments) stack->push_back(stands.on_host(each));
  op.callBoxed(stack);
  std::size_t const results = op.schema().returns().size();
  for (std::size_t i = stack->size() - results; i < stack->size(); ++i) {
    (*stack)[i] = stands.on_meta((*stack)[i]);
  }
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/libtorch/layer_tensors.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE torch::OrderedDict<std::string, at::Tensor>& own_parameters(
    torch::nn::Module& module) {
  struct Access : torch::nn::Module {
    static auto& of(torch::nn::Module& each) { return each.*(&Access::parameters_); }
  };
  return Access::of(module);
}

FRUGAL_INLINE std::vector<LayerMember> layer_members(torch::nn::Module& layer) {
  using namespace torch::nn;  // NOLINT(google-build-using-namespace): the classes below
  if (auto* const own = dynamic_cast<HasMembers*>(&layer)) return own->members();
  std::vector<LayerMember> found;
  auto const weight = [&](auto* as) {
    if (as != nullptr) found.emplace_back("weight", &as->weight);
    return as != nullptr;
  };
  auto const both = [&](auto* as) {
    if (as != nullptr) found = {{"weight", &as->weight}, {"bias", &as->bias}};
    return as != nullptr;
  };
  auto const statistics = [&](auto* as) {
    if (!both(as)) return false;
    found.emplace_back("running_mean", &as->running_mean);
    found.emplace_back("running_var", &as->running_var);
    found.emplace_back("num_batches_tracked", &as->num_batches_tracked);
    return true;
  };
  auto const cell = [&](auto* as) {
    if (as == nullptr) return false;
    found = {{"weight_ih", &as->weight_ih},
             {"weight_hh", &as->weight_hh},
             {"bias_ih", &as->bias_ih},
             {"bias_hh", &as->bias_hh}};
    return true;
  };
  auto const attention = [&](MultiheadAttentionImpl* as) {
    if (as == nullptr) return false;
    found = {{"in_proj_weight", &as->in_proj_weight},
             {"in_proj_bias", &as->in_proj_bias},
             {"bias_k", &as->bias_k},
             {"bias_v", &as->bias_v},
             {"q_proj_weight", &as->q_proj_weight},
             {"k_proj_weight", &as->k_proj_weight},
             {"v_proj_weight", &as->v_proj_weight}};
    return true;
  };
  static_cast<void>(
      both(dynamic_cast<LinearImpl*>(&layer)) || both(dynamic_cast<Conv2dImpl*>(&layer)) ||
      weight(dynamic_cast<EmbeddingImpl*>(&layer)) || both(dynamic_cast<LayerNormImpl*>(&layer)) ||
      statistics(dynamic_cast<BatchNorm1dImpl*>(&layer)) ||
      statistics(dynamic_cast<BatchNorm2dImpl*>(&layer)) ||
      statistics(dynamic_cast<BatchNorm3dImpl*>(&layer)) ||
      both(dynamic_cast<Conv1dImpl*>(&layer)) || both(dynamic_cast<Conv3dImpl*>(&layer)) ||
      both(dynamic_cast<ConvTranspose1dImpl*>(&layer)) ||
      both(dynamic_cast<ConvTranspose2dImpl*>(&layer)) ||
      both(dynamic_cast<ConvTranspose3dImpl*>(&layer)) ||
      both(dynamic_cast<GroupNormImpl*>(&layer)) ||
      statistics(dynamic_cast<InstanceNorm1dImpl*>(&layer)) ||
      statistics(dynamic_cast<InstanceNorm2dImpl*>(&layer)) ||
      statistics(dynamic_cast<InstanceNorm3dImpl*>(&layer)) ||
      attention(dynamic_cast<MultiheadAttentionImpl*>(&layer)) ||
      both(dynamic_cast<BilinearImpl*>(&layer)) ||
      weight(dynamic_cast<EmbeddingBagImpl*>(&layer)) || weight(dynamic_cast<PReLUImpl*>(&layer)) ||
      cell(dynamic_cast<RNNCellImpl*>(&layer)) || cell(dynamic_cast<LSTMCellImpl*>(&layer)) ||
      cell(dynamic_cast<GRUCellImpl*>(&layer)));
  return found;
}

FRUGAL_INLINE void register_members(torch::nn::Module& root) {
  struct Differing {
    std::string name;
    at::Tensor* registered;
    at::Tensor const* member;
  };
  std::vector<Differing> all;
  std::vector<std::pair<at::Tensor, at::Tensor*>> buffers;  // the registered one, and its member
  auto const look = [&](std::string const& layer, torch::nn::Module& module) {
    auto const own = module.named_buffers(/*recurse=*/false);
    for (auto const& [name, member] : layer_members(module)) {
      if (member->defined() && !member->is_leaf()) continue;
      at::Tensor const* const buffer = own.find(name);
      if (buffer != nullptr && buffer->defined() && member->defined() &&
          !buffer->is_same(*member)) {
        buffers.emplace_back(*buffer, member);
      }
      // A dropped weight is registered no more: see drop_weight().
      at::Tensor* const registered = own_parameters(module).find(name);
      if (registered == nullptr || registered->is_same(*member)) continue;
      all.push_back({layer.empty() ? name : layer + "." + name, registered, member});
    }
  };
  // A module may be on the stack, and then has no pointer of itself.
  look("", root);
  for (auto const& item : root.named_modules(/*name_prefix=*/{}, /*include_self=*/false)) {
    look(item.key(), *item.value());
  }
  for (auto& [registered, member] : buffers) {
    registered.set_data(member->detach());
    *member = registered;
  }
  if (all.empty()) return;
  std::unordered_set<at::TensorImpl const*> known;
  for (at::Tensor const& each : root.parameters()) known.insert(each.unsafeGetTensorImpl());
  for (at::Tensor const& each : root.buffers()) known.insert(each.unsafeGetTensorImpl());
  for (Differing const& each : all) {
    bool const trains = !each.member->defined() || each.member->requires_grad() ||
                        known.contains(each.member->unsafeGetTensorImpl());
    if (trains || !each.registered->defined() || !each.registered->requires_grad()) continue;
    throw ModuleError(
        {.what = "the layer of '" + each.name + "' computes with another tensor",
         .where = each.name,
         .why =
             "its member was assigned a tensor that the module has not registered and that has no "
             "gradient: no optimizer trains it, and '" +
             each.name + "' of named_parameters() is trained in its place and never used",
         .fix =
             "Copy values into it: `torch::NoGradGuard off; layer->weight.copy_(values);`. To tie "
             "two layers, assign a parameter of the module."});
  }
  for (Differing const& each : all) *each.registered = *each.member;
}

FRUGAL_INLINE TensorPlaceCounts::TensorPlaceCounts(torch::nn::Module& root) {
  root.apply([this](torch::nn::Module& layer) {
    auto const& parameters = own_parameters(layer);
    auto const buffers = layer.named_buffers(/*recurse=*/false);
    for (auto const& item : parameters) add(item.value());
    for (auto const& item : buffers) add(item.value());
    for (auto const& [name, member] : layer_members(layer)) {
      at::Tensor const* registered = parameters.find(name);
      if (registered == nullptr) registered = buffers.find(name);
      if (registered == nullptr || !registered->is_same(*member)) add(*member);
    }
  });
}

FRUGAL_INLINE int TensorPlaceCounts::of(at::Tensor const& tensor) const {
  if (!tensor.defined()) return 0;
  auto const found = places_.find(key_of(tensor));
  if (found == places_.end()) return 0;
  Range const own = range_of(tensor);
  int count = 0;
  for (Range const& each : found->second) {
    if (each.begin < own.end && own.begin < each.end) ++count;
  }
  return count;
}

FRUGAL_INLINE bool TensorPlaceCounts::overlap(at::Tensor const& one, at::Tensor const& other) {
  if (!one.defined() || !other.defined() || key_of(one) != key_of(other)) return false;
  Range const a = range_of(one), b = range_of(other);
  return a.begin < b.end && b.begin < a.end;
}

FRUGAL_INLINE void const* TensorPlaceCounts::key_of(at::Tensor const& tensor) {
  if (tensor.has_storage() && tensor.numel() != 0) return tensor.storage().unsafeGetStorageImpl();
  return tensor.unsafeGetTensorImpl();
}

FRUGAL_INLINE TensorPlaceCounts::Range TensorPlaceCounts::range_of(at::Tensor const& tensor) {
  if (!tensor.has_storage() || tensor.numel() == 0) return {};
  std::int64_t last = tensor.storage_offset();
  for (std::int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  auto const bytes = static_cast<std::int64_t>(tensor.element_size());
  return {.begin = tensor.storage_offset() * bytes, .end = (last + 1) * bytes};
}

FRUGAL_INLINE void TensorPlaceCounts::add(at::Tensor const& tensor) {
  if (tensor.defined()) places_[key_of(tensor)].push_back(range_of(tensor));
}

FRUGAL_INLINE std::vector<at::Tensor> each_once(std::vector<at::Tensor> tensors) {
  std::unordered_set<at::TensorImpl const*> seen;
  std::erase_if(tensors, [&](at::Tensor const& each) {
    return !each.defined() || !seen.insert(each.unsafeGetTensorImpl()).second;
  });
  return tensors;
}

FRUGAL_INLINE std::uint64_t bytes_of_tensors(torch::nn::Module const& module) {
  std::vector<at::Tensor> all = module.parameters();
  for (at::Tensor& each : module.buffers()) all.push_back(std::move(each));
  std::uint64_t bytes = 0;
  for (at::Tensor const& each : each_once(std::move(all))) bytes += each.nbytes();
  return bytes;
}

FRUGAL_INLINE c10::Device device_of_tensors(torch::nn::Module const& module) {
  for (at::Tensor const& each : module.parameters()) {
    if (each.defined()) return each.device();
  }
  for (at::Tensor const& each : module.buffers()) {
    if (each.defined()) return each.device();
  }
  return c10::kCPU;
}

FRUGAL_INLINE std::unordered_set<at::TensorImpl const*> tensors_that_keep_types(
    torch::nn::Module const& module) {
  std::unordered_set<at::TensorImpl const*> all;
  for (auto const& each : module.modules(/*include_self=*/false)) {
    if (dynamic_cast<KeepsTypes const*>(each.get()) == nullptr) continue;
    for (at::Tensor const& tensor : each->parameters()) all.insert(tensor.unsafeGetTensorImpl());
    for (at::Tensor const& tensor : each->buffers()) all.insert(tensor.unsafeGetTensorImpl());
  }
  return all;
}

}  // namespace frugal::detail

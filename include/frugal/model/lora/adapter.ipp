// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/lora/adapter.hpp>

#include <frugal/base/name_hash.hpp>
#include <frugal/base/name_pattern.hpp>
#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace frugal {

FRUGAL_INLINE LoraAdapter::LoraAdapter(LoraSettings settings, Operator op, at::Tensor const& weight,
                                       std::string const& path, std::uint64_t seed)
    : torch::nn::Module("LoraAdapter"), settings_(std::move(settings)), op_(op) {
  at::NoGradGuard const no_gradients;
  std::int64_t const rank = settings_.rank;
  bool const narrow = at::isReducedFloatingType(weight.scalar_type());
  auto const options =
      at::TensorOptions().dtype(narrow ? at::kFloat : weight.scalar_type()).device(at::kCPU);
  // An odd factor keeps seeds apart; a seed of 0 leaves the name's hash as it is.
  auto generator = at::detail::createCPUGenerator(detail::name_hash(path + "/" + settings_.name) ^
                                                  seed * 0x9e3779b97f4a7c15U);
  at::Tensor a, b;
  if (op == Operator::embedding) {
    a = at::zeros({rank, weight.size(0)}, options);
    b = at::empty({weight.size(1), rank}, options).normal_(0, 1, generator);
  } else {
    std::vector<std::int64_t> shape = weight.sizes().vec();
    std::vector<std::int64_t> other(shape.size(), 1);
    other[0] = std::exchange(shape[0], rank);
    other[1] = rank;
    // Kaiming's uniform distribution with a = sqrt(5), as torch::nn::Linear begins with.
    auto const fan_in = static_cast<double>(weight.numel() / weight.size(0));
    double const bound = 1 / std::sqrt(fan_in);
    a = at::empty(shape, options).uniform_(-bound, bound, generator);
    b = at::zeros(other, options);
  }
  a_ = register_parameter("A", a.to(weight.device()));
  b_ = register_parameter("B", b.to(weight.device()));
  if (settings_.dora) magnitude_ = register_parameter("magnitude", lengths_of(weight));
  if (settings_.pissa) {  // begin_with_singular_values() fills them
    first_a_ = register_buffer("A0", at::zeros_like(a_));
    first_b_ = register_buffer("B0", at::zeros_like(b_));
  }
}

FRUGAL_INLINE void LoraAdapter::begin_as(at::Tensor const& a, at::Tensor const& b) {
  at::NoGradGuard const no_gradients;
  for (at::Tensor const& each : {a_, first_a_}) each.copy_(a);
  for (at::Tensor const& each : {b_, first_b_}) each.copy_(b);
}

FRUGAL_INLINE std::optional<double> LoraAdapter::merge_into(at::Tensor const& weight,
                                                            at::Tensor const& base) {
  at::NoGradGuard const no_gradients;
  at::ScalarType const type = at::promote_types(weight.scalar_type(), at::kFloat);
  at::Tensor const plain = (base.defined() ? base : weight.detach()).to(weight.device(), type);
  at::Tensor added = product();
  if (first_a_.defined()) added = added - product(first_a_, first_b_);
  at::Tensor sum = plain + added.to(plain.device());
  if (settings_.dora) {
    std::vector<std::int64_t> rows(static_cast<std::size_t>(sum.dim()), 1);
    rows[op_ == Operator::embedding ? 1 : 0] = -1;
    sum *= (magnitude_.detach() / norms_of_sum(plain)).view(rows);
  }
  if (base.defined()) sum = weight.to(type) + (sum - plain);
  if (auto const reach = detail::beyond_range(sum, weight.scalar_type())) return reach;
  at::Tensor const kept = base.defined() ? at::Tensor() : weight.detach().clone();
  weight.copy_(sum);  // throws for a tensor of InferenceMode outside of it
  if (kept.defined()) kept_ = kept;
  merged_ = true;
  return std::nullopt;
}

FRUGAL_INLINE void LoraAdapter::note_merged(at::Tensor const& weight) {
  merged_type_ = weight.scalar_type();
  merged_version_ = version_of(weight);
  merged_values_ = values_of(weight);
}

FRUGAL_INLINE bool LoraAdapter::has_merged(at::Tensor const& weight) const {
  if (weight.scalar_type() != merged_type_) {
    return !weight.is_inference() && version_of(weight) == merged_version_;
  }
  return values_of(weight) == merged_values_;
}

FRUGAL_INLINE at::Tensor LoraAdapter::call(LayerCall const& call, LayerRest const& rest) const {
  if (op_ == Operator::embedding) {
    at::Tensor const base = rest(call);
    at::Tensor const added = through(call, call.input);
    if (!settings_.dora) return base.add(added.to(base.scalar_type()));
    at::Tensor const factor = magnitude_ / norms_of_sum(call.weight);
    at::Tensor const own = rest.adapts() ? call.plain() : base;
    return (base + (factor - 1) * own + factor * added).to(base.scalar_type());
  }
  at::Tensor const input = own_type(call.input);
  bool const drops = settings_.dropout > 0 && is_training();
  at::Tensor const dropped = drops ? at::dropout(input, settings_.dropout, true) : input;
  if (settings_.dora) return with_magnitude(call, rest, drops ? dropped : at::Tensor(), input);
  at::Tensor const base = rest(call);
  if (first_a_.defined()) {
    // The difference first: at the beginning it is exactly zero.
    at::Tensor const added = through(call, dropped) - through_first(input);
    return base.add(added.to(base.scalar_type()), scale());
  }
  if (op_ == Operator::linear) return add_product(base, dropped);
  return base.add(through(call, dropped).to(base.scalar_type()), scale());
}

FRUGAL_INLINE at::Tensor LoraAdapter::own_type(at::Tensor const& input) const {
  bool const cast = input.scalar_type() != a_.scalar_type() &&
                    !at::autocast::is_autocast_enabled(input.device().type());
  return cast ? input.to(a_.scalar_type()) : input;
}

FRUGAL_INLINE at::Tensor LoraAdapter::product(at::Tensor const& left,
                                              at::Tensor const& right) const {
  at::ScalarType const type = at::promote_types(left.scalar_type(), at::kFloat);
  at::Tensor const a = left.detach().to(type);
  at::Tensor const b = right.detach().to(type);
  if (op_ == Operator::embedding) return b.mm(a).t().mul(scale());
  std::vector<std::int64_t> shape = left.sizes().vec();
  shape[0] = right.size(0);
  return b.flatten(1).mm(a.flatten(1)).mul(scale()).view(shape);
}

FRUGAL_INLINE at::Tensor LoraAdapter::add_product(at::Tensor const& base,
                                                  at::Tensor const& input) const {
  at::Tensor const low = input.reshape({-1, input.size(-1)}).mm(a_.t());
  at::Tensor const flat = base.reshape({-1, base.size(-1)});
  if (flat.scalar_type() == low.scalar_type()) {
    return at::addmm(flat, low, b_.t(), 1, scale()).view(base.sizes());
  }
  return flat.add(low.mm(b_.t()).to(flat.scalar_type()), scale()).view(base.sizes());
}

FRUGAL_INLINE at::Tensor LoraAdapter::through(LayerCall const& call,
                                              at::Tensor const& input) const {
  if (op_ == Operator::embedding) {
    // As in PEFT, the row of padding has no gradient.
    return at::embedding(a_.t(), input, call.padding_index, call.scale_by_frequency)
        .matmul(b_.t())
        .mul(scale());
  }
  if (op_ == Operator::linear) return input.matmul(a_.t()).matmul(b_.t());
  LayerCall low = call;
  low.input = input;
  low.weight = a_;
  low.bias = at::Tensor();
  return at::conv2d(low.plain(), b_);
}

FRUGAL_INLINE at::Tensor LoraAdapter::with_magnitude(LayerCall const& call, LayerRest const& rest,
                                                     at::Tensor const& dropped,
                                                     at::Tensor const& input) const {
  LayerCall bare = call;
  bare.bias = at::Tensor();
  at::Tensor base = rest(bare);
  at::Tensor const norms = norms_of_sum(call.weight);
  at::Tensor factor = magnitude_ / norms;
  if (op_ == Operator::conv2d) factor = factor.view({-1, 1, 1});
  // As PEFT does it: with dropout, what the magnitude changes is computed from the same input as
  // the adapter's part, and the base's own part from all of it.
  if (dropped.defined()) bare.input = dropped.to(call.input.scalar_type());
  // The magnitude scales what the weight gives, and nothing that other adapters add.
  at::Tensor own = base;
  if (rest.adapts()) {
    own = bare.plain();
  } else if (dropped.defined()) {
    own = rest(bare);
  }
  if (first_a_.defined()) {
    own = own - scale() * through_first(dropped.defined() ? dropped : input);
    base = base - scale() * through_first(input);
  }
  at::Tensor out = base + (factor - 1) * own +
                   factor * scale() * through(call, dropped.defined() ? dropped : input);
  out = out.to(base.scalar_type());
  if (!call.bias.defined()) return out;
  return op_ == Operator::conv2d ? out + call.bias.view({-1, 1, 1}) : out + call.bias;
}

FRUGAL_INLINE at::Tensor LoraAdapter::as_rows(at::Tensor const& weight) const {
  at::Tensor const flat = weight.detach().flatten(1);
  return op_ == Operator::embedding ? flat.t() : flat;
}

FRUGAL_INLINE at::Tensor LoraAdapter::lengths_of(at::Tensor const& weight) const {
  return as_rows(weight).to(at::promote_types(weight.scalar_type(), at::kFloat)).norm(2, 1);
}

FRUGAL_INLINE at::Tensor LoraAdapter::norms_of_sum(at::Tensor const& weight) const {
  at::NoGradGuard const no_gradients;
  // Squares of small numbers of 16 bits are zero.
  at::ScalarType const type = at::promote_types(a_.scalar_type(), at::kFloat);
  at::Tensor const flat = as_rows(weight).to(type);
  at::Tensor a = a_.detach().flatten(1).to(type);
  at::Tensor b = b_.detach().flatten(1).to(type);
  if (first_a_.defined()) {  // B A - B0 A0, as one product
    a = at::cat({a, first_a_.to(type)}, 0);
    b = at::cat({b, -first_b_.to(type)}, 1);
  }
  at::Tensor const own = flat.square().sum(1);
  at::Tensor const mixed = (flat.mm(a.t()) * b).sum(1);
  at::Tensor const added = (b.mm(a.mm(a.t())) * b).sum(1);
  return (own + 2 * scale() * mixed + scale() * scale() * added).clamp_min(0).sqrt();
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE std::vector<AdaptableLayer> adaptable_layers(torch::nn::Module const& root) {
  using Operator = LayerCall::Operator;
  std::vector<AdaptableLayer> layers;
  for (auto const& item : root.named_modules("", /*include_self=*/false)) {
    torch::nn::Module* const module = item.value().get();
    AdaptableLayer layer{.name = item.key(), .module = item.value()};
    if (auto const* linear = dynamic_cast<torch::nn::LinearImpl*>(module)) {
      layer.op = Operator::linear;
      layer.weight = linear->weight;
    } else if (auto const* conv = dynamic_cast<torch::nn::Conv2dImpl*>(module)) {
      layer.op = Operator::conv2d;
      layer.weight = conv->weight;
      layer.grouped = conv->options.groups() != 1;
    } else if (auto const* table = dynamic_cast<torch::nn::EmbeddingImpl*>(module)) {
      layer.op = Operator::embedding;
      layer.weight = table->weight;
    } else {
      continue;
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

FRUGAL_INLINE std::shared_ptr<torch::nn::Module> adapters_of(torch::nn::Module const& layer) {
  auto const children = layer.named_children();
  auto const* const found = children.find(adapters_child);
  return found == nullptr ? nullptr : *found;
}

FRUGAL_INLINE std::vector<FoundAdapter> find_adapters(torch::nn::Module const& root,
                                                      std::string_view name) {
  std::vector<FoundAdapter> found;
  for (AdaptableLayer const& layer : adaptable_layers(root)) {
    auto const all = adapters_of(*layer.module);
    if (!all) continue;
    for (auto const& child : all->children()) {
      auto adapter = std::dynamic_pointer_cast<LoraAdapter>(child);
      if (!adapter || (!name.empty() && adapter->settings().name != name)) continue;
      found.push_back({layer, std::move(adapter)});
    }
  }
  return found;
}

FRUGAL_INLINE FoundAdapter const* merged_into(at::Tensor const& tensor,
                                              std::vector<FoundAdapter> const& all) {
  auto const found = std::ranges::find_if(all, [&](FoundAdapter const& each) {
    return each.adapter->is_merged() && TensorPlaceCounts::overlap(each.layer.weight, tensor);
  });
  return found == all.end() ? nullptr : &*found;
}

FRUGAL_INLINE void detach_adapter(FoundAdapter const& from) {
  if (auto const hooks = Interceptions::all().of(from.layer.weight)) {
    for (auto const& hook : *hooks) {
      auto const* const lora = dynamic_cast<LoraHook const*>(hook.get());
      if (lora != nullptr && lora->is_of(*from.adapter)) release(from.layer.weight, *hook);
    }
  }
  auto const all = adapters_of(*from.layer.module);
  std::string const& name = from.adapter->settings().name;
  if (!all || !all->named_children().contains(name)) return;
  all->unregister_module(name);
  if (all->children().empty()) from.layer.module->unregister_module(adapters_child);
}

FRUGAL_INLINE bool is_target(std::string_view name, std::string_view target) {
  if (target.find('*') != std::string_view::npos) return matches_pattern(target, name);
  if (!name.ends_with(target)) return false;
  return name.size() == target.size() || name[name.size() - target.size() - 1] == '.';
}

FRUGAL_INLINE TensorMap<std::string>& heads() {
  static auto* const made =
      new TensorMap<std::string>;  // never destroyed: threads may outlive main()
  return *made;
}

FRUGAL_INLINE bool is_head_of(at::Tensor const& tensor, std::string_view adapter) {
  std::string const owner = heads().find(tensor);
  return owner == adapter || (owner.empty() && tensor.requires_grad());
}

FRUGAL_INLINE std::vector<at::Tensor> parameters_named(
    torch::nn::Module const& module, std::vector<std::string_view> const& patterns) {
  std::vector<at::Tensor> found;
  for (auto const& item : module.named_parameters()) {
    auto const selects = [&](std::string_view pattern) {
      return matches_pattern(pattern, item.key());
    };
    auto const is_it = [&](at::Tensor const& each) { return each.is_same(item.value()); };
    if (!item.value().defined() || std::ranges::none_of(patterns, selects)) continue;
    if (std::ranges::none_of(found, is_it)) found.push_back(item.value());
  }
  return found;
}

FRUGAL_INLINE void require_own_heads(torch::nn::Module& module,
                                     std::vector<std::string_view> const& patterns,
                                     std::string_view adapter) {
  for (at::Tensor const& each : parameters_named(module, patterns)) {
    std::string const owner = heads().find(each);
    if (owner.empty() || owner == adapter || find_adapters(module, owner).empty()) continue;
    std::string name;
    for (auto const& item : module.named_parameters()) {
      if (name.empty() && item.value().is_same(each)) name = item.key();
    }
    throw SettingsError(
        {.what = "'" + name + "' is trained with the adapter '" + owner + "', and would be with '" +
                 std::string(adapter) + "' too",
         .where = "Lora",
         .why =
             "the module has one such parameter, and the second adapter would overwrite what the "
             "first has learned",
         .fix = "Keep the first with save_adapter and call remove_adapters, or give each adapter a "
                "module. Adapters that are trained together name it in one AlsoTrain."});
  }
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/structured/groups.hpp>

#include <frugal/core/libtorch/batch_norms.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/structured/layer_rules.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE AxisRule axis_rule_of(std::string const& name) {
  static std::unordered_map<std::string, AxisRule> const rules = [] {
    std::unordered_map<std::string, AxisRule> all;
    auto const add = [&](std::initializer_list<char const*> names, AxisRule rule) {
      for (char const* const each : names) all.emplace(each, rule);
    };
    for (char const* const each : {"relu",
                                   "relu6",
                                   "gelu",
                                   "silu",
                                   "sigmoid",
                                   "tanh",
                                   "hardtanh",
                                   "hardswish",
                                   "hardsigmoid",
                                   "leaky_relu",
                                   "elu",
                                   "selu",
                                   "celu",
                                   "mish",
                                   "softplus",
                                   "dropout",
                                   "feature_dropout",
                                   "alpha_dropout",
                                   "neg",
                                   "exp",
                                   "log",
                                   "sqrt",
                                   "rsqrt",
                                   "square",
                                   "abs",
                                   "sin",
                                   "cos",
                                   "erf",
                                   "pow",
                                   "clamp",
                                   "clamp_min",
                                   "clamp_max",
                                   "reciprocal",
                                   "add",
                                   "sub",
                                   "mul",
                                   "div",
                                   "masked_fill"}) {
      all.emplace(each, &axis_rules::pointwise);
      all.emplace(std::string(each) + "_", &axis_rules::pointwise);
    }
    add({"contiguous",  "clone",       "to",         "_to_copy",  "detach",      "alias",
         "lift_fresh",  "zeros_like",  "ones_like",  "full_like", "empty_like",  "rand_like",
         "rsub",        "maximum",     "minimum",    "where",     "eq",          "ne",
         "lt",          "le",          "gt",         "ge",        "logical_and", "logical_or",
         "logical_not", "bitwise_and", "bitwise_or", "lerp",      "addcmul",     "copy_"},
        &axis_rules::pointwise);
    add({"linear"}, &axis_rules::linear);
    add({"mm", "addmm", "bmm", "baddbmm", "matmul"}, &axis_rules::product);
    add({"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"},
        &axis_rules::convolution);
    add({"batch_norm", "instance_norm", "prelu"}, &axis_rules::channelwise);
    add({"layer_norm", "rms_norm"}, &axis_rules::layer_norm);
    add({"group_norm"}, &axis_rules::group_norm);
    add({"embedding"}, &axis_rules::embedding);
    add({"scaled_dot_product_attention"}, &axis_rules::attention);
    add({"max_pool1d",          "max_pool2d",
         "max_pool3d",          "max_pool2d_with_indices",
         "avg_pool1d",          "avg_pool2d",
         "avg_pool3d",          "adaptive_avg_pool1d",
         "adaptive_avg_pool2d", "adaptive_avg_pool3d",
         "adaptive_max_pool1d", "adaptive_max_pool2d",
         "adaptive_max_pool3d", "constant_pad_nd",
         "reflection_pad2d",    "replication_pad2d",
         "upsample_nearest2d",  "upsample_bilinear2d",
         "upsample_nearest1d",  "upsample_linear1d"},
        &axis_rules::by_size);
    add({"mean", "sum", "amax", "amin", "norm", "linalg_vector_norm"}, &axis_rules::reduction);
    add({"softmax", "log_softmax"}, &axis_rules::softmax);
    add({"view", "reshape", "flatten", "unflatten", "_unsafe_view", "view_as", "reshape_as",
         "squeeze", "unsqueeze"},
        &axis_rules::reshape);
    add({"t", "transpose", "permute"}, &axis_rules::permute);
    add({"expand", "expand_as", "repeat"}, &axis_rules::expand);
    add({"select", "slice", "narrow"}, &axis_rules::part);
    add({"chunk", "split", "split_with_sizes"}, &axis_rules::parts);
    add({"cat", "stack"}, &axis_rules::join);
    return all;
  }();
  auto const found = rules.find(name);
  return found == rules.end() ? nullptr : found->second;
}

FRUGAL_INLINE void AxisTrace::run(std::function<at::Tensor()> const& forward) {
  register_fallback();
  at::NoGradGuard const no_gradients;
  At const at(*this);
  at::Tensor const output = forward();
  lock_all(output, module_output);
}

FRUGAL_INLINE void AxisTrace::register_fallback() {
  static bool const once = [] {
    // The handle would deregister the fallback; it stays for the rest of the process.
    static_cast<void>(new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().registerFallback(
        key, c10::KernelFunction::makeFromBoxedFunction<&AxisTrace::follow>(), "frugal")));
    return true;
  }();
  static_cast<void>(once);
}

FRUGAL_INLINE void AxisTrace::follow(c10::OperatorHandle const& op, c10::DispatchKeySet keys,
                                     torch::jit::Stack* stack) {
  AxisTrace& trace = *active();
  std::size_t const count = op.schema().arguments().size();
  auto const begin = stack->end() - static_cast<std::ptrdiff_t>(count);
  OperatorCall call{.schema = op.schema(),
                    .name = op.operator_name().name,
                    .inputs = {begin, stack->end()},
                    .outputs = {}};
  if (call.name.starts_with("aten::")) call.name.erase(0, 6);
  AxisRule const rule = axis_rule_of(call.name);
  bool const looks_inside =
      rule == nullptr && op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  if (looks_inside) {
    op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key), stack);
  } else {
    c10::impl::ExcludeDispatchKeyGuard const off(key);
    op.callBoxed(stack);
  }
  call.outputs.assign(stack->end() - static_cast<std::ptrdiff_t>(op.schema().returns().size()),
                      stack->end());
  if (rule != nullptr) {
    rule(trace, call);
  } else if (!looks_inside || !trace.knows(call.outputs)) {
    trace.refuse(call);
  }
}

FRUGAL_INLINE at::Tensor CutPlace::summed(at::Tensor const& values, std::int64_t size) const {
  return values.movedim(dim, 0)
      .reshape({-1, size, after, values.numel() / values.size(dim)})
      .sum(at::IntArrayRef{0, 2, 3});
}

FRUGAL_INLINE at::Tensor CutPlace::indices(at::Tensor const& keep) const {
  at::Tensor const place = at::arange(tensor.size(dim), at::kLong);
  at::Tensor const position = at::div(place, after, "floor").remainder(keep.size(0));
  return at::nonzero(keep.index_select(0, position)).view({-1}).to(tensor.device());
}

FRUGAL_INLINE std::string CutGroup::name() const {
  std::string text;
  for (CutPlace const& each : places) {
    if (each.makes) text += (text.empty() ? "" : ", ") + each.name;
  }
  return text;
}

FRUGAL_INLINE void sync_options(torch::nn::Module& module) {
  module.apply([](torch::nn::Module& part) {
    auto const convolution = [](auto* layer) {
      if (layer == nullptr || !layer->weight.defined()) return;
      auto& options = layer->options;
      std::int64_t const first = layer->weight.size(0);
      std::int64_t const second = layer->weight.size(1);
      // Depthwise layers keep their number of filters per channel.
      if (options.groups() > 1 && options.groups() == options.in_channels() &&
          !options.transposed()) {
        std::int64_t const filters = options.out_channels() / options.in_channels();
        options.in_channels(first / filters).out_channels(first).groups(first / filters);
        return;
      }
      std::int64_t const in = options.transposed() ? first : second * options.groups();
      std::int64_t const out = options.transposed() ? second * options.groups() : first;
      options.in_channels(in).out_channels(out);
    };
    convolution(dynamic_cast<torch::nn::Conv1dImpl*>(&part));
    convolution(dynamic_cast<torch::nn::Conv2dImpl*>(&part));
    convolution(dynamic_cast<torch::nn::Conv3dImpl*>(&part));
    convolution(dynamic_cast<torch::nn::ConvTranspose1dImpl*>(&part));
    convolution(dynamic_cast<torch::nn::ConvTranspose2dImpl*>(&part));
    convolution(dynamic_cast<torch::nn::ConvTranspose3dImpl*>(&part));
    if (auto* const linear = dynamic_cast<torch::nn::LinearImpl*>(&part)) {
      linear->options.in_features(linear->weight.size(1)).out_features(linear->weight.size(0));
    }
    if (auto* const embedding = dynamic_cast<torch::nn::EmbeddingImpl*>(&part)) {
      embedding->options.embedding_dim(embedding->weight.size(1));
    }
  });
  each_batch_norm(module, [](auto& layer) {
    at::Tensor const& any = layer.weight.defined() ? layer.weight : layer.running_mean;
    if (any.defined()) layer.options.num_features(any.size(0));
  });
}

FRUGAL_INLINE void KeptTensors::keep(at::Tensor const& tensor) {
  kept_.emplace_back(tensor, tensor.detach());
}

FRUGAL_INLINE void KeptTensors::put_back() {
  // In the opposite order: a tensor may have been cut along two dimensions.
  for (auto each = kept_.rbegin(); each != kept_.rend(); ++each) each->first.set_data(each->second);
  kept_.clear();
}

FRUGAL_INLINE void mask_group(CutGroup const& group, at::Tensor const& keep, KeptTensors& kept) {
  at::NoGradGuard const no_gradients;
  for (CutPlace const& each : group.places) {
    if (!each.takes) continue;
    at::Tensor const masked =
        each.tensor.detach().clone().index_fill_(each.dim, each.indices(keep.logical_not()), 0);
    kept.keep(each.tensor);
    at::Tensor(each.tensor).set_data(masked);
  }
}

FRUGAL_INLINE void cut_group(CutGroup const& group, at::Tensor const& keep, KeptTensors& kept) {
  at::NoGradGuard const no_gradients;
  for (CutPlace const& each : group.places) {
    at::Tensor const cut = each.tensor.detach().index_select(each.dim, each.indices(keep));
    kept.keep(each.tensor);
    at::Tensor(each.tensor).set_data(cut);
  }
}

FRUGAL_INLINE std::int64_t vector_width(at::Tensor const& like) {
  std::string const capability = like.is_cpu() ? at::get_cpu_capability() : "AVX512";
  std::int64_t const bytes = capability.starts_with("AVX512") ? 64 : capability == "AVX2" ? 32 : 16;
  return bytes / static_cast<std::int64_t>(like.element_size());
}

FRUGAL_INLINE std::vector<CutGroup> groups_of(torch::nn::Module& module, AxisTrace const& trace) {
  std::vector<CutGroup> groups;
  std::map<Space, std::size_t> at;
  std::set<at::TensorImpl const*> scales;
  each_batch_norm(module, [&](auto& layer) {
    if (layer.weight.defined()) scales.insert(layer.weight.unsafeGetTensorImpl());
  });
  std::set<at::TensorImpl const*> seen;
  auto const visit = [&](std::string const& name, at::Tensor const& tensor) {
    at::TensorImpl const* const impl = tensor.unsafeGetTensorImpl();
    if (!tensor.defined() || !seen.insert(impl).second) return;
    std::vector<Axis> const axes = trace.axes_of(tensor);
    for (std::size_t dim = 0; dim < axes.size(); ++dim) {
      std::int64_t after = tensor.size(static_cast<std::int64_t>(dim));
      for (Space const space : axes[dim]) {
        std::int64_t const size = trace.spaces.size(space);
        after /= size;
        auto const [entry, is_new] = at.emplace(space, groups.size());
        if (is_new) groups.push_back({.size = size, .why = trace.spaces.locked(space)});
        groups[entry->second].places.push_back({.name = name,
                                                .tensor = tensor,
                                                .dim = static_cast<std::int64_t>(dim),
                                                .after = after,
                                                .makes = trace.makes.contains({impl, dim}),
                                                .takes = trace.takes.contains({impl, dim}),
                                                .scale = scales.contains(impl)});
      }
    }
  };
  for (auto const& item : module.named_parameters()) visit(item.key(), item.value());
  for (auto const& item : module.named_buffers()) visit(item.key(), item.value());
  // What no layer makes is no group, nor what is another one's inside or what the caller sees alone.
  std::erase_if(groups, [](CutGroup const& each) {
    bool const taken = std::ranges::any_of(each.places, &CutPlace::takes);
    return std::ranges::none_of(each.places, &CutPlace::makes) ||
           each.why.starts_with(inside_of_part) ||
           (!taken && (each.why.empty() || each.why == module_output));
  });
  return groups;
}

FRUGAL_INLINE at::Tensor importance_of(CutGroup const& group, RankBy rank) {
  at::NoGradGuard const no_gradients;
  at::Tensor sum;
  for (CutPlace const& each : group.places) {
    bool const counts =
        rank == RankBy::batch_norm_scale ? each.scale : each.makes || each.takes || each.scale;
    if (!counts) continue;
    at::Tensor const values = each.tensor.detach().to(at::kCPU, at::kFloat);
    at::Tensor const part =
        each.summed(rank == RankBy::l2 ? values.square() : values.abs(), group.size);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

FRUGAL_INLINE std::int64_t width_after(CutGroup const& group, CutSettings const& settings) {
  std::int64_t const wanted = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(static_cast<double>(group.size) * settings.keep));
  std::int64_t step = 1;
  for (CutPlace const& each : group.places) {
    if (!each.makes) continue;
    std::int64_t const width = settings.round != 0 ? settings.round : vector_width(each.tensor);
    // A head of 32 is a multiple of the vector by itself.
    step = std::max(step, width / std::gcd(width, each.after));
  }
  return std::min(group.size, (wanted + step - 1) / step * step);
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/structured/groups.hpp>

#include <frugal/core/libtorch/batch_norms.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace frugal::detail {

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

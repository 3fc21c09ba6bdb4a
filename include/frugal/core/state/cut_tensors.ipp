// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/state/cut_tensors.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE CutTensors& CutTensors::all() {
  static auto* const made = new CutTensors;  // never destroyed: threads may outlive main()
  return *made;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void cut_tensor(at::Tensor const& mine, TensorPart const& which) {
  detail::CutTensors::all().map.change(mine,
                                       [&](std::optional<TensorPart>& part) { part = which; });
  detail::CutTensors::all().any = true;
}

FRUGAL_INLINE std::optional<TensorPart> part_of(at::Tensor const& tensor) {
  detail::CutTensors const& all = detail::CutTensors::all();
  return all.any ? all.map.find(tensor) : std::nullopt;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void note_divided(at::Tensor const& tensor) {
  CutTensors::all().of_divided.change(tensor, [](bool& is) { is = true; });
  CutTensors::all().any_divided = true;
}

FRUGAL_INLINE std::vector<std::int64_t> whole_sizes(at::Tensor const& tensor) {
  auto const part = part_of(tensor);
  return part ? part->sizes : tensor.sizes().vec();
}

FRUGAL_INLINE at::Tensor own_part(at::Tensor const& whole, at::Tensor const& mine) {
  auto const part = part_of(mine);
  if (!part) return whole;
  at::Tensor own = whole;
  for (std::int64_t d = 0; d < mine.dim(); ++d) {
    auto const at = static_cast<std::size_t>(d);
    if (mine.size(d) == part->sizes[at]) continue;
    own = own.narrow(d, part->first / part->strides[at], mine.size(d));
  }
  return own;
}

FRUGAL_INLINE void require_whole(torch::nn::Module const& module, std::string const& where,
                                 std::string const& fix) {
  if (!CutTensors::all().any) return;
  auto const look = [&](auto const& items) {
    for (auto const& item : items) {
      if (!item.value().defined()) continue;
      auto const part = part_of(item.value());
      if (!part) continue;
      throw ModuleError({.what = "this process has a part of the tensor '" + item.key() + "'",
                         .where = where,
                         .why = "it has " + part->text() + ", and other processes the others",
                         .fix = fix});
    }
  };
  look(module.named_parameters());
  look(module.named_buffers());
}

FRUGAL_INLINE void require_undivided(torch::nn::Module const& module, std::string const& where) {
  CutTensors const& all = CutTensors::all();
  if (!all.any_divided) return;
  for (auto const& item : module.named_parameters()) {
    if (!all.of_divided.find(item.value())) continue;
    throw ModuleError({.what = "this process has the layers of its own stages alone",
                       .where = where,
                       .why = "Pipeline has divided the module, and other processes have the other "
                              "layers",
                       .fix = "Call gather_stages(module, whole) in all processes, and use "
                              "`whole`."});
  }
}

FRUGAL_INLINE void require_one_process(torch::nn::Module const& module, std::string const& where) {
  require_undivided(module, where);
  require_whole(module, where,
                "Copy the weights into a module of LibTorch's own layers, with whole_state().");
}

}  // namespace frugal::detail

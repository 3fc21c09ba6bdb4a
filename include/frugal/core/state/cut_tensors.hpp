// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <frugal/core/libtorch/tensor_map.hpp>
#include <frugal/core/state/tensor_part.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

namespace detail {

/// The cut tensors of the process.
struct CutTensors {
  TensorMap<std::optional<TensorPart>> map{};
  TensorMap<bool> of_divided{};  ///< see note_divided
  std::atomic<bool> any = false;
  std::atomic<bool> any_divided = false;

  FRUGAL_INLINE static CutTensors& all() {
    static auto* const made = new CutTensors;  // never destroyed: threads may outlive main()
    return *made;
  }
};

}  // namespace detail

// A cut tensor is a parameter or buffer of a module of which this process has one part, in all calls
// and fits, and other processes have the others. Checkpoints and files of weights have it whole.

/// `mine` has the elements `which` of a larger tensor, in their order in memory; its shape differs from
/// the larger one's in one dimension.
FRUGAL_INLINE void cut_tensor(at::Tensor const& mine, TensorPart const& which) {
  detail::CutTensors::all().map.change(mine,
                                       [&](std::optional<TensorPart>& part) { part = which; });
  detail::CutTensors::all().any = true;
}
/// Nothing for a tensor that is whole.
FRUGAL_INLINE std::optional<TensorPart> part_of(at::Tensor const& tensor) {
  detail::CutTensors const& all = detail::CutTensors::all();
  return all.any ? all.map.find(tensor) : std::nullopt;
}

namespace detail {

/// Notes a tensor of a module whose other layers are in other processes, in all calls and fits.
FRUGAL_INLINE void note_divided(at::Tensor const& tensor) {
  CutTensors::all().of_divided.change(tensor, [](bool& is) { is = true; });
  CutTensors::all().any_divided = true;
}

/// The sizes of a tensor as checkpoints and files of weights have it.
FRUGAL_INLINE std::vector<std::int64_t> whole_sizes(at::Tensor const& tensor) {
  auto const part = part_of(tensor);
  return part ? part->sizes : tensor.sizes().vec();
}

/// The elements of `whole`, which has whole_sizes(mine), that `mine` has: in its shape.
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

/// ModuleError for a module with a cut tensor, which `where` would take for a whole one.
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

/// ModuleError for a module whose other layers are in other processes: what `where` makes would lack
/// them.
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

/// Both, for what needs the module as one process has it.
FRUGAL_INLINE void require_one_process(torch::nn::Module const& module, std::string const& where) {
  require_undivided(module, where);
  require_whole(module, where,
                "Copy the weights into a module of LibTorch's own layers, with whole_state().");
}

}  // namespace detail
}  // namespace frugal

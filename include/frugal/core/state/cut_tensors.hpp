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

namespace frugal {

namespace detail {

/// The cut tensors of the process.
struct CutTensors {
  TensorMap<std::optional<TensorPart>> map{};
  TensorMap<bool> of_divided{};  ///< see note_divided
  std::atomic<bool> any = false;
  std::atomic<bool> any_divided = false;

  static CutTensors& all();
};

}  // namespace detail

// A cut tensor is a parameter or buffer of a module of which this process has one part, in all calls
// and fits, and other processes have the others. Checkpoints and files of weights have it whole.

/// `mine` has the elements `which` of a larger tensor, in their order in memory; its shape differs from
/// the larger one's in one dimension.
void cut_tensor(at::Tensor const& mine, TensorPart const& which);
/// Nothing for a tensor that is whole.
std::optional<TensorPart> part_of(at::Tensor const& tensor);

namespace detail {

/// Notes a tensor of a module whose other layers are in other processes, in all calls and fits.
void note_divided(at::Tensor const& tensor);

/// The sizes of a tensor as checkpoints and files of weights have it.
std::vector<std::int64_t> whole_sizes(at::Tensor const& tensor);

/// The elements of `whole`, which has whole_sizes(mine), that `mine` has: in its shape.
at::Tensor own_part(at::Tensor const& whole, at::Tensor const& mine);

/// ModuleError for a module with a cut tensor, which `where` would take for a whole one.
void require_whole(torch::nn::Module const& module, std::string const& where,
                   std::string const& fix);

/// ModuleError for a module whose other layers are in other processes: what `where` makes would lack
/// them.
void require_undivided(torch::nn::Module const& module, std::string const& where);

/// Both, for what needs the module as one process has it.
void require_one_process(torch::nn::Module const& module, std::string const& where);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/state/cut_tensors.ipp>
#endif

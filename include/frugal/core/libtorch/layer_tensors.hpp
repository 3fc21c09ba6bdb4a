// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>
#include <c10/core/StorageImpl.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace frugal::detail {

// A tensor may have several names, and a layer of LibTorch has two handles of each tensor: the one
// that it has registered, and the member with which it computes. `head->weight = words->weight`
// changes the member alone. What counts, freezes, quantizes, folds, saves or prunes goes by tensors,
// with the functions below.

/// The parameters of a module itself, which LibTorch lets be added, but neither removed nor replaced.
torch::OrderedDict<std::string, at::Tensor>& own_parameters(torch::nn::Module& module);

/// A member of a layer, and the name under which the layer registers it.
using LayerMember = std::pair<char const*, at::Tensor*>;

/// A layer of frugal's own that computes with members, as those of LibTorch do.
struct HasMembers {
  HasMembers() = default;
  HasMembers(HasMembers const&) = default;
  HasMembers& operator=(HasMembers const&) = default;
  virtual ~HasMembers() = default;
  virtual std::vector<LayerMember> members() = 0;
};

/// Those of a layer of LibTorch or of frugal; of another module none, since its members cannot be known.
std::vector<LayerMember> layer_members(torch::nn::Module& layer);

/// Registers in each layer the tensors that it computes with, where a member was assigned: then all
/// names of the module are of tensors that it uses. A weight that the forward pass computes, such as
/// a normalized one, is none of a module and stays as it is.
///
/// ModuleError for a member that is not trained, although the layer has registered a tensor that is:
/// it is no parameter of the module, no optimizer changes it, and the registered one is not used.
void register_members(torch::nn::Module& root);

/// How many places of a module have each tensor: layers by every path to them, with what they have
/// registered and what they compute with. Goes by memory, so that one of two tensors over the same
/// numbers (set_data, a view) is not changed alone.
class TensorPlaceCounts {
 public:
  explicit TensorPlaceCounts(torch::nn::Module& root);

  int of(at::Tensor const& tensor) const;
  bool shared(at::Tensor const& tensor) const { return of(tensor) > 1; }

  /// Whether two tensors are one, or have numbers in common.
  static bool overlap(at::Tensor const& one, at::Tensor const& other);

 private:
  /// Bytes of a storage, from the first to the last element.
  struct Range {
    std::int64_t begin = 0, end = 1;
  };

  static void const* key_of(at::Tensor const& tensor);
  static Range range_of(at::Tensor const& tensor);
  void add(at::Tensor const& tensor);

  std::unordered_map<void const*, std::vector<Range>> places_;
};

/// The defined tensors of a list, each once: a tied one has several names.
std::vector<at::Tensor> each_once(std::vector<at::Tensor> tensors);

/// Bytes of a module's parameters and buffers.
std::uint64_t bytes_of_tensors(torch::nn::Module const& module);

/// The device of a module's first parameter or buffer, trained or not; the CPU for one that has none.
c10::Device device_of_tensors(torch::nn::Module const& module);

/// A module that derives from it too has tensors whose type is part of what it computes, such as the
/// scales of integers: what rounds a module's weights to fewer bits leaves them alone.
struct KeepsTypes {
  KeepsTypes() = default;
  KeepsTypes(KeepsTypes const&) = default;
  KeepsTypes& operator=(KeepsTypes const&) = default;
  virtual ~KeepsTypes() = default;
};

/// A module that derives from it has its layer compute with kernels that write to memory themselves: no
/// tracer sees them.
struct ComputesUnseen {
  ComputesUnseen() = default;
  ComputesUnseen(ComputesUnseen const&) = default;
  ComputesUnseen& operator=(ComputesUnseen const&) = default;
  virtual ~ComputesUnseen() = default;
};

/// The tensors of modules that keep their types.
std::unordered_set<at::TensorImpl const*> tensors_that_keep_types(torch::nn::Module const& module);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/layer_tensors.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/data/fields_batch.hpp>
#include <frugal/model/where.hpp>

namespace frugal {

/// How save_weights() writes a module.
struct SaveRules {
  /// A file takes no more bytes of tensors, unless a single tensor has more.
  std::uint64_t shard_bytes = 5'000'000'000;
  /// Floating-point tensors are rounded to this type, but for the scales of quantized layers;
  /// Undefined: their own.
  at::ScalarType type = at::ScalarType::Undefined;
  /// The tensors that are saved. Empty: all.
  NamePatterns parts{};
};

/// The result of save_weights().
struct SavedWeights {
  std::vector<std::filesystem::path> files{};  ///< in the order of their numbers
  std::filesystem::path index{};               ///< empty with a single file
  std::uint64_t total_size = 0;                ///< bytes of the tensors
};

namespace detail {

class WeightsWriter {
 public:
  /// `whole`: the module's tensors, where it has parts of them.
  WeightsWriter(torch::nn::Module& module, std::filesystem::path folder, SaveRules const& rules,
                NamedTensors const* whole = nullptr);

  /// Everything is written under other names first, so that a failure leaves the folder as it was.
  SavedWeights write();

 private:
  /// Of adapters that their layers' weights include: a module that loaded both would add them twice.
  static std::unordered_set<at::TensorImpl const*> merged_tensors(torch::nn::Module& module);

  struct Shard {
    struct Stored {
      std::string name;
      at::Tensor tensor;
      at::ScalarType type;
    };
    std::vector<Stored> tensors;
    std::uint64_t bytes = 0;
  };

  at::ScalarType type_of(at::Tensor const& own) const {
    bool const rounded = type_ != at::ScalarType::Undefined && own.is_floating_point() &&
                         !keep_types_.contains(own.unsafeGetTensorImpl());
    return rounded ? type_ : own.scalar_type();
  }

  void require_range(Shard::Stored const& each) const;

  /// The files of the folder that this save replaces.
  std::set<std::string> shards_before() const;

  /// "model-00002-of-00003.safetensors".
  std::string name_of(std::size_t shard) const;

  void write(Shard const& shard, std::filesystem::path const& path) const;

  std::string index_text() const;

  std::filesystem::path folder_;
  at::ScalarType type_;
  std::unordered_set<at::TensorImpl const*> keep_types_{};  ///< tensors that are not rounded
  std::vector<Shard> shards_;
  SavedWeights saved_;
};

}  // namespace detail

/// Writes a module's parameters and buffers to a folder, as Hugging Face lays models out:
/// model.safetensors, or with more than shard_bytes model-00001-of-00003.safetensors and so on, and
/// model.safetensors.index.json. Weights that the folder has are replaced.
///
/// A tied tensor is saved under each of its names, so that torch.nn.Module.load_state_dict finds all.
/// Adapters that are merged are in the weights, and not saved again: the file fits the plain module.
///
/// Cost     the writing. Tensors that are rounded, or are not in host memory without gaps, are copied
///          there, those of a file together.
/// Errors   StoreError; FormatError for a tensor of a type that the format lacks; WeightRangeError for
///          a weight that is beyond the numbers of SaveRules::type. The folder then has the weights
///          that it had.
template <class Module>
SavedWeights save_weights(Module& module, std::filesystem::path const& folder,
                          SaveRules const& rules = {}) {
  return detail::WeightsWriter(base_module(module), folder, rules).write();
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/save_weights.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/model/stored_weights.hpp>
#include <frugal/model/weight_files.hpp>
#include <frugal/model/weight_rules.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

namespace frugal {

namespace detail {

/// Finds a module's tensors in files of weights, and copies them when everything fits.
class WeightPlan {
 public:
  /// StateError that lists every name that does not fit and that the rules do not allow.
  WeightPlan(torch::nn::Module& module, StoredWeights const& stored, WeightRules const& rules);

  /// Cost  memory for one tensor at a time, next to the module.
  LoadedWeights copy();

 private:
  struct Copy {
    std::string name;
    at::Tensor to;
    StoredWeight const* from;
    bool transposed;
    at::Tensor stored() const { return transposed ? from->tensor().t() : from->tensor(); }
  };

  void find(std::string const& name, at::Tensor const& tensor);

  void require_base(std::string const& here) const;

  /// Whether the file has the weight with the adapter or without it cannot be known.
  void require_unmerged(torch::nn::Module const& module) const;

  static bool same(Copy const& a, Copy const& b) {
    if (a.from == b.from && a.transposed == b.transposed) return true;
    bool const alike = a.from->type == b.from->type && a.from->sizes == b.from->sizes &&
                       a.from->strides == b.from->strides && a.transposed == b.transposed;
    // The bits, so that a NaN is equal to itself.
    if (alike && std::ranges::equal(a.from->bytes, b.from->bytes)) return true;
    return at::equal(a.stored().to(at::kDouble), b.stored().to(at::kDouble));
  }

  static bool is_resized(Copy const& copy) {
    return copy.to.dim() != 0 &&
           copy.from->sizes[copy.transposed ? 1 : 0] != whole_sizes(copy.to)[0];
  }

  /// Why a tensor cannot be copied; empty if it can.
  std::string misfit(Copy const& copy) const;

  /// Errors that the rules do not allow, and the names of the result.
  void report();

  static void add(std::string& text, std::vector<std::string> const& names,
                  std::string const& title);

  /// A number that the module's type does not have would become infinite.
  void require_range(Copy const& copy) const;

  static std::string sizes_text(at::Tensor const& tensor) {
    std::string text = "[";
    for (std::int64_t const size : whole_sizes(tensor)) {
      text += (text.size() == 1 ? "" : ", ") + std::to_string(size);
    }
    return text + "]";
  }

  static void copy(Copy const& each);

  /// In double precision, in blocks: a copy of the whole would be the largest tensor of the model.
  static at::Tensor mean_row(at::Tensor const& saved);

  StoredWeights const& stored_;
  WeightRules const& rules_;
  LoadedWeights loaded_;
  std::vector<std::pair<std::string, at::Tensor>> tensors_;
  std::vector<std::pair<std::string, at::Tensor>> absent_;
  std::vector<Copy> copies_;
  std::vector<std::string> misfits_;
  std::map<at::TensorImpl const*, std::size_t> filled_;
  std::unordered_set<StoredWeight const*> used_;
};

}  // namespace detail

/// Copies weights into a module, by the names of parameters and buffers.
///
/// `path`   a file of safetensors; one of torch.save with tensors alone; a folder with
///          model.safetensors.index.json and its shards, with model.safetensors or with
///          pytorch_model.bin; a checkpoint's folder, or a run's, of which it takes the newest
///          complete checkpoint.
/// `rules`  other names, parts of the module, and what may differ.
/// Returns  the names that matched, and those that the rules have let differ.
/// Cost     memory for one tensor, next to the module: files are mapped.
/// Errors   StateError that lists the names that are missing, unexpected or misshapen; StoreError and
///          FormatError for files that are missing or damaged, or have code; SettingsError for rules
///          that match nothing. The module is then unchanged.
///
///     load_weights(net, best_checkpoint<WatchAccuracy>("runs/demo"));
///     load_weights(*net->encoder, "bert-base", {.prefix = "bert.", .allow_unexpected = {"cls.*"}});
template <class Module>
LoadedWeights load_weights(Module& module, std::filesystem::path const& path,
                           WeightRules const& rules = {}) {
  detail::StoredWeights const stored = detail::open_weights(path, rules.which, rules.within);
  return detail::WeightPlan(base_module(module), stored, rules).copy();
}

/// The same, of a checkpoint with averages (Average): which ones.
template <class Module>
LoadedWeights load_weights(Module& module, std::filesystem::path const& path, Weights which) {
  return load_weights(module, path, WeightRules{.which = which});
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/load_weights.ipp>
#endif

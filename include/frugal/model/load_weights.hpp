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
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/judged.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/model/stored_weights.hpp>
#include <frugal/model/where.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

namespace frugal::detail {

inline constexpr char const* weights_file = "model.safetensors";
inline constexpr char const* weights_index_file = "model.safetensors.index.json";
inline constexpr char const* torch_weights_file = "pytorch_model.bin";

/// The tensors of a file of safetensors, or of all those that an index names.
StoredWeights open_safetensors(std::filesystem::path const& path);

/// One file: its first bytes say of which format it is, whatever its name.
StoredWeights open_weight_file(std::filesystem::path const& path, std::string const& within);

/// The weights at a path: a file of safetensors or torch.save, an index, a folder with one of these
/// under the names that Hugging Face uses, or a checkpoint or a run, of which it takes the newest
/// complete checkpoint.
StoredWeights open_weights(std::filesystem::path const& path, Weights which,
                           std::string const& within);

}  // namespace frugal::detail

namespace frugal {

/// Where a module's tensors are in a file that has other names. The texts that the stars of `to` stand
/// for go into those of `from`, in their order: {"encoder.layer.*.output.*", "layers.*.out.*"}.
struct RenameWeights {
  std::string from;  ///< pattern of names in the file
  std::string to;    ///< pattern of names in the module
};

/// How load_weights() finds the tensors of a module in a file, and what may differ. Patterns are
/// NamePatterns; those of names are of the module's names, but for allow_unexpected.
struct WeightRules {
  /// The first whose `to` fits a name of the module says what it is called in the file. Several may
  /// take one tensor of the file: a student's layers from a teacher's.
  std::vector<RenameWeights> rename{};
  /// Names in the file begin with it, such as "bert."; those that do not are found as well.
  std::string prefix{};
  /// The tensors that are loaded; the others keep their values, whatever the file has. Empty: all.
  NamePatterns parts{};
  /// Matrices that the file has transposed, such as those of GPT-2.
  NamePatterns transpose{};
  /// Tensors that may have another number of rows, such as embeddings of a changed vocabulary: the
  /// known rows are copied, and new ones are the mean of those of the file.
  NamePatterns resize{};
  NamePatterns allow_missing{};     ///< may be missing in the file: they keep their values
  NamePatterns allow_unexpected{};  ///< may be in the file alone; in the file's names
  NamePatterns allow_misshapen{};   ///< may have another shape or type: they keep their values
  /// Of a checkpoint with averages (Average); by default those that its metrics are of.
  Weights which = Weights::validated;
  /// Of a file of torch.save that has more than a state dict: its key. Empty: the one state dict that
  /// it has, alone or under "state_dict", "model_state_dict", "model" or "module".
  std::string within{};
};

namespace detail {

/// The texts that the stars of a pattern stand for, each as short as possible; nothing if the name
/// does not fit.
std::optional<std::vector<std::string>> texts_of_stars(std::string_view pattern,
                                                       std::string_view name);

std::string with_texts(std::string_view pattern, std::vector<std::string> const& texts);

/// What a tensor of the module is called in the file, before the prefix.
std::string name_in_file(WeightRules const& rules, std::string const& name);

/// SettingsError for rules that cannot be followed, or that are of no tensor of the module.
void require_rules(WeightRules const& rules, std::vector<std::string> const& names);

}  // namespace detail
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

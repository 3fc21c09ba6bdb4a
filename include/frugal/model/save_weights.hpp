// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <unordered_set>
#include <utility>
#include <vector>

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/whole_file.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>
#include <frugal/checkpoint/tensor_index.hpp>
#include <frugal/checkpoint/tensor_view.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/number_range.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/data/named_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/lora/layers.hpp>
#include <frugal/model/weight_files.hpp>
#include <frugal/model/where.hpp>
#include <frugal/policy/checkpoint/stored_tensor.hpp>

namespace frugal {

/// How save_weights() writes a module.
struct SaveRules {
  /// A file takes no more bytes of tensors, unless a single tensor has more.
  std::uint64_t shard_bytes = 5'000'000'000;
  /// Floating-point tensors are rounded to this type, but for the scales of quantised layers;
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
  FRUGAL_INLINE WeightsWriter(torch::nn::Module& module, std::filesystem::path folder,
                              SaveRules const& rules, NamedTensors const* whole = nullptr)
      : folder_(std::move(folder)), type_(rules.type) {
    if (rules.type != at::ScalarType::Undefined && !at::isFloatingType(rules.type)) {
      throw SettingsError(
          {.what = std::string("weights cannot be rounded to ") + at::toString(rules.type),
           .where = "SaveRules::type",
           .why = "it is not a floating-point type",
           .fix = "Give at::kBFloat16, at::kHalf or at::kFloat."});
    }
    require_undivided(module, "save_weights");
    register_members(module);
    keep_types_ = tensors_that_keep_types(module);
    std::vector<std::string> names;
    if (whole == nullptr) {
      require_whole(
          module, "save_weights",
          "Call save_weights(module, folder, *tensor_group) in all processes of the group.");
    }
    auto const merged = merged_tensors(module);
    visit_all_tensors(module, [&](std::string const& name, at::Tensor const& own) {
      if (merged.contains(own.unsafeGetTensorImpl())) return;
      names.push_back(name);
      if (!rules.parts.patterns().empty() && !rules.parts.matches(name)) return;
      at::Tensor const& tensor = whole == nullptr ? own : whole->at(name);
      at::ScalarType const type = type_of(own);
      std::uint64_t const bytes =
          static_cast<std::uint64_t>(tensor.numel()) * c10::elementSize(type);
      if (shards_.empty() ||
          (shards_.back().bytes != 0 && shards_.back().bytes + bytes > rules.shard_bytes)) {
        shards_.emplace_back();
      }
      shards_.back().tensors.push_back({name, tensor, type});
      shards_.back().bytes += bytes;
      saved_.total_size += bytes;
    });
    rules.parts.require_in(names, "SaveRules::parts", "tensors of the module");
    if (shards_.empty()) shards_.emplace_back();
  }

  /// Everything is written under other names first, so that a failure leaves the folder as it was.
  FRUGAL_INLINE SavedWeights write() {
    create_folders(folder_);
    std::set<std::string> const before = shards_before();
    std::vector<std::filesystem::path> written;
    try {
      for (std::size_t i = 0; i < shards_.size(); ++i) {
        std::filesystem::path const path = folder_ / name_of(i);
        saved_.files.push_back(path);
        written.push_back(path);
        written.back() += ".new";
        write(shards_[i], written.back());
      }
    } catch (...) {
      std::error_code ignored;
      for (auto const& path : written) std::filesystem::remove(path, ignored);
      throw;
    }
    // Without its index, a folder whose files are half replaced is not taken for a model.
    std::error_code ignored;
    std::filesystem::path const index = folder_ / weights_index_file;
    if (shards_.size() > 1) std::filesystem::remove(index, ignored);
    for (std::size_t i = 0; i < written.size(); ++i) rename_path(written[i], saved_.files[i]);
    if (shards_.size() > 1) {
      write_whole_file(index, index_text(), Durable::no);
      saved_.index = index;
    } else {
      std::filesystem::remove(index, ignored);
    }
    for (std::string const& file : before) {
      bool const replaced = std::ranges::any_of(
          saved_.files, [&](auto const& path) { return path.filename() == file; });
      if (!replaced) std::filesystem::remove(folder_ / file, ignored);
    }
    return std::move(saved_);
  }

 private:
  /// Of adapters that their layers' weights include: a module that loaded both would add them twice.
  FRUGAL_INLINE static std::unordered_set<at::TensorImpl const*> merged_tensors(
      torch::nn::Module& module) {
    std::unordered_set<at::TensorImpl const*> found;
    for (FoundAdapter const& each : find_adapters(module)) {
      if (!each.adapter->is_merged()) continue;
      for (auto const& tensors : {each.adapter->parameters(), each.adapter->buffers()}) {
        for (at::Tensor const& own : tensors) found.insert(own.unsafeGetTensorImpl());
      }
    }
    return found;
  }

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

  FRUGAL_INLINE void require_range(Shard::Stored const& each) const {
    auto const reach = beyond_range(each.tensor, each.type);
    if (!reach) return;
    throw WeightRangeError({.what = "a weight is too large for the type of the files",
                            .where = folder_.string(),
                            .why = "'" + each.name + "' has " + std::to_string(*reach) + ", and " +
                                   at::toString(each.type) + " ends at " +
                                   std::to_string(largest_number(each.type)),
                            .fix = "Save in a wider type: SaveRules{.type = at::kBFloat16}."});
  }

  /// The files of the folder that this save replaces.
  FRUGAL_INLINE std::set<std::string> shards_before() const {
    std::set<std::string> files{weights_file};
    std::error_code ignored;
    if (!std::filesystem::exists(folder_ / weights_index_file, ignored)) return files;
    try {
      for (auto const& [name, file] : TensorIndex::read(folder_ / weights_index_file).weight_map) {
        files.insert(file);
      }
    } catch (FormatError const&) {  // it is replaced as well, and what it named stays
    }
    return files;
  }

  /// "model-00002-of-00003.safetensors".
  FRUGAL_INLINE std::string name_of(std::size_t shard) const {
    return shards_.size() == 1 ? weights_file : shard_name(weights_file, shard, shards_.size());
  }

  FRUGAL_INLINE void write(Shard const& shard, std::filesystem::path const& path) const {
    std::vector<at::Tensor> kept;  // in host memory, while they are written
    std::vector<TensorView> views;
    for (Shard::Stored const& each : shard.tensors) {
      require_range(each);
      kept.push_back(each.tensor.detach().to(at::kCPU, each.type).contiguous());
      views.push_back(stored_view(each.name, kept.back()));
    }
    SafetensorsWriter const writer(std::move(views), {{"format", "pt"}}, path.string());
    std::error_code ignored;
    std::filesystem::remove(path, ignored);  // of a process that was killed
    File file = File::create(path);
    writer.write(file);
    file.close();
  }

  FRUGAL_INLINE std::string index_text() const {
    TensorIndex index{.total_size = saved_.total_size};
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      for (Shard::Stored const& each : shards_[i].tensors) {
        index.weight_map.emplace(each.name, name_of(i));
      }
    }
    return index.text();
  }

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

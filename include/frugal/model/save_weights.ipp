// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/save_weights.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>
#include <frugal/checkpoint/tensor_files.hpp>
#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/load_weights.hpp>
#include <frugal/model/lora/adapter.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

#include <system_error>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE WeightsWriter::WeightsWriter(torch::nn::Module& module, std::filesystem::path folder,
                                           SaveRules const& rules, NamedTensors const* whole)
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
    std::uint64_t const bytes = static_cast<std::uint64_t>(tensor.numel()) * c10::elementSize(type);
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

FRUGAL_INLINE SavedWeights WeightsWriter::write() {
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

FRUGAL_INLINE std::unordered_set<at::TensorImpl const*> WeightsWriter::merged_tensors(
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

FRUGAL_INLINE void WeightsWriter::require_range(Shard::Stored const& each) const {
  auto const reach = beyond_range(each.tensor, each.type);
  if (!reach) return;
  throw WeightRangeError({.what = "a weight is too large for the type of the files",
                          .where = folder_.string(),
                          .why = "'" + each.name + "' has " + std::to_string(*reach) + ", and " +
                                 at::toString(each.type) + " ends at " +
                                 std::to_string(largest_number(each.type)),
                          .fix = "Save in a wider type: SaveRules{.type = at::kBFloat16}."});
}

FRUGAL_INLINE std::set<std::string> WeightsWriter::shards_before() const {
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

FRUGAL_INLINE std::string WeightsWriter::name_of(std::size_t shard) const {
  return shards_.size() == 1 ? weights_file : shard_name(weights_file, shard, shards_.size());
}

FRUGAL_INLINE void WeightsWriter::write(Shard const& shard,
                                        std::filesystem::path const& path) const {
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

FRUGAL_INLINE std::string WeightsWriter::index_text() const {
  TensorIndex index{.total_size = saved_.total_size};
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    for (Shard::Stored const& each : shards_[i].tensors) {
      index.weight_map.emplace(each.name, name_of(i));
    }
  }
  return index.text();
}

}  // namespace frugal::detail

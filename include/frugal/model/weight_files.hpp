// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <frugal/base/json.hpp>
#include <frugal/base/mapped_file.hpp>
#include <frugal/base/whole_file.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/core/run/judged.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/stored_weights.hpp>
#include <frugal/model/torch_file.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

namespace frugal::detail {

inline constexpr char const* weights_file = "model.safetensors";
inline constexpr char const* weights_index_file = "model.safetensors.index.json";
inline constexpr char const* torch_weights_file = "pytorch_model.bin";

/// The index of a model in several files (shards), as Hugging Face writes it: which file has which
/// tensor.
struct WeightIndex {
  std::filesystem::path path{};
  std::map<std::string, std::string> weight_map{};  ///< tensor to file, in the folder of the index

  [[noreturn]] FRUGAL_INLINE void refuse(std::string why) const {
    throw FormatError({.what = "the index of the weights is damaged, or does not fit its files",
                       .where = path.string(),
                       .why = std::move(why),
                       .fix = "Copy the folder again from where the model came from, with all of "
                              "its files."});
  }

  /// FormatError for an index without "metadata" or "weight_map", and for one that names a file
  /// outside of its folder: nothing there belongs to the model.
  FRUGAL_INLINE static WeightIndex read(std::filesystem::path const& path) {
    WeightIndex index{.path = path};
    JsonError error;
    std::optional<Json> const all = Json::parse(read_whole_file(path), &error);
    if (!all || !all->is(Json::Kind::object)) {
      index.refuse("it is not a JSON object" +
                   (all ? std::string() : ": byte " + std::to_string(error.at)));
    }
    Json const* const metadata = all->find("metadata");
    if (metadata == nullptr || !metadata->is(Json::Kind::object)) {
      index.refuse("it has no \"metadata\"");
    }
    Json const* const size = metadata->find("total_size");
    if (size == nullptr || !size->as_double()) {
      index.refuse("its \"metadata\" has no number \"total_size\"");
    }
    Json const* const map = all->find("weight_map");
    if (map == nullptr || !map->is(Json::Kind::object)) index.refuse("it has no \"weight_map\"");
    for (Json const& item : map->items()) {
      if (!item.is(Json::Kind::text) || !is_within(item.text())) {
        index.refuse("'" + item.name() + "' is in \"" + item.text() +
                     "\", which is no file of the folder");
      }
      if (!index.weight_map.emplace(item.name(), item.text()).second) {
        index.refuse("'" + item.name() + "' is there twice");
      }
    }
    return index;
  }

 private:
  /// Links are not followed: caches keep a model's files elsewhere, and link to them.
  FRUGAL_INLINE static bool is_within(std::filesystem::path const& file) {
    return !file.empty() && file.is_relative() && file.has_filename() &&
           std::none_of(file.begin(), file.end(),
                        [](std::filesystem::path const& part) { return part == ".."; });
  }
};

FRUGAL_INLINE StoredWeights open_safetensors(std::filesystem::path const& path) {
  auto const file = std::make_shared<Safetensors const>(Safetensors::open(path));
  StoredWeights weights(path.string());
  for (std::size_t i = 0; i < file->size(); ++i) weights.add(stored_weight((*file)[i]));
  weights.fixed = file->metadata(fixed_key).value_or("");
  weights.keep(file);
  return weights;
}

/// The tensors of all shards. FormatError for a shard that is missing, and for a tensor that only one
/// of index and shard has.
FRUGAL_INLINE StoredWeights open_shards(std::filesystem::path const& path) {
  WeightIndex const index = WeightIndex::read(path);
  std::map<std::string, std::shared_ptr<Safetensors const>> shards;
  StoredWeights weights(path.string());
  for (auto const& [name, file] : index.weight_map) {
    auto const [shard, added] = shards.try_emplace(file);
    if (added) {
      std::filesystem::path const place = path.parent_path() / file;
      std::error_code ignored;
      if (!std::filesystem::exists(place, ignored)) index.refuse("there is no " + place.string());
      shard->second = std::make_shared<Safetensors const>(Safetensors::open(place));
    }
    auto const view = shard->second->find(name);
    if (!view) index.refuse(file + " does not have '" + name + "'");
    weights.add(stored_weight(*view));
  }
  for (auto& [file, shard] : shards) {
    for (std::size_t i = 0; i < shard->size(); ++i) {
      auto const listed = index.weight_map.find(std::string((*shard)[i].name));
      if (listed == index.weight_map.end() || listed->second != file) {
        index.refuse("it does not list '" + std::string((*shard)[i].name) + "' of " + file);
      }
    }
    weights.keep(std::move(shard));
  }
  return weights;
}

/// One file: its first bytes say of which format it is, whatever its name.
FRUGAL_INLINE StoredWeights open_weight_file(std::filesystem::path const& path,
                                             std::string const& within) {
  std::string begin;
  {
    MappedFile const file(path, MappedFile::Access::normal);
    auto const bytes = file.bytes().first(std::min<std::size_t>(file.bytes().size(), 16));
    begin.assign(reinterpret_cast<char const*>(bytes.data()), bytes.size());
  }
  if (begin.starts_with(TorchFile::magic)) return TorchFile::read(path, within);
  if (TorchFile::is_legacy(begin)) {
    throw FormatError({.what = "the file has the format of torch.save before PyTorch 1.6",
                       .where = path.string(),
                       .why = "it is a bare pickle, not an archive",
                       .fix = "Save it again in Python: torch.save(torch.load(FILE), FILE)."});
  }
  return open_safetensors(path);
}

/// The weights at a path: a file of safetensors or torch.save, an index, a folder with one of these
/// under the names that Hugging Face uses, or a checkpoint or a run, of which it takes the newest
/// complete checkpoint.
FRUGAL_INLINE StoredWeights open_weights(std::filesystem::path const& path, Weights which,
                                         std::string const& within) {
  auto const has = [&](std::string_view name) {
    std::error_code ignored;
    return std::filesystem::exists(path / name, ignored);
  };
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    return path.string().ends_with(".index.json") ? open_shards(path)
                                                  : open_weight_file(path, within);
  }
  if (has(weights_index_file)) return open_shards(path / weights_index_file);
  if (has(weights_file) || has(Manifest::file_name) || has("checkpoints")) {
    return open_weight_file(weights_in(path, which), within);
  }
  if (has(torch_weights_file)) return open_weight_file(path / torch_weights_file, within);
  throw StoreError({.what = "the folder has no weights",
                    .where = path.string(),
                    .why = std::string("it has neither ") + weights_index_file + ", " +
                           weights_file + " nor " + torch_weights_file + ", and no checkpoints",
                    .fix = "Give the folder of a model, of a run or of a checkpoint, or a file."});
}

}  // namespace frugal::detail

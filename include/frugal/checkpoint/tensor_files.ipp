// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/tensor_files.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstdio>
#include <system_error>

namespace frugal::detail {

FRUGAL_INLINE std::string shard_name(std::string_view one, std::size_t i, std::size_t count) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "-%05zu-of-%05zu", i + 1, count);
  std::size_t const dot = one.rfind('.');
  return std::string(one.substr(0, dot)) + numbers + std::string(one.substr(dot));
}

FRUGAL_INLINE void TensorIndex::refuse(std::string why) const {
  throw FormatError({.what = "the index of the weights is damaged, or does not fit its files",
                     .where = path.string(),
                     .why = std::move(why),
                     .fix = "Copy the folder again from where the model came from, with all of "
                            "its files."});
}

FRUGAL_INLINE TensorIndex TensorIndex::read(std::filesystem::path const& path) {
  TensorIndex index{.path = path};
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

FRUGAL_INLINE std::string TensorIndex::text() const {
  JsonWriter out;
  out.object(JsonLayout::lines);
  out.key("metadata").object().add("total_size", total_size).end();
  out.key("weight_map").object();
  for (auto const& [name, file] : weight_map) out.add(name, file);
  return out.str("\n");
}

FRUGAL_INLINE bool TensorIndex::is_within(std::filesystem::path const& file) {
  return !file.empty() && file.is_relative() && file.has_filename() &&
         std::none_of(file.begin(), file.end(),
                      [](std::filesystem::path const& part) { return part == ".."; });
}

FRUGAL_INLINE TensorFiles TensorFiles::open(std::filesystem::path const& path) {
  TensorFiles all(path.string());
  if (!path.string().ends_with(TensorIndex::ending)) {
    all.add(Safetensors::open(path));
    return all;
  }
  TensorIndex const index = TensorIndex::read(path);
  for (std::string const& file : index.files()) {
    std::filesystem::path const place = path.parent_path() / file;
    std::error_code ignored;
    if (!std::filesystem::exists(place, ignored)) index.refuse("there is no " + place.string());
    all.add(Safetensors::open(place));
  }
  std::map<std::string, Safetensors const*> opened;
  std::size_t at = 0;
  for (std::string const& file : index.files()) opened.emplace(file, &all.files_[at++]);
  for (auto const& [name, file] : index.weight_map) {
    if (!opened.at(file)->find(name)) index.refuse(file + " does not have '" + name + "'");
  }
  for (auto const& [file, tensors] : opened) {
    for (std::size_t i = 0; i < tensors->size(); ++i) {
      std::string const name((*tensors)[i].name);
      auto const listed = index.weight_map.find(name);
      if (listed == index.weight_map.end() || listed->second != file) {
        index.refuse("it does not list '" + name + "' of " + file);
      }
    }
  }
  return all;
}

FRUGAL_INLINE std::optional<TensorView> TensorFiles::find(std::string_view name) const {
  for (Safetensors const& file : files_) {
    if (auto const found = file.find(name)) return found;
  }
  return std::nullopt;
}

FRUGAL_INLINE std::optional<std::string_view> TensorFiles::metadata(std::string_view key) const {
  for (Safetensors const& file : files_) {
    if (auto const found = file.metadata(key)) return found;
  }
  return std::nullopt;
}

FRUGAL_INLINE void TensorFiles::add(Safetensors file) {
  for (std::size_t i = 0; i < file.size(); ++i) places_.emplace_back(files_.size(), i);
  files_.push_back(std::move(file));
}

}  // namespace frugal::detail

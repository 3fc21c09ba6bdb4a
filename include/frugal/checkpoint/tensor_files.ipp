// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/tensor_files.hpp>

#include <frugal/checkpoint/tensor_index.hpp>
#include <frugal/inline.hpp>

#include <map>
#include <system_error>

namespace frugal::detail {

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

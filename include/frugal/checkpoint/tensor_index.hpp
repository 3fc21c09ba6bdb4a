// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace frugal::detail {

/// "model-00002-of-00003.safetensors" for the second of three files in place of "model.safetensors".
std::string shard_name(std::string_view one, std::size_t i, std::size_t count);

/// Which file of a folder has which tensor, where several files have the tensors of one: the index
/// that Hugging Face writes beside them.
///
///     model-00001-of-00002.safetensors  model-00002-of-00002.safetensors  model.safetensors.index.json
struct TensorIndex {
  static constexpr std::string_view ending = ".index.json";  ///< after the name of the one file

  std::filesystem::path path{};
  std::map<std::string, std::string> weight_map{};  ///< tensor to file, in the folder of the index
  std::uint64_t total_size = 0;                     ///< bytes of the tensors; not read

  [[noreturn]] void refuse(std::string why) const;

  /// FormatError for an index without "metadata" or "weight_map", and for one that names a file
  /// outside of its folder: nothing there belongs to the model.
  static TensorIndex read(std::filesystem::path const& path);

  std::string text() const;

  std::set<std::string> files() const {
    std::set<std::string> all;
    for (auto const& [name, file] : weight_map) all.insert(file);
    return all;
  }

 private:
  /// Links are not followed: caches keep a model's files elsewhere, and link to them.
  static bool is_within(std::filesystem::path const& file);
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/tensor_index.ipp>
#endif

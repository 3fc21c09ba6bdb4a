// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/dtype.hpp>
#include <frugal/checkpoint/safetensors.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

/// The tensors of a safetensors file, or of the files that several processes have written in its
/// place, which an index names.
class TensorFiles {
 public:
  /// A file, or an index. Errors  those of Safetensors and of TensorIndex; FormatError for a tensor that
  /// only one of index and file has.
  static TensorFiles open(std::filesystem::path const& path);

  std::size_t size() const noexcept { return places_.size(); }
  /// The i-th tensor, file by file.
  TensorView operator[](std::size_t i) const {
    auto const [file, place] = places_[i];
    return files_[file][place];
  }
  std::optional<TensorView> find(std::string_view name) const;
  /// The value of a metadata key, of the first file that has it.
  std::optional<std::string_view> metadata(std::string_view key) const;

  /// What errors call them: the file, or the index.
  std::string const& name() const noexcept { return name_; }

 private:
  explicit TensorFiles(std::string name) : name_(std::move(name)) {}
  void add(Safetensors file);

  std::string name_;
  std::vector<Safetensors> files_;
  std::vector<std::pair<std::size_t, std::size_t>> places_;  ///< file, and which of its tensors
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/tensor_files.ipp>
#endif

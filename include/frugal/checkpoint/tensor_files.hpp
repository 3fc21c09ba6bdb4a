// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/checkpoint/tensor_index.hpp>
#include <frugal/checkpoint/tensor_view.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal::detail {

/// The tensors of a safetensors file, or of the files that several processes have written in its
/// place, which an index names.
class TensorFiles {
 public:
  /// A file, or an index. Errors  those of Safetensors and of TensorIndex; FormatError for a tensor that
  /// only one of index and file has.
  FRUGAL_INLINE static TensorFiles open(std::filesystem::path const& path) {
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

  std::size_t size() const noexcept { return places_.size(); }
  /// The i-th tensor, file by file.
  TensorView operator[](std::size_t i) const {
    auto const [file, place] = places_[i];
    return files_[file][place];
  }
  FRUGAL_INLINE std::optional<TensorView> find(std::string_view name) const {
    for (Safetensors const& file : files_) {
      if (auto const found = file.find(name)) return found;
    }
    return std::nullopt;
  }
  /// The value of a metadata key, of the first file that has it.
  FRUGAL_INLINE std::optional<std::string_view> metadata(std::string_view key) const {
    for (Safetensors const& file : files_) {
      if (auto const found = file.metadata(key)) return found;
    }
    return std::nullopt;
  }

  /// What errors call them: the file, or the index.
  std::string const& name() const noexcept { return name_; }

 private:
  explicit TensorFiles(std::string name) : name_(std::move(name)) {}
  FRUGAL_INLINE void add(Safetensors file) {
    for (std::size_t i = 0; i < file.size(); ++i) places_.emplace_back(files_.size(), i);
    files_.push_back(std::move(file));
  }

  std::string name_;
  std::vector<Safetensors> files_;
  std::vector<std::pair<std::size_t, std::size_t>> places_;  ///< file, and which of its tensors
};

}  // namespace frugal::detail

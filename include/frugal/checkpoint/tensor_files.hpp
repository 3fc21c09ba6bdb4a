// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/checkpoint/tensor_view.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::detail {

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

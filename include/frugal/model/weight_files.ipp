// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/weight_files.hpp>

#include <frugal/base/file.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/checkpoint/tensor_files.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/torch_file.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE StoredWeights open_safetensors(std::filesystem::path const& path) {
  auto const files = std::make_shared<TensorFiles const>(TensorFiles::open(path));
  StoredWeights weights(path.string());
  for (std::size_t i = 0; i < files->size(); ++i) weights.add(stored_weight((*files)[i]));
  weights.fixed = files->metadata(fixed_key).value_or("");
  weights.keep(files);
  return weights;
}

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

FRUGAL_INLINE StoredWeights open_weights(std::filesystem::path const& path, Weights which,
                                         std::string const& within) {
  auto const has = [&](std::string_view name) {
    std::error_code ignored;
    return std::filesystem::exists(path / name, ignored);
  };
  auto const open = [&](std::filesystem::path const& file) {
    return file.string().ends_with(TensorIndex::ending) ? open_safetensors(file)
                                                        : open_weight_file(file, within);
  };
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return open(path);
  if (has(weights_index_file) || has(weights_file) || has(Manifest::file_name) ||
      has("checkpoints")) {
    return open(weights_in(path, which));
  }
  if (has(torch_weights_file)) return open_weight_file(path / torch_weights_file, within);
  throw StoreError({.what = "the folder has no weights",
                    .where = path.string(),
                    .why = std::string("it has neither ") + weights_index_file + ", " +
                           weights_file + " nor " + torch_weights_file + ", and no checkpoints",
                    .fix = "Give the folder of a model, of a run or of a checkpoint, or a file."});
}

}  // namespace frugal::detail

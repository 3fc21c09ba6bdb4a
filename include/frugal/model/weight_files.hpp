// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <frugal/core/run/judged.hpp>
#include <frugal/model/stored_weights.hpp>

namespace frugal::detail {

inline constexpr char const* weights_file = "model.safetensors";
inline constexpr char const* weights_index_file = "model.safetensors.index.json";
inline constexpr char const* torch_weights_file = "pytorch_model.bin";

/// The tensors of a file of safetensors, or of all those that an index names.
StoredWeights open_safetensors(std::filesystem::path const& path);

/// One file: its first bytes say of which format it is, whatever its name.
StoredWeights open_weight_file(std::filesystem::path const& path, std::string const& within);

/// The weights at a path: a file of safetensors or torch.save, an index, a folder with one of these
/// under the names that Hugging Face uses, or a checkpoint or a run, of which it takes the newest
/// complete checkpoint.
StoredWeights open_weights(std::filesystem::path const& path, Weights which,
                           std::string const& within);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/weight_files.ipp>
#endif

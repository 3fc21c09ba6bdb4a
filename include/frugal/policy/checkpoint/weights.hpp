// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/checkpoint/tensor_files.hpp>
#include <frugal/core/run/judged.hpp>
#include <frugal/core/state/tensor_part.hpp>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <filesystem>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace frugal::detail {

/// A tensor as it is written: in host memory, without gaps. Name and tensor have to outlive it.
/// FormatError for a type that the format lacks.
TensorView stored_view(std::string const& name, at::Tensor const& tensor);

/// A stored tensor, to be copied from: it lies where the file lies, and goes with it. Undefined for
/// a type that LibTorch lacks.
at::Tensor tensor_in_file(TensorView const& view);

/// "F32 [128, 784]", as errors name it.
std::string type_and_shape(at::Tensor const& tensor);

}  // namespace frugal::detail

namespace frugal {

/// The result of load_weights(), by the names of parameters and buffers.
struct LoadedWeights {
  std::filesystem::path file{};
  std::vector<std::string> matched{};  ///< filled, in the module's order; with all names of a tied
                                       ///< tensor
  std::vector<std::string>
      missing{};  ///< of the module, and not in the file: they keep their values
  std::vector<std::string> unexpected{};  ///< of the file, and not in the module
  std::vector<std::string>
      misshapen{};  ///< of the module, and of another shape or type in the file: likewise
  std::vector<std::string> resized{};  ///< with another number of rows: see WeightRules::resize

  /// Whether every tensor of either side has a counterpart.
  bool complete() const { return missing.empty() && unexpected.empty() && misshapen.empty(); }

  friend std::ostream& operator<<(std::ostream& out, LoadedWeights const& loaded);
};

namespace detail {

/// Names of the file's tensors that the module lacks, in all processes, in the file's order.
std::vector<std::string> names_not_in(torch::nn::Module& module, TensorFiles const& file,
                                      TensorPlaces const& places = {});

[[noreturn]] void refuse_file(std::filesystem::path const& where, std::string why);

/// A file of a complete checkpoint. FormatError unless the manifest lists it: a file that it does
/// not list has no hash, and was not verified.
std::filesystem::path file_of(SavedCheckpoint const& checkpoint, std::string const& name);

/// Averages of the weights (Average) lie in a file of their own, under the names of the module's
/// parameters and together with its other tensors.
inline constexpr char const* averages_file = "averaged.safetensors";
/// Their scope in the state of a run.
inline constexpr std::string_view averages_path = "policies/Average/weights/";
/// The key in that file's metadata for whether validations measure these weights: "true", "false".
inline constexpr char const* validated_key = "validated";
/// The key in the metadata of a checkpoint's weights for the identity of the module's fixed tensors,
/// which are not in it.
inline constexpr char const* fixed_key = "frugal_fixed";

bool has_file(SavedCheckpoint const& checkpoint, std::string_view name);

/// Where a checkpoint has the tensors of this name, "model.safetensors": in that file, or in those of an
/// index, if several processes have written them.
std::filesystem::path tensors_of(SavedCheckpoint const& checkpoint, std::string const& name);
/// Whether it has any.
bool has_tensors(SavedCheckpoint const& checkpoint, std::string const& name);

/// The file with these weights of a checkpoint, or the index of several. StoreError if it has no averages
/// and they are asked for.
std::filesystem::path weights_of(SavedCheckpoint const& checkpoint, Weights which);

/// The checkpoint at a path: a checkpoint's folder, or a run directory, of which it is the newest
/// complete one. Every file matches its hash. StoreError without one. `damaged` gets those of the
/// run that are newer and damaged.
SavedCheckpoint checkpoint_at(std::filesystem::path const& path,
                              std::vector<Damage>* damaged = nullptr);

/// The file of weights at a path, or the index of several: a .safetensors file, a checkpoint's folder,
/// or a run directory, of which it takes the newest complete checkpoint. StoreError without one.
std::filesystem::path weights_in(std::filesystem::path const& path, Weights which);

[[noreturn]] void refuse_weights(std::string const& file, std::string why);

/// StateError if a name fits and a shape does not, if no name does, or if the names of one tied
/// tensor have different values. `held`: the parts of a run whose processes have parts of weights;
/// `places`: of one whose processes have different layers.
LoadedWeights copy_weights(torch::nn::Module& module, TensorFiles const& file,
                           HeldParts const& held = {}, TensorPlaces const& places = {});

}  // namespace detail

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/weights.ipp>
#endif

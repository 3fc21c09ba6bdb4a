// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <filesystem>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <frugal/error.hpp>
#include <frugal/libtorch/parameters.hpp>
#include <frugal/policy/checkpoint/stored_tensor.hpp>
#include <frugal/state/module_tensors.hpp>
#include <frugal/store/checkpoint.hpp>
#include <frugal/store/checkpoint_list.hpp>
#include <frugal/store/manifest.hpp>
#include <frugal/store/run_directory.hpp>
#include <frugal/store/safetensors.hpp>

namespace frugal {

/// The result of load_weights(), by the names of parameters and buffers.
struct LoadedWeights {
  std::filesystem::path file{};
  std::vector<std::string> matched{};  ///< copied, in the module's order
  std::vector<std::string>
      missing{};  ///< of the module, and not in the file: they keep their values
  std::vector<std::string> unexpected{};  ///< of the file, and not in the module

  /// Whether every tensor of either side has a counterpart.
  bool complete() const { return missing.empty() && unexpected.empty(); }

  friend std::ostream& operator<<(std::ostream& out, LoadedWeights const& loaded) {
    out << loaded.matched.size() << " tensors from " << loaded.file.string();
    for (std::string const& name : loaded.missing) {
      out << "\nmissing: '" << name << "' is not in the file";
    }
    for (std::string const& name : loaded.unexpected) {
      out << "\nunexpected: '" << name << "' is not in the module";
    }
    return out;
  }
};

namespace detail {

/// Names of the file's tensors that the module lacks, in the file's order.
inline std::vector<std::string> names_not_in(torch::nn::Module& module, Safetensors const& file) {
  std::set<std::string> known;
  visit_tensors(module, [&](std::string const& name, at::Tensor const&) { known.insert(name); });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string name(file[i].name);
    if (!known.contains(name)) names.push_back(std::move(name));
  }
  return names;
}

[[noreturn]] inline void refuse_file(std::filesystem::path const& where, std::string why) {
  throw FormatError({.what = "a checkpoint cannot be resumed from",
                     .where = where.string(),
                     .why = std::move(why),
                     .fix = "Use another checkpoint, or restore this one from a copy."});
}

/// A file of a complete checkpoint. FormatError unless the manifest lists it: a file that it does
/// not list has no hash, and was not verified.
inline std::filesystem::path file_of(SavedCheckpoint const& checkpoint, std::string const& name) {
  for (FileEntry const& entry : checkpoint.manifest.files) {
    if (entry.name == name) return checkpoint.folder / name;
  }
  refuse_file(checkpoint.folder / Manifest::file_name, "it does not list " + name);
}

/// The file of weights at a path: a .safetensors file, a checkpoint's folder, or a run's folder, of
/// which it takes the newest complete checkpoint. StoreError without one.
inline std::filesystem::path weights_in(std::filesystem::path const& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  if (std::filesystem::exists(path / Manifest::file_name, ignored)) {
    SavedCheckpoint const checkpoint = read_checkpoint(path);
    auto file = file_of(checkpoint, "model.safetensors");
    verify(checkpoint);
    return file;
  }
  auto file = path / "model.safetensors";
  if (std::filesystem::exists(file, ignored)) return file;
  auto const newest = RunDirectory(path, Access::read).newest_valid();
  if (newest.checkpoint) return file_of(*newest.checkpoint, "model.safetensors");
  throw StoreError({.what = "there are no weights",
                    .where = path.string(),
                    .why = "it has no complete checkpoint",
                    .fix = "Give a run, a checkpoint or a .safetensors file."});
}

[[noreturn]] inline void refuse_weights(std::string const& file, std::string why) {
  throw StateError({.what = "these weights belong to another module",
                    .where = file,
                    .why = std::move(why),
                    .fix = "Load them into the module that saved them, or into one whose tensors "
                           "have these names and shapes."});
}

/// StateError if a name fits and a shape does not, or if no name does.
inline LoadedWeights copy_weights(torch::nn::Module& module, Safetensors const& file) {
  at::NoGradGuard const no_gradients;
  LoadedWeights loaded;
  loaded.file = file.name();
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs;
  visit_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
    auto const view = file.find(name);
    if (!view) return loaded.missing.push_back(name);
    at::Tensor const saved = tensor_in_file(*view);
    if (!saved.defined() || saved.sizes() != tensor.sizes()) {
      refuse_weights(file.name(), "'" + name + "' is " +
                                      (saved.defined() ? type_and_shape(saved)
                                                       : std::string(dtype_name(view->dtype))) +
                                      " there and " + type_and_shape(tensor) + " here");
    }
    loaded.matched.push_back(name);
    pairs.emplace_back(tensor, saved);
  });
  if (pairs.empty()) {
    refuse_weights(file.name(), "no tensor there has the name of a tensor here");
  }
  // Copy only after every tensor fits.
  for (auto& [tensor, saved] : pairs) tensor.copy_(saved);
  loaded.unexpected = names_not_in(module, file);
  return loaded;
}

}  // namespace detail

/// Copies weights into a module, by the names of parameters and buffers.
///
/// `path`   a .safetensors file, a checkpoint's folder, or a run's folder, of which it
///          takes the newest complete checkpoint.
/// Returns  the names that matched, and those that did not: a replaced head keeps its values.
/// Errors   StateError if a name fits and a shape does not, or if no name fits; StoreError and
///          FormatError for a file that is missing or damaged. The module is then unchanged.
///
///     LoadedWeights const loaded = load_weights(net, best_checkpoint<WatchAccuracy>("runs/demo"));
template <class Module>
LoadedWeights load_weights(Module& module, std::filesystem::path const& path) {
  return detail::copy_weights(base_module(module), Safetensors::open(detail::weights_in(path)));
}

}  // namespace frugal

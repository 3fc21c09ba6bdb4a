// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/weights.hpp>

#include <frugal/checkpoint/manifest.hpp>
#include <frugal/checkpoint/run_directory.hpp>
#include <frugal/core/state/cut_tensors.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/data/tensor_dtype.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE TensorView stored_view(std::string const& name, at::Tensor const& tensor) {
  auto const type = stored_type(tensor.scalar_type());
  if (!type) {
    throw FormatError(
        {.what = "the tensor '" + name + "' cannot be stored",
         .where = "safetensors",
         .why = std::string("the format has no type ") + at::toString(tensor.scalar_type()),
         .fix = "Store it as another type, or take it out of the module."});
  }
  // An int64 may be read as a uint64, and a size is never negative.
  auto const* const sizes = reinterpret_cast<std::uint64_t const*>(tensor.sizes().data());
  return {.name = name,
          .dtype = *type,
          .shape = {sizes, tensor.sizes().size()},
          .bytes = {static_cast<std::byte const*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

FRUGAL_INLINE at::Tensor tensor_in_file(TensorView const& view) {
  auto const type = torch_type(view.dtype);
  if (!type) return {};
  auto const* const sizes = reinterpret_cast<std::int64_t const*>(view.shape.data());
  at::IntArrayRef const shape(sizes, view.shape.size());
  at::TensorOptions const options = at::TensorOptions().dtype(type);
  auto* const data = const_cast<std::byte*>(view.bytes.data());  // never written to
  if (view.aligned()) return at::from_blob(data, shape, options);
  at::Tensor copy = at::empty(shape, options);
  std::copy(view.bytes.begin(), view.bytes.end(), static_cast<std::byte*>(copy.mutable_data_ptr()));
  return copy;
}

FRUGAL_INLINE std::string type_and_shape(at::Tensor const& tensor) {
  auto const type = stored_type(tensor.scalar_type());
  std::string text(type ? dtype_name(*type) : std::string_view(at::toString(tensor.scalar_type())));
  text += " [";
  for (std::int64_t i = 0; i < tensor.dim(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(tensor.size(i));
  }
  return text + "]";
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::ostream& operator<<(std::ostream& out, LoadedWeights const& loaded) {
  out << loaded.matched.size() << " tensors from " << loaded.file.string();
  for (std::string const& name : loaded.missing) {
    out << "\nmissing: '" << name << "' is not in the file";
  }
  for (std::string const& name : loaded.unexpected) {
    out << "\nunexpected: '" << name << "' is not in the module";
  }
  for (std::string const& name : loaded.misshapen) {
    out << "\nmisshapen: '" << name << "' is another one in the file";
  }
  for (std::string const& name : loaded.resized) {
    out << "\nresized: '" << name << "' has another number of rows in the file";
  }
  return out;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::string> names_not_in(torch::nn::Module& module,
                                                    TensorFiles const& file,
                                                    TensorPlaces const& places) {
  std::set<std::string> known;
  for (auto const& [name, tensor] : places.tensors) known.insert(name);
  visit_all_tensors(module,
                    [&](std::string const& name, at::Tensor const&) { known.insert(name); });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string name(file[i].name);
    if (!known.contains(name)) names.push_back(std::move(name));
  }
  return names;
}

FRUGAL_INLINE void refuse_file(std::filesystem::path const& where, std::string why) {
  throw FormatError({.what = "a checkpoint cannot be resumed from",
                     .where = where.string(),
                     .why = std::move(why),
                     .fix = "Use another checkpoint, or restore this one from a copy."});
}

FRUGAL_INLINE std::filesystem::path file_of(SavedCheckpoint const& checkpoint,
                                            std::string const& name) {
  for (FileEntry const& entry : checkpoint.manifest.files) {
    if (entry.name == name) return checkpoint.folder / name;
  }
  refuse_file(checkpoint.folder / Manifest::file_name, "it does not list " + name);
}

FRUGAL_INLINE bool has_file(SavedCheckpoint const& checkpoint, std::string_view name) {
  return std::ranges::any_of(checkpoint.manifest.files,
                             [&](FileEntry const& entry) { return entry.name == name; });
}

FRUGAL_INLINE std::filesystem::path tensors_of(SavedCheckpoint const& checkpoint,
                                               std::string const& name) {
  std::string const index = name + std::string(TensorIndex::ending);
  return file_of(checkpoint, has_file(checkpoint, index) ? index : name);
}

FRUGAL_INLINE bool has_tensors(SavedCheckpoint const& checkpoint, std::string const& name) {
  return has_file(checkpoint, name) ||
         has_file(checkpoint, name + std::string(TensorIndex::ending));
}

FRUGAL_INLINE std::filesystem::path weights_of(SavedCheckpoint const& checkpoint, Weights which) {
  auto const trained = tensors_of(checkpoint, "model.safetensors");
  if (which == Weights::trained) return trained;
  if (!has_tensors(checkpoint, averages_file)) {
    if (which == Weights::validated) return trained;
    throw StoreError({.what = "the checkpoint has no file of averaged weights",
                      .where = checkpoint.folder.string(),
                      .why = "its recipe had no Average, or no average yet",
                      .fix = "Give Weights::validated."});
  }
  auto const averaged = tensors_of(checkpoint, averages_file);
  bool const validated = TensorFiles::open(averaged).metadata(validated_key) == "true";
  return which == Weights::averaged || validated ? averaged : trained;
}

FRUGAL_INLINE SavedCheckpoint checkpoint_at(std::filesystem::path const& path,
                                            std::vector<Damage>* damaged) {
  std::error_code ignored;
  if (std::filesystem::exists(path / Manifest::file_name, ignored)) {
    SavedCheckpoint checkpoint = read_checkpoint(path);
    verify(checkpoint);
    return checkpoint;
  }
  auto newest = RunDirectory(path, Access::read).newest_valid();
  if (damaged != nullptr) *damaged = std::move(newest.damaged);
  if (newest.checkpoint) return std::move(*newest.checkpoint);
  throw StoreError({.what = "there is no checkpoint",
                    .where = path.string(),
                    .why = "it has no complete checkpoint",
                    .fix = "Give the folder of a run or of a checkpoint."});
}

FRUGAL_INLINE std::filesystem::path weights_in(std::filesystem::path const& path, Weights which) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  // The files of a checkpoint, copied without the manifest.
  if (!std::filesystem::exists(path / Manifest::file_name, ignored)) {
    SavedCheckpoint copied{.folder = path, .manifest = {}};
    for (std::string const name : {"model.safetensors", averages_file}) {
      for (std::string const& each : {name, name + std::string(TensorIndex::ending)}) {
        if (std::filesystem::exists(path / each, ignored)) {
          copied.manifest.files.push_back({.name = each});
        }
      }
    }
    if (has_tensors(copied, "model.safetensors")) return weights_of(copied, which);
  }
  return weights_of(checkpoint_at(path), which);
}

FRUGAL_INLINE void refuse_weights(std::string const& file, std::string why) {
  throw StateError({.what = "these weights belong to another module",
                    .where = file,
                    .why = std::move(why),
                    .fix = "Load them into the module that saved them, or into one whose tensors "
                           "have these names and shapes."});
}

FRUGAL_INLINE LoadedWeights copy_weights(torch::nn::Module& module, TensorFiles const& file,
                                         HeldParts const& held, TensorPlaces const& places) {
  at::NoGradGuard const no_gradients;
  LoadedWeights loaded;
  loaded.file = file.name();
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs;
  std::vector<std::pair<std::string, at::TensorImpl const*>> names;
  std::map<at::TensorImpl const*, TensorView> filled;
  visit_all_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
    names.emplace_back(name, tensor.unsafeGetTensorImpl());
    auto const view = file.find(name);
    if (!view) return;
    at::Tensor const saved = tensor_in_file(*view);
    if (!saved.defined() || saved.sizes() != whole_sizes(tensor)) {
      refuse_weights(file.name(), "'" + name + "' is " +
                                      (saved.defined() ? type_and_shape(saved)
                                                       : std::string(dtype_name(view->dtype))) +
                                      " there and " + type_and_shape(tensor) + " here");
    }
    auto const [tied, first] = filled.emplace(tensor.unsafeGetTensorImpl(), *view);
    if (first) {
      pairs.emplace_back(tensor, saved);
    } else if (tied->second.dtype != view->dtype ||
               !std::ranges::equal(tied->second.bytes, view->bytes)) {
      refuse_weights(file.name(), "'" + std::string(tied->second.name) + "' and '" + name +
                                      "' differ there and are one tied tensor here");
    }
  });
  // Programs that store a tied tensor once, under one of its names, fill the others with it.
  for (auto& [name, tensor] : names) {
    (filled.contains(tensor) ? loaded.matched : loaded.missing).push_back(std::move(name));
  }
  bool fits_others = false;
  for (auto const& [name, tensor] : places.tensors) {
    if (tensor.place != PlacedTensor::Place::elsewhere) continue;
    bool const has = file.find(name).has_value();
    (has ? loaded.matched : loaded.missing).push_back(name);
    fits_others = fits_others || has;
  }
  if (pairs.empty() && !fits_others) {
    refuse_weights(file.name(), "no tensor there has the name of a tensor here");
  }
  // Copy only after every tensor fits.
  for (auto& [tensor, saved] : pairs) {
    if (auto const part = held ? held(tensor) : std::nullopt) {
      part->copy_from(saved);
    } else {
      tensor.copy_(own_part(saved, tensor));
    }
  }
  loaded.unexpected = names_not_in(module, file, places);
  return loaded;
}

}  // namespace frugal::detail

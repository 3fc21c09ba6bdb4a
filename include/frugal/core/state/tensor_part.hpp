// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/libtorch/parameters.hpp>

namespace frugal {

/// A run of a tensor's elements, in the order in which they lie in memory: what one of several
/// processes holds of it.
///
///     archive("weight", tensor);                                      // a whole tensor
///     archive.part("exp_avg", mine, TensorPart::of(tensor, 0, 4096)); // its first elements
///
/// A checkpoint has whole tensors, so a run may go on with other parts, or with none.
struct TensorPart {
  std::vector<std::int64_t> sizes{};    ///< of the whole tensor
  std::vector<std::int64_t> strides{};  ///< of the whole tensor
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::size_t parameter = 0;  ///< which of the run's parameters has this shape and these parts

  static TensorPart of(at::Tensor const& whole, std::int64_t first, std::int64_t count,
                       std::size_t parameter = 0);

  std::int64_t whole_count() const;
  std::string text() const {
    return "elements " + std::to_string(first) + " to " + std::to_string(first + count) + " of " +
           std::to_string(whole_count());
  }
};

namespace detail {

/// All elements of a tensor without gaps, in the order of its memory.
at::Tensor in_memory_order(at::Tensor const& tensor);

}  // namespace detail

/// A parameter that a process has in part alone: the module's tensor is without values.
struct HeldPart {
  at::Tensor mine{};
  TensorPart which{};

  /// Takes its elements of a whole tensor.
  void copy_from(at::Tensor const& whole) const;
};
/// What a process has of a parameter, if that is a part.
using HeldParts = std::function<std::optional<HeldPart>(at::Tensor const&)>;

/// Makes a tensor whole of the parts that the processes hold, in the one that saves it; in the others,
/// which call it at the same moments, the result is undefined. It is new, or the part itself.
using WholeTensor = std::function<at::Tensor(at::Tensor const&, TensorPart const&)>;

/// Parts of parameters: this process's elements of each, as a tensor of one dimension.
struct ParameterParts {
  Parameters parameters{};
  std::vector<std::optional<TensorPart>> of{};  ///< nothing for a parameter that is there as it is
};

/// A parameter or buffer of a module that no process has as a whole module: see TensorPlaces.
struct PlacedTensor {
  enum class Place : std::uint8_t { here, elsewhere, everywhere };

  Place place = Place::everywhere;
  std::vector<std::int64_t> sizes{};
  bool trained = true;
  int type = 0;  ///< an at::ScalarType
};

/// Which processes have the tensors of a module that is divided among them, by name. Empty: each process
/// has all tensors.
///
/// A State keeps what it has for a tensor under the tensor's name, as a scope or as the last word:
///
///     policies/Optimize/2.weight/exp_avg      policies/Average/weights/2.weight
///
/// So a path says whose it is. Paths without such a name are the same in all processes.
class TensorPlaces {
 public:
  using Place = PlacedTensor::Place;
  std::map<std::string, PlacedTensor, std::less<>> tensors{};
  /// Names of the parameters, in the order of the whole module; of a parameter with several the first one.
  std::vector<std::string> order{};
  /// Whether this process saves what is here: of processes that have the same tensors, one does.
  bool writes = true;

  bool empty() const { return tensors.empty(); }
  /// Whether this process alone saves the tensor that a path names.
  bool saves(std::string_view path) const { return writes && is(Place::here, path); }
  bool is(Place place, std::string_view path) const {
    PlacedTensor const* const named = find(path);
    return named != nullptr && named->place == place;
  }
  /// The tensor that a path names; null if it names none. A tensor of some processes goes before one of
  /// all: a buffer of the module may be called "weights", as a scope is.
  PlacedTensor const* find(std::string_view path) const;

 private:
  /// Also of an item of a list: "2.weight.0".
  PlacedTensor const* named(std::string_view word) const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/state/tensor_part.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace frugal {

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
#include <frugal/core/state/tensor_places.ipp>
#endif

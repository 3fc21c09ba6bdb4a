// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/inline.hpp>

namespace frugal {

/// A parameter or buffer of a module that no process has as a whole module: see TensorPlaces.
struct PlacedTensor {
  enum class Place : std::uint8_t { here, elsewhere, everywhere };

  Place place = Place::everywhere;
  std::vector<std::int64_t> sizes{};
  c10::ScalarType type = c10::ScalarType::Undefined;
  bool trained = true;
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

  bool empty() const { return tensors.empty(); }
  bool is(Place place, std::string_view path) const {
    PlacedTensor const* const named = find(path);
    return named != nullptr && named->place == place;
  }
  /// The tensor that a path names; null if it names none.
  FRUGAL_INLINE PlacedTensor const* find(std::string_view path) const {
    for (std::size_t begin = 0; !tensors.empty() && begin <= path.size();) {
      std::size_t const end = std::min(path.find('/', begin), path.size());
      auto const found = tensors.find(path.substr(begin, end - begin));
      if (found != tensors.end()) return &found->second;
      begin = end + 1;
    }
    return nullptr;
  }
};

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <frugal/error.hpp>

namespace frugal::detail {

/// The windows that Rollback passes over, by epoch and position, and the search for one that is not
/// known: after a return each step is looked at, up to the one at which the fault was seen. The
/// window of the fault is passed over meanwhile, as a suspect.
class BadWindows {
 public:
  bool has(std::uint64_t epoch, std::uint64_t position) const;

  void add(std::uint64_t epoch, std::uint64_t position) { places_.push_back({epoch, position}); }

  bool searching() const { return until_ != nothing; }
  /// `at`: where the fault was seen; it is the suspect, if its position is known. `until`: step.
  void search(LossError::Window const& at, std::uint64_t until);
  /// It was this window, and the suspect is innocent.
  void found(LossError::Window const& at);
  /// Nothing was wrong after this step. At the last one the suspect is the only window left.
  void cleared(std::uint64_t step);

  template <class Archive>
  void persist(Archive& archive) {
    std::vector<std::uint64_t> flat;
    for (Place const& place : places_) flat.insert(flat.end(), {place.epoch, place.position});
    archive("skips", flat);
    if (Archive::loading) {
      places_.clear();
      for (std::size_t i = 0; i + 1 < flat.size(); i += 2) add(flat[i], flat[i + 1]);
    }
    persist_search(archive);
  }

 private:
  static constexpr std::uint64_t nothing = std::numeric_limits<std::uint64_t>::max();

  struct Place {
    std::uint64_t epoch, position;
    bool operator==(Place const&) const = default;
  };
  static constexpr Place nobody{nothing, nothing};

  // Written only during a search.
  template <class Archive>
  void persist_search(Archive& archive) {
    if constexpr (Archive::loading) {
      until_ = nothing;
      suspect_ = nobody;
      if (!archive.holds("search_until")) return;
    } else {
      if (!searching()) return;
    }
    archive("search_until", until_);
    archive.scope("suspect", [&](auto& inner) {
      inner("epoch", suspect_.epoch);
      inner("position", suspect_.position);
    });
  }

  std::vector<Place> places_;
  std::uint64_t until_ = nothing;  ///< step, in a search
  Place suspect_ = nobody;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/rollback/bad_windows.ipp>
#endif

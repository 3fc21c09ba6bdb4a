// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace frugal {

/// What training on a sample costs, for the dollars that a curation saves.
struct Price {
  double per_hour = 0;            ///< dollars for an hour of the machine
  double seconds_per_sample = 0;  ///< of training
  double seconds_per_byte = 0;    ///< of training, where cost depends on length

  bool operator==(Price const&) const = default;
};

/// A sample that a curation leaves out, and why.
struct Removed {
  std::uint64_t index = 0;  ///< in the set
  std::uint64_t twin = 0;   ///< the sample of its group that stays
  /// Jaccard similarity of the shingles with the twin, 1 for a copy; for images the share of equal
  /// bits. Below the threshold if the two are alike only `through` a third.
  double similarity = 0;
  bool copy = false;              ///< its bytes are those of the twin
  std::uint64_t through = 0;      ///< the alike sample that puts it into the group; else the twin
  double through_similarity = 0;  ///< with that one, at least the threshold
  std::uint64_t bytes = 0;        ///< of the sample

  bool operator==(Removed const&) const = default;
};

/// What a curation found: which samples of a set stay, and what went and why.
struct Curation {
  std::string name;           ///< of the set, for overrides
  std::string identity;       ///< of the set, empty if it has none
  std::string method;         ///< the settings in words
  std::uint64_t samples = 0;  ///< of the set
  std::uint64_t bytes = 0;    ///< of all samples
  Price price{};
  std::vector<Removed> removed{};  ///< ascending by index

  std::uint64_t candidates = 0;  ///< pairs that share a band
  std::uint64_t compared = 0;    ///< of these, pairs whose similarity was computed
  std::uint64_t spilled = 0;     ///< run files written

  std::uint64_t kept() const { return samples - removed.size(); }

  std::uint64_t removed_bytes() const;

  std::uint64_t copies() const;

  /// Dollars that an epoch without the removed samples saves; nothing without a price.
  std::optional<double> dollars_per_epoch() const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/curate/curation.ipp>
#endif

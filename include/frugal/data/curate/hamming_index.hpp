// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// Finds all 64-bit hashes within a Hamming distance of a given one, without looking at all of
/// them.
///
/// Each hash is split into four parts of 16 bits. Two hashes that differ in k bits differ in at
/// most k / 4 bits in one of the parts, so only hashes with such a part are compared.
///
/// Source  Norouzi, Punjani, Fleet, "Fast search in Hamming space with multi-index hashing", CVPR
///         2012.
/// Cost    24 bytes a hash and 1 MiB. A lookup reads 4 lists for k below 4, 68 below 8, 548 below
///         12, each with 1 / 65,536 of evenly spread hashes.
/// Errors  SettingsError for 2^32 hashes or more.
class HammingIndex {
 public:
  explicit HammingIndex(std::vector<std::uint64_t> hashes) : hashes_(std::move(hashes)) {
    if (hashes_.size() > std::numeric_limits<std::uint32_t>::max()) {
      throw SettingsError({.what = std::to_string(hashes_.size()) + " hashes in one index",
                           .where = "HammingIndex",
                           .why = "it numbers them with 32 bits",
                           .fix = "Split the set."});
    }
    for (std::size_t part = 0; part < parts; ++part) {
      // A counting sort by the value of the part: stable, so that lists are ascending.
      auto& begins = begins_[part];
      begins.assign(values + 1, 0);
      for (std::uint64_t const hash : hashes_) ++begins[value_of(hash, part) + 1];
      for (std::size_t i = 1; i <= values; ++i) begins[i] += begins[i - 1];
      std::vector<std::uint32_t> next(begins.begin(), begins.end() - 1);
      listed_[part].resize(hashes_.size());
      for (std::uint32_t i = 0; i < hashes_.size(); ++i) {
        listed_[part][next[value_of(hashes_[i], part)]++] = i;
      }
    }
  }

  std::size_t size() const { return hashes_.size(); }
  std::span<std::uint64_t const> hashes() const { return hashes_; }

  /// The places of all hashes at most `distance` bits from this one, ascending, each once.
  std::vector<std::uint32_t> within(std::uint64_t hash, unsigned distance) const {
    std::vector<std::uint32_t> found;
    for (std::size_t part = 0; part < parts; ++part) {
      each_within(
          static_cast<std::uint32_t>(value_of(hash, part)), distance / parts, 0,
          [&](std::uint32_t value) {
            auto const& list = listed_[part];
            for (std::size_t i = begins_[part][value]; i < begins_[part][value + 1]; ++i) {
              if (static_cast<unsigned>(std::popcount(hashes_[list[i]] ^ hash)) <= distance) {
                found.push_back(list[i]);
              }
            }
          });
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

 private:
  static constexpr unsigned parts = 4;
  static constexpr unsigned bits = 16;
  static constexpr std::size_t values = std::size_t{1} << bits;

  static std::size_t value_of(std::uint64_t hash, std::size_t part) {
    return static_cast<std::size_t>(hash >> (bits * part)) & (values - 1);
  }

  /// All values with at most `flips` bits from `from` on changed, each once.
  template <class Visit>
  static void each_within(std::uint32_t value, unsigned flips, unsigned from, Visit const& visit) {
    visit(value);
    if (flips == 0) return;
    for (unsigned bit = from; bit < bits; ++bit) {
      each_within(value ^ (1U << bit), flips - 1, bit + 1, visit);
    }
  }

  std::vector<std::uint64_t> hashes_;
  std::array<std::vector<std::uint32_t>, parts> begins_;  // of each value's list
  std::array<std::vector<std::uint32_t>, parts> listed_;  // places in hashes_, by the value
};

}  // namespace frugal

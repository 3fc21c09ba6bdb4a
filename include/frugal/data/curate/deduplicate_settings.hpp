// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <xxhash.h>

#include <frugal/base/number_text.hpp>
#include <frugal/data/curate/curation.hpp>
#include <frugal/data/curate/shingles.hpp>
#include <frugal/data/curate/twins.hpp>
#include <frugal/error.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <utility>

namespace frugal {

/// Locality-sensitive hashing of MinHash signatures: two texts are candidates if all hashes of at
/// least one band are equal.
///
/// Source  Leskovec, Rajaraman, Ullman, "Mining of Massive Datasets", section 3.4.
struct Bands {
  std::uint32_t bands = 20;  ///< at least 1
  std::uint32_t rows = 13;   ///< hashes of a band, at least 1

  /// Hashes of a signature.
  constexpr std::uint32_t hashes() const { return bands * rows; }

  /// How likely two texts of this similarity become candidates: 1 - (1 - s^rows)^bands, the
  /// S-curve.
  double recall(double similarity) const {
    return 1 - std::pow(1 - std::pow(similarity, rows), bands);
  }

  /// What two texts share if they share the band: a hash of its rows and its number.
  std::uint64_t key(std::span<std::uint32_t const> signature, std::uint32_t band) const {
    auto const of_band = signature.subspan(std::size_t{band} * rows, rows);
    return XXH3_64bits_withSeed(of_band.data(), of_band.size_bytes(), band);
  }
};

/// Settings of deduplicate().
struct Deduplicate {
  std::string name{};      ///< of the set, in the report and for overrides
  bool near = true;        ///< near-duplicates as well as copies
  Shingles shingles{};     ///< what the similarity of texts is measured in
  Bands bands{};           ///< how candidates are found: 260 hashes in 20 bands
  double threshold = 0.8;  ///< least Jaccard similarity of near-duplicates, above 0, at most 1
  KeepSample keep = KeepSample::first;  ///< which sample of a group stays
  std::uint64_t seed = 0;               ///< of the hash functions
  unsigned threads = 0;                 ///< 0: one for each core
  /// Bytes for hashes and candidates, at least 65,536; more goes to files.
  std::uint64_t memory = std::uint64_t{1} << 30;
  std::filesystem::path
      spill{};  ///< folder for these files; empty: the system's for temporary ones
  /// The number of earlier samples of the same band key that a sample is compared with, besides the
  /// first: a limit of work for many samples that are all alike.
  std::uint32_t bucket_reach = 32;
  Price price{};  ///< for the dollars of the report
  std::filesystem::path
      data{};  ///< where the set lies: a file or folder that may be marked curated
  std::string even_if_curated{};  ///< the name of a curated set, to deduplicate it all the same
};

namespace detail {

[[noreturn]] inline void refuse_setting(std::string const& setting, std::string what,
                                        std::string fix) {
  throw SettingsError({.what = std::move(what),
                       .where = "Deduplicate::" + setting,
                       .why = "",
                       .fix = std::move(fix)});
}

/// The settings with their defaults filled in. SettingsError for one out of range.
inline Deduplicate checked(Deduplicate settings) {
  if (!(settings.threshold > 0 && settings.threshold <= 1)) {
    refuse_setting("threshold", "a similarity of " + detail::general(settings.threshold, 6),
                   "Set a number above 0 and at most 1; 0.8 is usual.");
  }
  std::uint64_t const hashes = std::uint64_t{settings.bands.bands} * settings.bands.rows;
  if (hashes == 0 || hashes > 65536) {
    refuse_setting("bands",
                   std::to_string(settings.bands.bands) + " bands of " +
                       std::to_string(settings.bands.rows) + " hashes",
                   "Set 1 to 65,536 hashes in all; 20 bands of 13 are usual.");
  }
  if (settings.memory < 65536) {
    refuse_setting("memory", "a limit of " + std::to_string(settings.memory) + " bytes",
                   "Set 65,536 bytes or more.");
  }
  if (settings.bucket_reach == 0) {
    refuse_setting("bucket_reach", "comparisons with 0 samples", "Set 1 or more.");
  }
  if (settings.spill.empty()) {
    std::error_code ignored;
    settings.spill = std::filesystem::temp_directory_path(ignored);
    if (ignored) settings.spill = "/tmp";
  }
  return settings;
}

/// What the report says about how it came to be.
inline std::string method_of(Deduplicate const& settings) {
  std::string const stays = settings.keep == KeepSample::first ? "the first of a group stays"
                                                               : "the longest of a group stays";
  if (!settings.near) return "copies by XXH3-128; " + stays;
  std::string const similarity = detail::general(settings.threshold, 6);
  return "copies by XXH3-128; near-duplicates by shingles of " +
         std::to_string(settings.shingles.length) +
         (settings.shingles.of == ShingleOf::words ? " words" : " characters") +
         (settings.shingles.fold ? ", folded, " : ", as written, ") +
         std::to_string(settings.bands.hashes()) + " MinHashes in " +
         std::to_string(settings.bands.bands) + " bands of " + std::to_string(settings.bands.rows) +
         ", Jaccard similarity of at least " + similarity + ", verified; " + stays;
}

}  // namespace detail

}  // namespace frugal

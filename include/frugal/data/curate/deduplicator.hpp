// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/data/curate/curation.hpp>
#include <frugal/data/curate/in_chunks.hpp>
#include <frugal/data/curate/minhash.hpp>
#include <frugal/data/curate/spill_sort.hpp>
#include <frugal/data/curate/twins.hpp>
#include <frugal/error.hpp>

#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

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

/// XXH3 of a sample's bytes, 128 bits: equal for equal bytes. Of a million million different
/// samples two have the same hash with a probability of 10^-15. It detects copies, not forgeries.
struct ContentHash {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  friend auto operator<=>(ContentHash const&, ContentHash const&) = default;
};

inline ContentHash content_hash(std::string_view bytes) {
  XXH128_hash_t const hash = XXH3_128bits(bytes.data(), bytes.size());
  return {.high = hash.high64, .low = hash.low64};
}

/// 32 lower-case hexadecimal digits, as `xxh128sum` prints them.
inline std::string hex_of(ContentHash const& hash) { return hex_of(hash.high) + hex_of(hash.low); }

}  // namespace frugal

namespace frugal::detail {

/// Reads the text of a sample; called by several threads.
using TextAt = std::function<std::string(std::uint64_t)>;

/// What deduplicate() does, for any set. Three external sorts follow each other: content hashes
/// find copies, band keys find candidates, and the sorted candidates are compared. Sorting also
/// makes the result independent of threads and memory.
class Deduplicator {
 public:
  Deduplicator(Deduplicate const& settings, std::uint64_t samples, TextAt text)
      : settings_(settings),
        text_(std::move(text)),
        threads_(threads_or_cores(settings.threads)),
        hashes_(settings.bands.hashes(), settings.seed),
        folder_(settings.spill),
        is_copy_(samples) {
    out_.samples = samples;
    for (unsigned i = 0; i < threads_; ++i) workers_.emplace_back(settings_);
  }

  Curation run() {
    find_copies_and_candidates();
    if (settings_.near) compare_candidates();
    list_removed();
    out_.spilled = folder_.runs();
    return std::move(out_);
  }

 private:
  struct Content {
    ContentHash hash;
    std::uint64_t index = 0;
    friend auto operator<=>(Content const&, Content const&) = default;
  };
  struct InBand {
    std::uint64_t key = 0;
    std::uint64_t index = 0;
    friend auto operator<=>(InBand const&, InBand const&) = default;
  };
  struct Pair {
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    friend auto operator<=>(Pair const&, Pair const&) = default;
  };
  /// The buffers of a thread.
  struct Worker {
    explicit Worker(Deduplicate const& settings)
        : first(settings.shingles), second(settings.shingles), signature(settings.bands.hashes()) {}
    Shingler first, second;
    std::vector<std::uint32_t> signature, least;
    std::uint64_t bytes = 0;
  };

  // Shares of the memory: a sample has 24 bytes of content and 16 for each band; candidates are
  // few.
  std::uint64_t share(std::uint64_t eighths) const { return settings_.memory / 8 * eighths; }

  void find_copies_and_candidates() {
    SpillSort<Content> contents(folder_, share(1), threads_);
    SpillSort<InBand> bands(folder_, share(5), threads_);
    in_chunks(out_.samples, 64, threads_, [&](unsigned thread, auto begin, auto end) {
      for (std::uint64_t index = begin; index < end; ++index) {
        scan(thread, index, contents, bands);
      }
    });
    for (Worker const& each : workers_) out_.bytes += each.bytes;
    std::optional<Content> first;
    contents.visit([&](Content const& each) {
      if (!first || each.hash != first->hash) {
        first = each;
        return;
      }
      is_copy_[static_cast<std::size_t>(each.index)] = true;
      alike_.push_back({.a = first->index, .b = each.index, .similarity = 1, .copy = true});
    });
    if (!settings_.near) return;
    pairs_.emplace(folder_, share(2), 1);
    Bucket bucket;
    bands.visit([&](InBand const& each) {
      // Copies are known already, and would fill their buckets.
      if (!is_copy_[static_cast<std::size_t>(each.index)]) pair_up(bucket, each);
    });
  }

  void scan(unsigned thread, std::uint64_t index, SpillSort<Content>& contents,
            SpillSort<InBand>& bands) {
    Worker& worker = workers_[thread];
    std::string const text = text_(index);
    worker.bytes += text.size();
    contents.add(thread, {.hash = content_hash(text), .index = index});
    if (!settings_.near) return;
    auto const shingles = worker.first.of(text);
    if (shingles.empty()) return;
    hashes_.signature(shingles, worker.signature, worker.least);
    for (std::uint32_t band = 0; band < settings_.bands.bands; ++band) {
      bands.add(thread, {.key = settings_.bands.key(worker.signature, band), .index = index});
    }
  }

  /// The samples of one band key so far: the first, and the last `bucket_reach` in a ring.
  struct Bucket {
    std::uint64_t key = 0;
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::vector<std::uint64_t> ring{};
  };

  void pair_up(Bucket& bucket, InBand const& each) {
    if (bucket.count == 0 || bucket.key != each.key)
      bucket = {.key = each.key, .first = each.index};
    auto const reach = std::uint64_t{settings_.bucket_reach};
    if (bucket.count > reach) pairs_->add(0, {bucket.first, each.index});
    for (std::uint64_t const other : bucket.ring) pairs_->add(0, {other, each.index});
    if (bucket.ring.size() < reach) {
      bucket.ring.push_back(each.index);
    } else {
      bucket.ring[static_cast<std::size_t>(bucket.count % reach)] = each.index;
    }
    ++bucket.count;
  }

  void compare_candidates() {
    std::vector<Pair> batch;
    std::optional<Pair> last;
    pairs_->visit([&](Pair const& pair) {
      if (last == pair) return;
      last = pair;
      ++out_.candidates;
      // Both are in one group already: a comparison could add nothing.
      if (groups_.find(pair.a) == groups_.find(pair.b)) return;
      batch.push_back(pair);
      if (batch.size() == 4096) compare(batch);
    });
    compare(batch);
    pairs_.reset();
  }

  void compare(std::vector<Pair>& batch) {
    std::vector<double> const similar = similarities(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (similar[i] < settings_.threshold || !groups_.join(batch[i].a, batch[i].b)) continue;
      alike_.push_back({.a = batch[i].a, .b = batch[i].b, .similarity = similar[i]});
    }
    out_.compared += batch.size();
    batch.clear();
  }

  /// Exact, from the texts. Pairs come sorted, so the first of each is mostly that of the last.
  std::vector<double> similarities(std::vector<Pair> const& pairs) {
    std::vector<double> out(pairs.size());
    in_chunks(pairs.size(), 32, threads_, [&](unsigned thread, auto begin, auto end) {
      Worker& worker = workers_[thread];
      std::span<std::uint64_t const> first;
      for (auto i = static_cast<std::size_t>(begin); i < end; ++i) {
        if (i == begin || pairs[i].a != pairs[i - 1].a) {
          first = worker.first.set_of(text_(pairs[i].a));
        }
        out[i] = jaccard(first, worker.second.set_of(text_(pairs[i].b)));
      }
    });
    return out;
  }

  void list_removed() {
    Twins const twins(std::move(alike_));
    auto const samples = twins.samples();
    std::vector<std::uint64_t> bytes(samples.size());
    in_chunks(samples.size(), 64, threads_, [&](unsigned, auto begin, auto end) {
      for (auto i = static_cast<std::size_t>(begin); i < end; ++i)
        bytes[i] = text_(samples[i]).size();
    });
    out_.removed = twins.removed(bytes, settings_.keep);
    std::vector<Pair> unknown;
    for (Removed const& each : out_.removed) {
      if (std::isnan(each.similarity)) unknown.push_back({each.twin, each.index});
    }
    std::vector<double> const similar = similarities(unknown);
    std::size_t next = 0;
    for (Removed& each : out_.removed) {
      if (std::isnan(each.similarity)) each.similarity = similar[next++];
    }
  }

  Deduplicate settings_;
  TextAt text_;
  unsigned threads_;
  MinHash hashes_;
  SpillFolder folder_;
  std::vector<bool> is_copy_;
  std::vector<Worker> workers_;
  std::optional<SpillSort<Pair>> pairs_;
  Groups groups_;
  std::vector<Alike> alike_;
  Curation out_;
};

}  // namespace frugal::detail

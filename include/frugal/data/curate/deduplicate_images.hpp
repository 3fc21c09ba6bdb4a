// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/curate/curation.hpp>
#include <frugal/data/curate/deduplicate.hpp>
#include <frugal/data/curate/in_chunks.hpp>
#include <frugal/data/curate/perceptual_hash.hpp>
#include <frugal/data/curate/twins.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// Which perceptual hash compares images.
enum class ImageHash : std::uint8_t {
  difference,  ///< dHash: fast; scale, brightness, contrast
  frequency,   ///< pHash: compression and small edits as well
};

/// Settings of deduplicate_images().
struct DeduplicateImages {
  std::string name{};                      ///< of the set, in the report and for overrides
  ImageHash hash = ImageHash::difference;  ///< what is compared
  unsigned distance = 4;                   ///< most bits of 64 that differ, at most 11
  KeepSample keep = KeepSample::first;     ///< which image of a group stays; longest: most pixels
  unsigned threads = 0;                    ///< 0: one for each core
  Price price{};                           ///< for the dollars of the report
  std::filesystem::path data{};            ///< where the set lies: it may be marked curated
  std::string even_if_curated{};           ///< the name of a curated set, to thin it all the same
};

/// The image of a sample that is one already.
struct AsImage {
  GreyImage const& operator()(GreyImage const& image) const { return image; }
};

namespace detail {

using ImageAt = std::function<GreyImage(std::uint64_t)>;

/// What deduplicate_images() does, for any set.
class ImageDeduplicator {
 public:
  ImageDeduplicator(DeduplicateImages const& settings, std::uint64_t images, ImageAt image)
      : settings_(settings),
        image_(std::move(image)),
        threads_(threads_or_cores(settings.threads)) {
    out_.samples = images;
  }

  Curation run() {
    hash_all();
    HammingIndex const index(distinct());
    // In batches, so that lists of neighbours are few at a time.
    constexpr std::uint64_t batch = 1U << 14;
    std::vector<std::vector<std::uint32_t>> near(batch);
    for (std::uint64_t begin = 0; begin < index.size(); begin += batch) {
      std::uint64_t const count = std::min(batch, index.size() - begin);
      in_chunks(count, 64, threads_, [&](unsigned, std::uint64_t from, std::uint64_t to) {
        for (auto i = static_cast<std::size_t>(from); i < to; ++i) {
          near[i] =
              index.within(index.hashes()[static_cast<std::size_t>(begin) + i], settings_.distance);
        }
      });
      for (std::size_t i = 0; i < count; ++i)
        join_neighbours(static_cast<std::size_t>(begin) + i, near[i]);
    }
    list_removed();
    return std::move(out_);
  }

 private:
  struct Hashed {
    std::uint64_t hash = 0;
    std::uint64_t index = 0;
    auto operator<=>(Hashed const&) const = default;
  };

  void hash_all() {
    hashed_.resize(static_cast<std::size_t>(out_.samples));
    std::vector<std::uint64_t> bytes(threads_);
    in_chunks(out_.samples, 16, threads_,
              [&](unsigned thread, std::uint64_t begin, std::uint64_t end) {
                for (std::uint64_t i = begin; i < end; ++i) {
                  GreyImage const image = image_(i);
                  bytes[thread] += image.pixels.size();
                  hashed_[static_cast<std::size_t>(i)] = {hash_of(image), i};
                }
              });
    for (std::uint64_t const each : bytes) out_.bytes += each;
  }

  std::uint64_t hash_of(GreyImage const& image) const {
    return settings_.hash == ImageHash::difference ? difference_hash(image) : frequency_hash(image);
  }

  /// Every hash once, by the first image that has it; images of one hash are joined at once. A
  /// thousand blank images would otherwise be each other's neighbours.
  std::vector<std::uint64_t> distinct() {
    std::sort(hashed_.begin(), hashed_.end());
    std::vector<Hashed> firsts;
    for (Hashed const& each : hashed_) {
      if (firsts.empty() || firsts.back().hash != each.hash) {
        firsts.push_back(each);
      } else {
        join(firsts.back(), each);
      }
    }
    std::sort(firsts.begin(), firsts.end(),
              [](Hashed const& a, Hashed const& b) { return a.index < b.index; });
    hashed_ = std::move(firsts);
    std::vector<std::uint64_t> hashes;
    for (Hashed const& each : hashed_) hashes.push_back(each.hash);
    return hashes;
  }

  void join_neighbours(std::size_t place, std::vector<std::uint32_t> const& near) {
    for (std::uint32_t const other : near) {
      if (other < place) join(hashed_[other], hashed_[place]);
    }
  }

  void join(Hashed const& a, Hashed const& b) {
    ++out_.compared;
    if (!groups_.join(a.index, b.index)) return;
    alike_.push_back({.a = a.index, .b = b.index, .similarity = hash_similarity(a.hash, b.hash)});
  }

  void list_removed() {
    out_.candidates = out_.compared;
    in_chunks(alike_.size(), 16, threads_, [&](unsigned, std::uint64_t begin, std::uint64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < end; ++i) {
        if (alike_[i].similarity < 1) continue;
        GreyImage const a = image_(alike_[i].a), b = image_(alike_[i].b);
        alike_[i].copy = a.width == b.width && a.pixels == b.pixels;
      }
    });
    Twins const twins(std::move(alike_));
    auto const samples = twins.samples();
    std::vector<std::uint64_t> bytes(samples.size()), hashes(samples.size());
    in_chunks(samples.size(), 16, threads_, [&](unsigned, std::uint64_t begin, std::uint64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < end; ++i) {
        GreyImage const image = image_(samples[i]);
        bytes[i] = image.pixels.size();
        hashes[i] = hash_of(image);
      }
    });
    auto const hash = [&](std::uint64_t sample) {
      auto const at = std::lower_bound(samples.begin(), samples.end(), sample);
      return hashes[static_cast<std::size_t>(at - samples.begin())];
    };
    out_.removed = twins.removed(bytes, settings_.keep);
    for (Removed& each : out_.removed) {
      each.similarity = hash_similarity(hash(each.index), hash(each.twin));
    }
  }

  DeduplicateImages settings_;
  ImageAt image_;
  unsigned threads_;
  std::vector<Hashed> hashed_;
  Groups groups_;
  std::vector<Alike> alike_;
  Curation out_;
};

}  // namespace detail

/// Finds images that look alike: perceptual hashes at most `distance` bits apart. `image` gives the
/// grey image of a sample. One of each group stays; chains are one group. The result is the same
/// for any number of threads.
///
/// Images without structure, such as blank ones, have the same hash whatever their shade: look at
/// the report before you train on less.
///
/// Memory  about 60 bytes an image.
/// Errors  SettingsError for a distance above 11, and for a set that is marked as curated unless
///         `even_if_curated` is its name; DataError for an image without pixels; what the set
///         throws.
template <SampleSet Set, class Image = AsImage>
Curation deduplicate_images(Set const& set, DeduplicateImages const& settings,
                            Image const& image = {}) {
  constexpr bool is_image = requires(std::uint64_t index) {
    { std::invoke(image, set.get(index)) } -> std::convertible_to<GreyImage>;
  };
  static_assert(is_image,
                "frugal: a sample of this set is no GreyImage, or not read by index. Give "
                "deduplicate_images a function that makes one of it: `deduplicate_images(set, "
                "settings, [](Sample const& s) { return GreyImage{pixels, height, width}; })`.");
  if (settings.distance > 11) {
    throw SettingsError({.what = "a distance of " + std::to_string(settings.distance) + " bits",
                         .where = "DeduplicateImages::distance",
                         .why = "images that differ in more than 11 bits of 64 are not alike",
                         .fix = "Set 0 to 11; 4 is usual."});
  }
  if constexpr (CuratedSet<Set>) {
    std::string const name = set.curated();
    if (!name.empty()) detail::refuse_curated({.name = name, .why = ""}, settings.even_if_curated);
  }
  if (!settings.data.empty()) {
    if (auto const mark = curated_mark(settings.data)) {
      detail::refuse_curated(*mark, settings.even_if_curated);
    }
  }
  Curation out;
  if constexpr (is_image) {
    out = detail::ImageDeduplicator(settings, set.size(), [&](std::uint64_t index) {
            return GreyImage(std::invoke(image, set.get(index)));
          }).run();
  }
  out.name = settings.name;
  out.identity = detail::identity_text(set);
  out.method = std::string(settings.hash == ImageHash::difference ? "dHash" : "pHash") +
               " of 64 bits, of which at most " + std::to_string(settings.distance) + " differ; " +
               (settings.keep == KeepSample::first ? "the first" : "the largest") +
               " of a group stays";
  out.price = settings.price;
  return out;
}

}  // namespace frugal

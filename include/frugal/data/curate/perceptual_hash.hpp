// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// A grey image: [height, width] bytes, row by row, whatever decoded it. Colors become grey by
/// their luma, 0.299 R + 0.587 G + 0.114 B.
struct GreyImage {
  std::vector<std::uint8_t> pixels;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
};

/// Equal bits of two perceptual hashes, as a share: 1 - Hamming distance / 64.
inline double hash_similarity(std::uint64_t a, std::uint64_t b) {
  return 1 - std::popcount(a ^ b) / 64.0;
}

namespace detail {

/// An image shrunk by area averaging, as sums over the cells: each cell has the same area, so sums
/// compare as averages do. In integers, so that every machine gives the same hash.
template <std::uint32_t Height, std::uint32_t Width>
std::array<std::uint64_t, std::size_t{Height} * Width> shrunk(GreyImage const& image) {
  std::uint64_t const size = std::uint64_t{image.height} * image.width;
  if (size == 0 || image.pixels.size() != size) {
    throw DataError({.what = "an image of " + std::to_string(image.pixels.size()) + " pixels",
                     .where = "perceptual hash",
                     .why = "its height is " + std::to_string(image.height) + " and its width " +
                            std::to_string(image.width),
                     .fix = "Give height times width bytes, at least one."});
  }
  std::array<std::uint64_t, std::size_t{Height} * Width> out{};
  // Along one axis a pixel reaches from cells * i to cells * (i + 1), a cell from size * k to
  // size * (k + 1): the part of a pixel in a cell is then a whole number.
  auto const each_part = [](std::uint64_t pixel, std::uint64_t pixels, std::uint64_t cells,
                            auto visit) {
    std::uint64_t at = pixel * cells;
    std::uint64_t const end = at + cells;
    while (at < end) {
      std::uint64_t const cell = at / pixels;
      std::uint64_t const next = std::min(end, (cell + 1) * pixels);
      visit(cell, next - at);
      at = next;
    }
  };
  std::array<std::uint64_t, Width> row;
  for (std::uint64_t y = 0; y < image.height; ++y) {
    row.fill(0);
    for (std::uint64_t x = 0; x < image.width; ++x) {
      std::uint64_t const value = image.pixels[static_cast<std::size_t>(y * image.width + x)];
      each_part(x, image.width, Width, [&](std::uint64_t cell, std::uint64_t part) {
        row[static_cast<std::size_t>(cell)] += value * part;
      });
    }
    each_part(y, image.height, Height, [&](std::uint64_t cell, std::uint64_t part) {
      for (std::size_t x = 0; x < Width; ++x) {
        out[static_cast<std::size_t>(cell) * Width + x] += row[x] * part;
      }
    });
  }
  return out;
}

}  // namespace detail

/// dHash, 64 bits: whether each of 8 x 9 cells is darker than the one to its right. The first row's
/// first pair is the highest bit. Robust to scale, brightness and contrast.
///
/// Source  Krawetz, "Kind of like that", 2013; Python's imagehash, with area averaging.
/// Errors  DataError for an image without pixels, or with another number than height times width.
inline std::uint64_t difference_hash(GreyImage const& image) {
  auto const cells = detail::shrunk<8, 9>(image);
  std::uint64_t hash = 0;
  for (std::size_t y = 0; y < 8; ++y) {
    for (std::size_t x = 0; x < 8; ++x) {
      hash = hash << 1U | static_cast<std::uint64_t>(cells[y * 9 + x + 1] > cells[y * 9 + x]);
    }
  }
  return hash;
}

/// pHash, 64 bits: which of the lowest 8 x 8 frequencies of the 32 x 32 image are above their
/// median. Robust to compression and small edits too; a few times slower than dHash.
///
/// Source  Zauner, "Implementation and benchmarking of perceptual image hash functions", 2010;
///         Python's imagehash, with area averaging.
/// Errors  as difference_hash.
inline std::uint64_t frequency_hash(GreyImage const& image) {
  constexpr std::size_t n = 32, low = 8;
  auto const cells = detail::shrunk<n, n>(image);
  static auto const cosines = [] {
    std::array<double, low * n> table;
    for (std::size_t k = 0; k < low; ++k) {
      for (std::size_t i = 0; i < n; ++i) {
        table[k * n + i] = std::cos(std::numbers::pi / n * (static_cast<double>(i) + 0.5) *
                                    static_cast<double>(k));
      }
    }
    return table;
  }();
  // Sums of cells grow with the image: averages keep the frequencies comparable, and exact.
  double const area = static_cast<double>(image.height) * image.width;
  std::array<double, low * n> rows{};
  for (std::size_t k = 0; k < low; ++k) {
    for (std::size_t y = 0; y < n; ++y) {
      for (std::size_t x = 0; x < n; ++x) {
        rows[k * n + x] += cosines[k * n + y] * (static_cast<double>(cells[y * n + x]) / area);
      }
    }
  }
  std::array<double, low * low> frequencies{};
  for (std::size_t k = 0; k < low; ++k) {
    for (std::size_t l = 0; l < low; ++l) {
      for (std::size_t x = 0; x < n; ++x) {
        frequencies[k * low + l] += rows[k * n + x] * cosines[l * n + x];
      }
    }
  }
  // Cancellation leaves about 1e-13 of what should be 0: without this a flat image has random bits.
  double const smallest = 1e-9 * std::abs(frequencies[0]);
  for (double& each : frequencies) each = std::abs(each) < smallest ? 0 : each;
  auto sorted = frequencies;
  std::sort(sorted.begin(), sorted.end());
  double const median = (sorted[31] + sorted[32]) / 2;
  std::uint64_t hash = 0;
  for (double const each : frequencies)
    hash = hash << 1U | static_cast<std::uint64_t>(each > median);
  return hash;
}

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

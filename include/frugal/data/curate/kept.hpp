// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace frugal {

/// Which samples of a set are kept: the i-th of them without a search through all.
///
/// A bit for each sample of the set, the number of kept samples before each block of 512, and the
/// block of every 512th kept sample (rank and select; Jacobson, "Space-efficient static trees and
/// graphs", FOCS 1989).
///
/// Cost    1.25 bits for each sample of the set. A lookup reads a few words; where thousands of
///         samples in a row are removed, a search over the blocks between two entries is added.
/// Errors  StateError for removed indices that are not ascending, or not in the set.
class Kept {
 public:
  Kept() = default;

  /// Keeps all of `samples` but the removed ones; `index_of(r)` is the index of a removed one.
  template <class Removed, class IndexOf>
  Kept(std::uint64_t samples, Removed const& removed, IndexOf const& index_of)
      : words_(static_cast<std::size_t>((samples + 63) / 64), ~std::uint64_t{0}) {
    if (samples % 64 != 0) words_.back() = (std::uint64_t{1} << (samples % 64)) - 1;
    std::uint64_t next = 0;
    for (auto const& each : removed) {
      std::uint64_t const index = index_of(each);
      if (index < next || index >= samples) refuse(index, samples);
      words_[static_cast<std::size_t>(index / 64)] &= ~(std::uint64_t{1} << (index % 64));
      next = index + 1;
    }
    count();
  }

  std::uint64_t size() const { return size_; }

  /// The index in the set of kept sample i, which is below size().
  std::uint64_t operator[](std::uint64_t i) const {
    std::size_t const hint = static_cast<std::size_t>(i / block_bits);
    auto const first = before_.begin() + static_cast<std::ptrdiff_t>(block_of_[hint]);
    auto const last = before_.begin() + static_cast<std::ptrdiff_t>(block_of_[hint + 1]) + 1;
    // The last block with at most i kept samples before it.
    auto const block =
        static_cast<std::size_t>(std::upper_bound(first, last, i) - before_.begin()) - 1;
    std::uint64_t left = i - before_[block];
    std::size_t word = block * block_words;
    for (;; ++word) {
      auto const here = static_cast<std::uint64_t>(std::popcount(words_[word]));
      if (left < here) break;
      left -= here;
    }
    std::uint64_t bits = words_[word];
    for (; left > 0; --left) bits &= bits - 1;
    return std::uint64_t{word} * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
  }

  bool contains(std::uint64_t index) const {
    return index / 64 < words_.size() &&
           (words_[static_cast<std::size_t>(index / 64)] >> (index % 64) & 1U) != 0;
  }

 private:
  static constexpr std::uint64_t block_bits = 512;
  static constexpr std::size_t block_words = block_bits / 64;

  void count() {
    for (std::size_t word = 0; word < words_.size(); ++word) {
      if (word % block_words == 0) before_.push_back(size_);
      auto const after = size_ + static_cast<std::uint64_t>(std::popcount(words_[word]));
      // Every 512th kept sample lies in this block.
      while (block_of_.size() * block_bits < after) block_of_.push_back(before_.size() - 1);
      size_ = after;
    }
    block_of_.push_back(before_.empty() ? 0 : before_.size() - 1);
  }

  [[noreturn]] static void refuse(std::uint64_t index, std::uint64_t samples) {
    throw StateError({.what = "sample " + std::to_string(index) + " cannot be left out",
                      .where = "a set of " + std::to_string(samples) + " samples",
                      .why = "it is not in the set, or not behind the one before it",
                      .fix = "Give ascending indices of the set."});
  }

  std::uint64_t size_ = 0;
  std::vector<std::uint64_t> words_;     // a bit for each sample
  std::vector<std::uint64_t> before_;    // kept samples before each block
  std::vector<std::uint64_t> block_of_;  // of kept samples 0, 512, 1024, ...
};

}  // namespace frugal

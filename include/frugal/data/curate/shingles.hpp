// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/utf8.hpp>
#include <frugal/error.hpp>

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace frugal {

/// What a shingle is a run of.
enum class ShingleOf : std::uint8_t { words, characters };

/// Which shingles (n-grams) a text has; two texts are alike if they share most of them.
struct Shingles {
  ShingleOf of = ShingleOf::words;
  std::uint32_t length = 5;  ///< words or characters of a shingle, at least 1
  /// Ignore the case of ASCII letters and how much white space there is; between words also ASCII
  /// punctuation. Without it, words are what white space separates, and characters are as they
  /// come.
  bool fold = true;
};

/// The shingles of texts, as 64-bit hashes. One object per thread: it reuses its buffers.
///
/// A text with fewer words or characters than a shingle is one shingle; a text without any has
/// none. Bytes that are not ASCII count as letters. Characters are UTF-8 code points; in a text
/// that is not UTF-8, a byte from 80 to bf belongs to the character before it.
///
/// Errors  SettingsError for a length of 0.
class Shingler {
 public:
  explicit Shingler(Shingles const& shingles = {}) : settings_(shingles) {
    if (settings_.length != 0) return;
    throw SettingsError({.what = "a shingle of 0 words or characters",
                         .where = "Shingles::length",
                         .why = "every text would have the same shingles",
                         .fix = "Set 1 or more; 5 is usual."});
  }

  /// In the order of the text, repeated ones included; valid until the next call.
  std::span<std::uint64_t const> of(std::string_view text) {
    settings_.of == ShingleOf::words ? split_words(text) : split_characters(text);
    hashes_.clear();
    std::size_t const count = begins_.size();
    if (count == 0) return {};
    std::size_t const length = std::min<std::size_t>(settings_.length, count);
    std::size_t const gap = settings_.of == ShingleOf::words ? 1 : 0;  // the space after a word
    begins_.push_back(folded_.size() + gap);
    for (std::size_t i = 0; i + length <= count; ++i) {
      std::size_t const size = begins_[i + length] - gap - begins_[i];
      hashes_.push_back(XXH3_64bits(folded_.data() + begins_[i], size));
    }
    return hashes_;
  }

  /// As a set: ascending, each once; valid until the next call.
  std::span<std::uint64_t const> set_of(std::string_view text) {
    of(text);
    std::sort(hashes_.begin(), hashes_.end());
    hashes_.erase(std::unique(hashes_.begin(), hashes_.end()), hashes_.end());
    return hashes_;
  }

 private:
  static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  static char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
  static bool is_letter(char c) {
    char const l = lower(c);
    return (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') ||
           static_cast<unsigned char>(c) >= 0x80;
  }

  /// Words with one space between them, and where each begins.
  void split_words(std::string_view text) {
    folded_.clear();
    begins_.clear();
    bool inside = false;
    for (char const c : text) {
      bool const part = settings_.fold ? is_letter(c) : !is_space(c);
      if (part) {
        if (!inside) {
          if (!folded_.empty()) folded_ += ' ';
          begins_.push_back(folded_.size());
        }
        folded_ += settings_.fold ? lower(c) : c;
      }
      inside = part;
    }
  }

  void split_characters(std::string_view text) {
    folded_.clear();
    begins_.clear();
    for (char c : text) {
      if (settings_.fold) {
        if (is_space(c)) {
          if (folded_.empty() || folded_.back() == ' ') continue;
          c = ' ';
        }
        c = lower(c);
      }
      bool const continues = detail::continues_code_point(c) && !begins_.empty();
      if (!continues) begins_.push_back(folded_.size());
      folded_ += c;
    }
    if (settings_.fold && !folded_.empty() && folded_.back() == ' ') {
      folded_.pop_back();
      begins_.pop_back();
    }
  }

  Shingles settings_;
  std::string folded_;
  std::vector<std::size_t> begins_;
  std::vector<std::uint64_t> hashes_;
};

/// The share of two sets that is in both, |A and B| / |A or B|, from 0 to 1; 0 if both are empty.
/// The sets are ascending, without repetitions.
inline double jaccard(std::span<std::uint64_t const> a, std::span<std::uint64_t const> b) {
  std::size_t both = 0, i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    std::uint64_t const x = a[i], y = b[j];
    both += x == y;
    i += x <= y;
    j += y <= x;
  }
  std::size_t const either = a.size() + b.size() - both;
  return either == 0 ? 0 : static_cast<double>(both) / static_cast<double>(either);
}

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/utf8.hpp>
#include <frugal/data/sampling/permutation.hpp>
#include <frugal/error.hpp>

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

namespace detail {

/// Eight hashes at a time: one AVX2 register, two of SSE2 or NEON.
inline constexpr std::size_t minhash_lanes = 8;
using MinHashLanes [[gnu::vector_size(32)]] = std::uint32_t;

/// Eight hash functions, and the least hash of each so far.
struct EightHashes {
  MinHashLanes factor, add, least;
};

[[gnu::always_inline]] inline void lower_minima(EightHashes& eight, std::uint32_t shingle) {
  MinHashLanes const hash = eight.factor * shingle + eight.add;
  eight.least = hash < eight.least ? hash : eight.least;
}

[[gnu::always_inline]] inline void load_minima(EightHashes& eight, std::uint32_t const* factor,
                                               std::uint32_t const* add, std::uint32_t const* least,
                                               std::size_t at) {
  std::memcpy(&eight.factor, factor + at, sizeof eight.factor);
  std::memcpy(&eight.add, add + at, sizeof eight.add);
  std::memcpy(&eight.least, least + at, sizeof eight.least);
}

/// Lowers `least` of `hashes` functions, a multiple of 8, to what the shingles give.
[[gnu::always_inline]] inline void lower_all_minima(std::span<std::uint32_t const> shingles,
                                                    std::uint32_t const* factor,
                                                    std::uint32_t const* add, std::uint32_t* least,
                                                    std::size_t hashes) {
  std::size_t at = 0;
  // Four at a time, named one by one: these twelve vectors stay in the sixteen registers.
  for (; at + 4 * minhash_lanes <= hashes; at += 4 * minhash_lanes) {
    EightHashes a, b, c, d;
    load_minima(a, factor, add, least, at);
    load_minima(b, factor, add, least, at + minhash_lanes);
    load_minima(c, factor, add, least, at + 2 * minhash_lanes);
    load_minima(d, factor, add, least, at + 3 * minhash_lanes);
    for (std::uint32_t const shingle : shingles) {
      lower_minima(a, shingle);
      lower_minima(b, shingle);
      lower_minima(c, shingle);
      lower_minima(d, shingle);
    }
    std::memcpy(least + at, &a.least, sizeof a.least);
    std::memcpy(least + at + minhash_lanes, &b.least, sizeof b.least);
    std::memcpy(least + at + 2 * minhash_lanes, &c.least, sizeof c.least);
    std::memcpy(least + at + 3 * minhash_lanes, &d.least, sizeof d.least);
  }
  for (; at < hashes; at += minhash_lanes) {
    EightHashes a;
    load_minima(a, factor, add, least, at);
    for (std::uint32_t const shingle : shingles) lower_minima(a, shingle);
    std::memcpy(least + at, &a.least, sizeof a.least);
  }
}

#if defined(__x86_64__)
/// The AVX2 form, which multiplies eight numbers in one instruction; SSE2 has none for that.
[[gnu::target("avx2")]] inline void lower_all_minima_avx2(std::span<std::uint32_t const> shingles,
                                                          std::uint32_t const* factor,
                                                          std::uint32_t const* add,
                                                          std::uint32_t* least,
                                                          std::size_t hashes) {
  lower_all_minima(shingles, factor, add, least, hashes);
}
#endif

}  // namespace detail

/// MinHash signatures: of two sets, the share of equal hashes estimates their Jaccard similarity J,
/// with a standard error of sqrt(J (1 - J) / hashes).
///
/// Hash i of a set is the least a_i x + b_i mod 2^32 over its elements x, a_i odd. The elements are
/// hashes themselves (XXH3), and with such input functions of this family behave as if they were
/// random (Mitzenmacher and Vadhan, "Why simple hash functions work", SODA 2008); a test compares
/// estimates with exact similarities. Each is a bijection, so it adds no collisions. The same on
/// every machine.
///
/// Source  Broder, "On the resemblance and containment of documents", SEQUENCES 1997.
/// Cost    with AVX2 about 55 cycles per element for 260 hashes; 8 bytes a hash for the functions.
/// Errors  SettingsError for 0 hashes, or more than 65,536.
class MinHash {
 public:
  explicit MinHash(std::uint32_t hashes = 260, std::uint64_t seed = 0) : size_(hashes) {
    if (hashes == 0 || hashes > 65536) {
      throw SettingsError({.what = "a signature of " + std::to_string(hashes) + " hashes",
                           .where = "MinHash",
                           .why = "a signature has 1 to 65,536 hashes",
                           .fix = "Use 100 to 500; the standard error is 0.5 / sqrt(hashes)."});
    }
    std::size_t const padded =
        (hashes + detail::minhash_lanes - 1) / detail::minhash_lanes * detail::minhash_lanes;
    factor_.resize(padded);
    add_.resize(padded);
    for (std::size_t i = 0; i < padded; ++i) {
      seed += 0x9e3779b97f4a7c15U;
      std::uint64_t const drawn = detail::mix64(seed);
      factor_[i] = static_cast<std::uint32_t>(drawn >> 32) | 1U;
      add_[i] = static_cast<std::uint32_t>(drawn);
    }
  }

  std::uint32_t size() const { return size_; }

  /// The signature of a set, in any order and with any repetitions; `out` has size() elements. All
  /// 2^32 - 1 for an empty set.
  void signature(std::span<std::uint64_t const> elements, std::span<std::uint32_t> out) const {
    std::vector<std::uint32_t> least(factor_.size(), 0xffffffffU);
    signature(elements, out, least);
  }

  /// The signature in the caller's buffer, which is resized: no allocation from the second call on.
  void signature(std::span<std::uint64_t const> elements, std::span<std::uint32_t> out,
                 std::vector<std::uint32_t>& least) const {
    least.assign(factor_.size(), 0xffffffffU);
    std::array<std::uint32_t, 1024>
        folded;  // stays in the first cache while every function reads it
    while (!elements.empty()) {
      std::size_t const count = std::min(elements.size(), folded.size());
      for (std::size_t i = 0; i < count; ++i) {
        folded[i] = static_cast<std::uint32_t>(elements[i] >> 32);
      }
      lower(std::span(folded).first(count), least);
      elements = elements.subspan(count);
    }
    std::copy_n(least.begin(), out.size(), out.begin());
  }

  /// The estimate of the similarity: the share of equal hashes of two signatures.
  static double estimate(std::span<std::uint32_t const> a, std::span<std::uint32_t const> b) {
    std::size_t same = 0;
    for (std::size_t i = 0; i < a.size(); ++i) same += a[i] == b[i];
    return a.empty() ? 0 : static_cast<double>(same) / static_cast<double>(a.size());
  }

 private:
  void lower(std::span<std::uint32_t const> shingles, std::vector<std::uint32_t>& least) const {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") != 0) {
      return detail::lower_all_minima_avx2(shingles, factor_.data(), add_.data(), least.data(),
                                           factor_.size());
    }
#endif
    detail::lower_all_minima(shingles, factor_.data(), add_.data(), least.data(), factor_.size());
  }

  std::uint32_t size_;
  std::vector<std::uint32_t> factor_;
  std::vector<std::uint32_t> add_;
};

}  // namespace frugal

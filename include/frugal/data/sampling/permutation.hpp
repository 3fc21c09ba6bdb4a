// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/name_hash.hpp>
#include <frugal/core/source/sample_set.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace frugal {

namespace detail {

/// The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014): every input bit reaches every output bit.
constexpr std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// Smallest r with r * r >= n, in integers so that no platform's sqrt can change an order.
constexpr std::uint64_t ceil_sqrt(std::uint64_t n) {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 31; bit != 0; bit >>= 1) {
    if ((root + bit) * (root + bit) < n) root += bit;
  }
  return n == 0 ? 0 : root + 1;
}

/// A Feistel network on Z_a x Z_b whose halves are unsigned `Half`s below half of its range,
/// evaluated lane by lane so that a compiler turns each loop into vector instructions: with
/// 16-bit halves baseline x86-64 and Arm work on eight indices at once.
template <class Half, class Wide>
class Feistel {
 public:
  /// Largest a for which a difference of two halves shows its sign in the top bit.
  static constexpr std::uint64_t max_half = static_cast<Half>(~Half{0}) >> 1;

  Feistel() = default;
  Feistel(std::uint64_t a, std::uint64_t b, std::uint64_t key, int rounds)
      : a_(static_cast<Half>(a)), b_(static_cast<Half>(b)), rounds_(rounds) {
    for (Round& round : keys_) {
      // The multipliers are odd: then no step of the round function loses a bit of its input.
      std::uint64_t const low = mix64(key += 0x9e3779b97f4a7c15U);
      std::uint64_t const high = mix64(key += 0x9e3779b97f4a7c15U);
      round = {static_cast<Half>(low), static_cast<Half>(low >> 32 | 1U),
               static_cast<Half>(high | 1U), static_cast<Half>(high >> 32)};
    }
  }

  /// The images of `first`, `first + 1`, ... in [0, a * b); lanes past a * b give garbage.
  template <std::size_t Lanes>
  std::array<Wide, Lanes> images(std::uint64_t first) const {
    std::array<Half, Lanes> x, y;
    Half const high = static_cast<Half>(first / b_);
    Half const low = static_cast<Half>(first % b_);
    if (b_ >= Lanes) {
      // One carry at most, so that the split needs a division per block, not per lane.
      for (std::size_t i = 0; i < Lanes; ++i) {
        Half const past = static_cast<Half>(low + i - b_);
        Half const below = static_cast<Half>(past >> (bits - 1));
        x[i] = static_cast<Half>(high + 1 - below);
        y[i] = static_cast<Half>(past + (static_cast<Half>(-below) & b_));
      }
    } else {
      for (std::size_t i = 0; i < Lanes; ++i) {
        x[i] = static_cast<Half>((first + i) / b_);
        y[i] = static_cast<Half>((first + i) % b_);
      }
    }
    for (int r = 0; r < rounds_; r += 2) {
      turn(x, y, a_, keys_[static_cast<std::size_t>(r)]);
      turn(y, x, b_, keys_[static_cast<std::size_t>(r) + 1]);
    }
    std::array<Wide, Lanes> out;
    for (std::size_t i = 0; i < Lanes; ++i) out[i] = static_cast<Wide>(x[i]) * b_ + y[i];
    return out;
  }

 private:
  static constexpr int bits = 8 * sizeof(Half);

  struct Round {
    Half add, first, second, last;
  };

  /// x <- x - F(y) mod m: undone by adding F(y) again, hence a bijection whatever F is.
  template <std::size_t Lanes>
  static void turn(std::array<Half, Lanes>& x, std::array<Half, Lanes> const& y, Half m,
                   Round const& key) {
    for (std::size_t i = 0; i < Lanes; ++i) {
      Half h = static_cast<Half>(Wide{static_cast<Half>(y[i] + key.add)} * key.first);
      h = static_cast<Half>(h ^ (h >> (bits / 2 - 1)));
      h = static_cast<Half>(Wide{h} * key.second + key.last);
      // The high half of h * m lies in [0, m) (Lemire, "Fast random integer generation in an
      // interval", TOMACS 29(1), 2019). Its bias, below m / 2^bits, vanishes over the rounds.
      Half const f = static_cast<Half>((Wide{h} * m) >> bits);
      Half const d = static_cast<Half>(x[i] - f);
      Half const borrow = static_cast<Half>(-(d >> (bits - 1)));
      x[i] = static_cast<Half>(d + (borrow & m));
    }
  }

  Half a_ = 1;
  Half b_ = 1;
  int rounds_ = 0;
  std::array<Round, 20> keys_{};
};

}  // namespace detail

/// A keyed bijection on [0, size): which sample stands at place i of an epoch, computed from
/// (seed, epoch, i) alone. No table, so that a run resumes anywhere at once; integers only, so
/// that every compiler and machine gives the same order.
///
/// Cost    O(1) memory (about half a kilobyte); 32 indices of a 60,000 sample set take about
///         1,000 to 1,200 instructions with SSE2, under 40 an index.
/// Errors  SettingsError for a size above 2^62.
/// Source  Black and Rogaway, "Ciphers with arbitrary finite domains" (CT-RSA 2002), section 5:
///         a Feistel network on Z_a x Z_b with a * b just above size, and cycle walking for the
///         rest. a * b exceeds size by less than a = about sqrt(size): a walk is rare. It is
///         for shuffling, not for secrets: the round function is no cipher.
class Permutation {
 public:
  Permutation() = default;
  Permutation(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size);

  std::uint64_t size() const { return size_; }

  /// The sample at place i; i < size().
  std::uint64_t operator()(std::uint64_t i) const {
    do {
      i = narrow_ ? small_.images<1>(i)[0] : large_.images<1>(i)[0];
    } while (i >= size_);
    return i;
  }

  /// The samples at places first, first + 1, ..., first + out.size() - 1, all below size().
  void fill(std::uint64_t first, std::span<std::int64_t> out) const { fill_as(first, out); }
  void fill(std::uint64_t first, std::span<std::uint64_t> out) const { fill_as(first, out); }

 private:
  template <class Int>
  void fill_as(std::uint64_t first, std::span<Int> out) const {
    narrow_ ? fill_from(small_, first, out) : fill_from(large_, first, out);
  }

  template <class Network, class Int>
  void fill_from(Network const& network, std::uint64_t first, std::span<Int> out) const {
    for (; out.size() >= 32; first += 32, out = out.subspan(32)) block<32>(network, first, out);
    for (; !out.empty(); first += 8, out = out.subspan(std::min<std::size_t>(8, out.size()))) {
      block<8>(network, first, out);
    }
  }

  /// Up to `Lanes` places; a short `out` takes the first of them.
  template <std::size_t Lanes, class Network, class Int>
  void block(Network const& network, std::uint64_t first, std::span<Int> out) const {
    auto const values = network.template images<Lanes>(first);
    using Value = typename decltype(values)::value_type;
    Value const size = static_cast<Value>(size_);
    Value outside = 0;
    for (Value const value : values) outside |= size - 1 - value;
    std::size_t const count = std::min(Lanes, out.size());
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<Int>(values[i]);
    // Values stay below 2^(bits - 2), so a top bit says that some lane has to walk on.
    if (outside >> (8 * sizeof(Value) - 1) == 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      if (values[i] >= size) out[i] = static_cast<Int>((*this)(values[i]));
    }
  }

  std::uint64_t size_ = 0;
  bool narrow_ = true;
  detail::Feistel<std::uint16_t, std::uint32_t> small_;
  detail::Feistel<std::uint32_t, std::uint64_t> large_;
};

/// The number of a stream of draws that is called `name`: FNV-1a, 64 bits.
constexpr std::uint64_t draw_stream(std::string_view name) { return detail::name_hash(name); }

/// Random numbers of one sample: a function of its key (seed, epoch, index), of the stream and of
/// how many were drawn before. Nothing is shared, so draws depend neither on the batch, nor on the
/// worker, nor on LibTorch's generators. Different transforms of a sample take different streams.
///
///     Draw draw(key, draw_stream("flip"));
///     if (draw.chance(0.5)) ...
///
/// Cost    4 multiplications for the first number, 2 for each further one; no memory.
/// Source  SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), started at a hash of the key. Uniform
///         numbers and integers are the same on every machine; normal(), gamma() and beta() use the
///         logarithm and powers of the C library, whose last bit may differ.
class Draw {
 public:
  explicit Draw(SampleKey const& key, std::uint64_t stream = 0)
      : state_(detail::mix64(detail::mix64(detail::mix64(detail::mix64(key.seed + golden) ^
                                                         key.epoch * 0xd1342543de82ef95U) +
                                           key.index * golden) ^
                             stream)) {}

  /// 64 random bits.
  std::uint64_t bits() { return detail::mix64(state_ += golden); }

  /// In [0, 1), in steps of 2^-53.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

  /// In [low, high).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

  /// True with this probability.
  bool chance(double probability) { return uniform() < probability; }

  /// In [0, count), each number equally likely; count > 0.
  /// Source  Lemire, "Fast random integer generation in an interval" (TOMACS 29(1), 2019).
  std::uint64_t below(std::uint64_t count);

  /// Mean 0, variance 1.
  /// Source  Box and Muller (Annals of Mathematical Statistics 29, 1958).
  double normal();

  /// Gamma of this shape and scale 1; shape > 0.
  /// Source  Marsaglia and Tsang, "A simple method for generating gamma variables" (TOMS 26(3),
  ///         2000); their section 6 for a shape below 1.
  double gamma(double shape);

  /// Beta of these shapes, in [0, 1]; both > 0.
  double beta(double a, double b);

 private:
  static constexpr std::uint64_t golden = 0x9e3779b97f4a7c15U;

  __extension__ using Wide = unsigned __int128;

  std::uint64_t state_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/sampling/permutation.ipp>
#endif

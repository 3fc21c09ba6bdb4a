// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/name_hash.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/sampling/permutation.hpp>

#include <cstdint>
#include <string_view>

namespace frugal {

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
#include <frugal/data/sampling/draw.ipp>
#endif

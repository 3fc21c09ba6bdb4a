// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/described_transform.hpp>
#include <frugal/core/source/sample_set.hpp>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <limits>
#include <optional>
#include <string>

namespace frugal {

/// Where a cache is, and how large it may become.
struct CacheSettings {
  std::filesystem::path folder;  ///< of all caches; each key has a folder of its own in it
  /// Bytes on disk of one key, at most, those of all processes that share it included. Samples that
  /// do not fit are computed every time.
  std::uint64_t bytes_limit = std::numeric_limits<std::uint64_t>::max();
  std::ostream* out = &std::cerr;  ///< destination of its lines; null for silence
};

/// The work of a cache. Bytes and `cached` count the entries of all processes; the rest counts
/// this object and its copies.
struct CacheReport {
  std::uint64_t samples = 0;                    ///< of the set
  std::uint64_t cached = 0;                     ///< of them
  std::optional<std::uint64_t> bytes_before{};  ///< of the cached samples' inputs, if all are known
  std::uint64_t bytes_after = 0;                ///< of the cached samples
  std::uint64_t bytes_on_disk = 0;
  std::uint64_t hits = 0;      ///< samples that were read
  std::uint64_t computed = 0;  ///< samples that the transform made
  std::uint64_t damaged = 0;   ///< entries that had changed, and were computed again
  std::string stopped{};       ///< why no more samples are kept; empty: they are

  /// "60000 of 60000 samples: 44.9 MiB before the transform, 179.4 MiB after it"
  std::string text() const;

 private:
  static std::string size_text(std::uint64_t bytes);
};

namespace detail {

/// `f(sample)` or `f(sample, key)`, from several threads.
template <class F, class Sample>
concept PlainTransform = std::invocable<F const&, Sample>;
template <class F, class Sample>
concept RandomTransform = std::invocable<F const&, Sample, SampleKey const&>;

/// The key of a cache: distinguishes the samples of one transform of one set from those of any
/// other. `sample` is the signature of the type that is kept.
template <DescribedTransform F, IdentifiedSet S>
std::string cache_key(S const& set, F const& f, std::string const& sample) {
  return "frugal cache 1\n" + transform_text(f) + key_part("set", set.identity()) +
         key_part("samples", std::to_string(static_cast<std::uint64_t>(set.size()))) +
         key_part("sample", sample);
}

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/cache/cache_settings.ipp>
#endif

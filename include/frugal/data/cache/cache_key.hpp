// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/described_transform.hpp>
#include <frugal/core/source/sample_set.hpp>

#include <concepts>
#include <cstdint>
#include <string>

// Distinguishes the samples of one transform of one set from those of any other.
namespace frugal {
namespace detail {

/// `f(sample)` or `f(sample, key)`, from several threads.
template <class F, class Sample>
concept PlainTransform = std::invocable<F const&, Sample>;
template <class F, class Sample>
concept RandomTransform = std::invocable<F const&, Sample, SampleKey const&>;

/// The key of a cache. `sample` is the signature of the type that is kept.
template <DescribedTransform F, IdentifiedSet S>
std::string cache_key(S const& set, F const& f, std::string const& sample) {
  return "frugal cache 1\n" + transform_text(f) + key_part("set", set.identity()) +
         key_part("samples", std::to_string(static_cast<std::uint64_t>(set.size()))) +
         key_part("sample", sample);
}

}  // namespace detail
}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/sample_set.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <typeinfo>

// Distinguishes the samples of one transform of one set from those of any other.
namespace frugal {
namespace detail {

template <class F>
concept HasVersion = requires {
  { F::version } -> std::convertible_to<long long>;
};
template <class F>
concept HasSettings = requires(F const& f) {
  { f.settings() } -> std::convertible_to<std::string>;
};
template <class F>
concept HasDescribe = requires(F const& f) {
  { f.describe() } -> std::convertible_to<std::string>;
};
template <class F>
concept HasIdentity = requires(F const& f) {
  { f.identity() } -> std::convertible_to<std::string>;
};

/// `f(sample)` or `f(sample, key)`, from several threads.
template <class F, class Sample>
concept PlainTransform = std::invocable<F const&, Sample>;
template <class F, class Sample>
concept RandomTransform = std::invocable<F const&, Sample, SampleKey const&>;

}  // namespace detail

/// A transform that says what it is, so that its results can be kept: `static constexpr int
/// version` and `settings()`, a text with everything that its results depend on besides the sample;
/// or one text with both, `describe()` or `identity()`. Raise the version when the code changes
/// what the transform gives.
template <class F>
concept DescribedTransform = (detail::HasVersion<F> && detail::HasSettings<F>) ||
                             detail::HasDescribe<F> || detail::HasIdentity<F>;

namespace detail {

/// Each part with its length, so that no two descriptions run into each other.
inline std::string key_part(std::string const& name, std::string const& text) {
  return name + " " + std::to_string(text.size()) + " " + text + "\n";
}

/// Its type is part of it: two transforms of version 1 without settings are not the same.
template <DescribedTransform F>
std::string transform_text(F const& f) {
  std::string text = key_part("transform", typeid(F).name());
  if constexpr (HasVersion<F>) {
    text += key_part("version", std::to_string(static_cast<long long>(F::version)));
  }
  if constexpr (HasSettings<F>) text += key_part("settings", f.settings());
  if constexpr (HasDescribe<F>) text += key_part("description", f.describe());
  if constexpr (HasIdentity<F>) text += key_part("identity", f.identity());
  return text;
}

/// The key of a cache. `sample` is the signature of the type that is kept.
template <DescribedTransform F, IdentifiedSet S>
std::string cache_key(S const& set, F const& f, std::string const& sample) {
  return "frugal cache 1\n" + transform_text(f) + key_part("set", set.identity()) +
         key_part("samples", std::to_string(static_cast<std::uint64_t>(set.size()))) +
         key_part("sample", sample);
}

}  // namespace detail
}  // namespace frugal

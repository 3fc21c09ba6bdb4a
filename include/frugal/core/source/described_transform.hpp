// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <typeinfo>

// What tells one transform of samples from any other.
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

}  // namespace detail

/// A transform that says what it is, so that its results can be kept: `static constexpr int
/// version` and `settings()`, a text with everything that its results depend on besides the sample;
/// or one text with both, `describe()` or `identity()`. Raise the version when the code changes
/// what the transform gives.
///
/// The name of its type is added. Two programs may have local types of one name, or types of one
/// name in an unnamed namespace: give these different texts. A lambda cannot say what it is.
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

/// One line for people, with what transform_text() has.
template <DescribedTransform F>
std::string short_transform_text(F const& f) {
  std::string text = typeid(F).name();
  if constexpr (HasVersion<F>) {
    text += ", version " + std::to_string(static_cast<long long>(F::version));
  }
  if constexpr (HasSettings<F>) text += ", " + std::string(f.settings());
  if constexpr (HasDescribe<F>) text += ", " + std::string(f.describe());
  if constexpr (HasIdentity<F>) text += ", " + std::string(f.identity());
  return text;
}

}  // namespace detail
}  // namespace frugal

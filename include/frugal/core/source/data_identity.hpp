// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/core/source/described_transform.hpp>
#include <frugal/core/source/sample_set.hpp>

#include <concepts>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>

namespace frugal {

/// Which data a run trains on, and in which order: texts by name, such as "content", "order" and
/// "window". A checkpoint has them, and a resume refuses other ones.
///
/// A value changes if and only if the sequence of samples may change. So no value has the number of
/// workers, the depth of a prefetch, the folder of a file or its time.
class DataIdentity {
 public:
  /// A name that is there already (of another wrapper, or another set) gets a number: "function 2".
  void add(std::string const& name, std::string const& value);
  template <std::integral T>
  void add(std::string const& name, T value) {
    if constexpr (std::same_as<T, bool>) {
      add(name, std::string(value ? "true" : "false"));
    } else {
      add(name, std::to_string(value));
    }
  }
  /// With all its bits, in any locale.
  template <std::floating_point T>
  void add(std::string const& name, T value) {
    add(name, detail::general(static_cast<double>(value), 17));
  }
  /// For values that are too long for a text: their number and their hash.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void add(std::string const& name, std::span<T const> values) {
    add(name, std::to_string(values.size()) + ", hash " + hex_of(Hash::of(std::as_bytes(values))));
  }

  bool contains(std::string const& name) const { return values_.contains(name); }
  std::map<std::string, std::string> const& values() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

/// A source, a set of samples or an order that says what it is:
///
/// `identify(DataIdentity& to) const`  adds what decides its samples and their order, and lets the
///                                     sources and sets in it add theirs. It may be called while
///                                     workers read, so it reads only what does not change.
template <class T>
concept Identifies = requires(T const& it, DataIdentity& to) { it.identify(to); };

namespace detail {

/// Adds what is known of a part: a source, a set or an order.
template <class T>
void identify(T const& it, DataIdentity& to) {
  if constexpr (Identifies<T>) {
    it.identify(to);
  } else if constexpr (IdentifiedSet<T>) {
    to.add("data", std::string(it.identity()));
  }
}

/// What a source is, with the number of its samples if it does not state that itself.
template <class S>
DataIdentity data_identity_of(S const& source) {
  DataIdentity all;
  identify(source, all);
  if constexpr (requires { source.samples(); }) {
    if (!all.contains("samples")) all.add("samples", static_cast<std::uint64_t>(source.samples()));
  }
  return all;
}

/// Adds a transform or collate function, if it says what it is.
template <class F>
void identify_transform(F const& function, std::string const& name, DataIdentity& to) {
  if constexpr (Identifies<F>) {
    function.identify(to);
  } else if constexpr (DescribedTransform<F>) {
    to.add(name, short_transform_text(function));
  }
}

/// Adds an order of another type than frugal's, or one of these.
template <class O>
void identify_order(O const& order, DataIdentity& to) {
  if constexpr (Identifies<O>) {
    order.identify(to);
  } else {
    to.add("order", std::string(typeid(O).name()));
    to.add("shuffle", bool{order.loading().shuffle});
    to.add("drop_last", bool{order.loading().drop_last});
  }
}

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/source/data_identity.ipp>
#endif

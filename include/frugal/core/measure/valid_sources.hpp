// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/compose/fixed_string.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/range.hpp>
#include <frugal/core/source/source.hpp>

namespace frugal {

/// A validation source with a name; see named().
template <fixed_string Name, class S>
struct NamedSource {
  static constexpr std::string_view name = Name;
  static_assert(!name.empty(),
                "frugal: named<\"\"> has no name to put before its metrics. Write "
                "named<\"shifted\">(source).");

  S source;  ///< a reference, or the source itself if it was given as a temporary
};

/// Names a source, as a prefix of its metrics: `named<"shifted">(source)` gives "shifted/loss". An
/// lvalue is held by reference and must outlive the run.
template <fixed_string Name, class S>
NamedSource<Name, S> named(S&& source) {
  return {std::forward<S>(source)};
}

namespace detail {

template <class T>
inline constexpr bool is_named_source = false;
template <fixed_string Name, class S>
inline constexpr bool is_named_source<NamedSource<Name, S>> = true;

/// A source as the loop reads it, with its name; without one the name is empty.
template <fixed_string Name, class S>
struct HeldSource {
  S source;
};
template <class S>
auto hold(S&& source) {
  return HeldSource<"", decltype(as_source(std::forward<S>(source)))>{
      as_source(std::forward<S>(source))};
}
template <fixed_string Name, class S>
auto hold(NamedSource<Name, S>& named) {
  return HeldSource<Name, decltype(as_source(std::forward<S>(named.source)))>{
      as_source(std::forward<S>(named.source))};
}

/// Refers to a source, with its name.
template <fixed_string Name, class S>
struct ValidSource {
  using source_type = S;
  static constexpr std::string_view name = Name;

  S* source;

  /// The prefix of its metrics' names.
  static std::string before() { return name.empty() ? "" : std::string(name) + "/"; }
  static std::string text() {
    return name.empty() ? "validation" : "validation '" + std::string(name) + "'";
  }
  template <class T>
  static ValidSource<Name, T> of(T& other) {
    return {&other};
  }
};
template <fixed_string Name, class S>
ValidSource<Name, std::remove_reference_t<S>> refer_to(HeldSource<Name, S>& held) {
  return {&held.source};
}

/// The sources of one validation, in the order in which they are measured.
template <class... Sources>
class ValidSources {
 public:
  explicit ValidSources(Sources const&... sources) : sources_(sources...) {}

  /// For sources that copy ahead.
  void follow(c10::Device const& device) {
    each([&](auto& one) {
      if constexpr (requires { one.source->follow(device); }) one.source->follow(device);
    });
  }
  template <class F>
  void each(F&& f) {
    std::apply([&](auto&... one) { (f(one), ...); }, sources_);
  }
  bool has(void const* source) {
    bool found = false;
    each([&](auto& one) { found = found || static_cast<void const*>(one.source) == source; });
    return found;
  }
  /// Batches of all sources; nothing if one of them does not know its size.
  std::optional<std::uint64_t> batches() const {
    std::optional<std::uint64_t> sum = 0;
    auto const add = [&]<class One>(One const& one) {
      if constexpr (SizedSource<typename One::source_type>) {
        if (sum) *sum += static_cast<std::uint64_t>(std::as_const(*one.source).batches());
      } else {
        sum.reset();
      }
    };
    std::apply([&](auto const&... one) { (add(one), ...); }, sources_);
    return sum;
  }
  template <std::size_t I>
  auto const& at() const {
    return std::get<I>(sources_);
  }
  static constexpr std::size_t size = sizeof...(Sources);

 private:
  std::tuple<Sources...> sources_;
};

template <class T>
inline constexpr bool is_valid_sources = false;
template <class... Sources>
inline constexpr bool is_valid_sources<ValidSources<Sources...>> = true;

/// Where the sources of a validation are, if there are any.
template <class Valid>
std::vector<void const*> addresses_of(Valid* valid) {
  std::vector<void const*> all;
  if (valid == nullptr) return all;
  if constexpr (is_valid_sources<Valid>) {
    valid->each([&](auto& one) { all.push_back(one.source); });
  } else {
    all.push_back(valid);
  }
  return all;
}

/// Adds what the validation data are, a text for each source: what was best on some data says
/// nothing of others.
template <class Valid>
void identify_validation(Valid* valid, DataIdentity& to) {
  auto const add = [&to](auto const& source, std::string const& name) {
    DataIdentity const all = data_identity_of(source);
    std::string text;
    for (auto const& [part, value] : all.values()) {
      text += (text.empty() ? "" : ", ") + part + " " + value;
    }
    if (!text.empty()) to.add(name, text);
  };
  if (valid == nullptr) return;
  if constexpr (is_valid_sources<Valid>) {
    valid->each([&](auto const& one) { add(*one.source, one.text()); });
  } else {
    add(*valid, "validation");
  }
}

/// The results of `measure_one(source, text)` for each, with their prefixes.
template <class Sources, class MeasureOne>
Metrics measure_each(Sources& sources, MeasureOne&& measure_one) {
  Metrics all;
  sources.each([&](auto& one) { all.add(measure_one(*one.source, one.text()), one.before()); });
  return all;
}

template <class T>
inline constexpr std::string_view source_name{};
template <fixed_string Name, class S>
inline constexpr std::string_view source_name<NamedSource<Name, S>> = Name;

/// Asserts that the names of the validation sources are valid.
template <class First, class... Rest>
constexpr bool require_names() {
  constexpr bool rest = (true && ... && is_named_source<std::remove_cvref_t<Rest>>);
  static_assert(
      rest,
      "frugal: only the first validation source may lack a name; the metrics of the others "
      "would have the same names. Write named<\"shifted\">(source).");
  constexpr bool apart = [] {
    std::string_view const names[] = {source_name<std::remove_cvref_t<First>>,
                                      source_name<std::remove_cvref_t<Rest>>...};
    for (std::size_t i = 0; i <= sizeof...(Rest); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (names[i] == names[j]) return false;
      }
    }
    return true;
  }();
  static_assert(!rest || apart,
                "frugal: two validation sources have one name, and their metrics could not be told "
                "apart. Give each a name of its own.");
  return rest && apart;
}

/// Wraps each source by the policy that places batches (service::placement), and calls `fit` with
/// the wrapped ones. A validation source that is also the training source is wrapped once.
template <class Policy, class Train, class Valid, class Fit>
class PlacedSources {
 public:
  PlacedSources(Policy const& policy, Train& train, Valid& valid, Fit& fit)
      : policy_(policy), train_(train), valid_(valid), fit_(fit) {}

  auto run() {
    return policy_.template surround<void>(
        train_, nullptr, [this](auto& train, void*) { return this->template next<0>(train); });
  }

 private:
  template <std::size_t I, class Placed, class... Done>
  auto next(Placed& train, Done const&... done) {
    if constexpr (I == Valid::size) {
      ValidSources<Done...> all(done...);
      return fit_(train, &all);
    } else {
      auto const& one = valid_.template at<I>();
      using Source = typename std::remove_cvref_t<decltype(one)>::source_type;
      if constexpr (std::is_same_v<Source, Train>) {
        if (one.source == &train_) return this->template next<I + 1>(train, done..., one.of(train));
      }
      return policy_.template surround<void>(*one.source, nullptr, [&](auto& placed, void*) {
        return this->template next<I + 1>(train, done..., one.of(placed));
      });
    }
  }

  Policy const& policy_;
  Train& train_;
  Valid& valid_;
  Fit& fit_;
};

}  // namespace detail
}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <frugal/compose/declared.hpp>
#include <frugal/compose/hooks.hpp>
#include <frugal/compose/list.hpp>

namespace frugal {

/// A validation metric that a policy watches, and the sentence for a recipe that does not measure
/// it: `using watches = list<watched<WatchAccuracy, without_metric>>`.
template <class Watch, class Sentence>
struct watched {
  using watch = Watch;
  using sentence = Sentence;
};

// Whether what a recipe's policies watch is measured by the recipe, as far as types tell.
namespace detail {

/// The mean loss of a validation, which is always measured.
inline constexpr std::string_view always_measured = "loss";

/// The metric of a watched name: "accuracy" of "shifted/accuracy". Which named source it is
/// measured on, fit() is given, and a recipe cannot know.
constexpr std::string_view metric_of(std::string_view watched_name) {
  return watched_name.substr(watched_name.rfind('/') + 1);
}

/// Has the metric one value, under a name that is a constant?
template <class M>
inline constexpr bool has_one_name = requires(M const& metric) {
  { metric.result() } -> std::convertible_to<double>;
  typename std::integral_constant<std::size_t, std::string_view(M::name).size()>;
};

/// Could the metric give this name? One whose names are not constants could give any.
template <class M>
constexpr bool may_be_named(std::string_view name) {
  if constexpr (has_one_name<M>) {
    return std::string_view(M::name) == name;
  } else {
    return true;
  }
}

/// Could the policy add metrics to a validation, in its around_validate? One that never does says
/// `static constexpr bool adds_metrics = false`.
template <class P>
constexpr bool may_add_metrics() {
  if constexpr (!contains<around::validate, typename P::listens>) {
    return false;
  } else if constexpr (requires { P::adds_metrics; }) {
    return P::adds_metrics;
  } else {
    return true;
  }
}

/// What the policies of a recipe watch, against what they measure.
template <class... Ps>
struct Watching {
  /// The sentence of the first metric that is watched and not measured; empty if there is none.
  static constexpr std::string_view fault() {
    std::string_view found;
    (find_fault(typename watches_of<Ps>::type{}, found), ...);
    return found;
  }
  static constexpr bool require() {
    return (true & ... & require_of<Ps>(typename watches_of<Ps>::type{}));
  }

 private:
  static constexpr bool is_measured(std::string_view watched_name) {
    std::string_view const metric = metric_of(watched_name);
    return metric == always_measured ||
           (false || ... || (may_add_metrics<Ps>() || measures<Ps>(metric)));
  }
  template <class P>
  static constexpr bool measures(std::string_view metric) {
    return [metric]<class... Ms>(list<Ms...>) {
      return (false || ... || may_be_named<Ms>(metric));
    }(typename metrics_of<P>::type{});
  }

  template <class... Ws>
  static constexpr void find_fault(list<Ws...>, std::string_view& found) {
    ((found.empty() && !is_measured(Ws::watch::name) ? void(found = Ws::sentence::text) : void()),
     ...);
  }
  template <class P, class... Ws>
  static constexpr bool require_of(list<Ws...>) {
    return (true & ... &
            Ws::sentence::template require<is_measured(Ws::watch::name), P, typename Ws::watch>());
  }
};

}  // namespace detail
}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <frugal/core/compose/declared.hpp>
#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/compose/list.hpp>

namespace frugal {

/// A validation metric that a policy watches, with the sentence for a recipe that does not measure
/// it: `using watches = list<watched<WatchAccuracy, without_metric>>`.
template <class Watch, class Sentence>
struct watched {
  using watch = Watch;
  using sentence = Sentence;
};

// Checks that a recipe measures the metrics that its policies watch, as far as types show.
namespace detail {

/// The mean loss of a validation, which is always measured.
inline constexpr std::string_view always_measured = "loss";

/// The metric in a watched name: "accuracy" in "shifted/accuracy". The named source is an argument
/// of fit(), which a recipe cannot know.
constexpr std::string_view metric_of(std::string_view watched_name) {
  return watched_name.substr(watched_name.rfind('/') + 1);
}

/// The source in a watched name: "shifted" in "shifted/accuracy", empty for the source without a
/// name.
constexpr std::string_view source_of(std::string_view watched_name) {
  std::size_t const slash = watched_name.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : watched_name.substr(0, slash);
}

template <class M>
inline constexpr bool has_one_number = requires(M const& metric) {
  { metric.result() } -> std::convertible_to<double>;
};
/// Whether the metric has one value, under a constant name.
template <class M>
inline constexpr bool has_one_name = has_one_number<M> && requires {
  typename std::integral_constant<std::size_t, std::string_view(M::name).size()>;
};

/// Whether the metric could have this name. One without constant names could have any.
template <class M>
constexpr bool may_be_named(std::string_view name) {
  if constexpr (has_one_name<M>) {
    return std::string_view(M::name) == name;
  } else {
    return true;
  }
}

/// Whether the policy could add metrics to a validation, in its around_validate. A policy that
/// never does has property::adds_no_metrics.
template <class P>
constexpr bool may_add_metrics() {
  return contains<around::validate, typename P::listens> &&
         !has_property<property::adds_no_metrics, P>;
}

/// The metrics that a recipe's policies watch, compared with those it measures.
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
  /// Whether every watched metric is of one of these sources, or may be added by a policy.
  template <class... Names>
  static constexpr bool is_of_sources(Names... names) {
    return (false || ... || may_add_metrics<Ps>()) ||
           (true && ... && all_of_sources(typename watches_of<Ps>::type{}, names...));
  }

  /// Whether the metrics alone decide, when a run begins, which names there are.
  template <class... Ms>
  static constexpr bool is_known_later(list<Ms...>) {
    return (false || ... || !has_one_name<Ms>) && (true && ... && has_one_number<Ms>) &&
           !(false || ... || may_add_metrics<Ps>());
  }
  /// Calls `f(metric)` for the name of each metric that is watched, without its source.
  template <class F>
  static void each_watched(F const& f) {
    (each_of(f, typename watches_of<Ps>::type{}), ...);
  }

  /// Whether a validation could have this metric, as far as types show. The name is without a source.
  static constexpr bool may_measure(std::string_view metric) {
    return metric == always_measured ||
           (false || ... || (may_add_metrics<Ps>() || measures<Ps>(metric)));
  }

 private:
  template <class F, class... Ws>
  static void each_of([[maybe_unused]] F const& f, list<Ws...>) {
    (f(metric_of(Ws::watch::name)), ...);
  }
  template <class... Ws, class... Names>
  static constexpr bool all_of_sources(list<Ws...>, Names... names) {
    [[maybe_unused]] auto const is_given = [&](std::string_view source) {
      return (false || ... || (source == names));
    };
    return (true && ... && is_given(source_of(Ws::watch::name)));
  }

  static constexpr bool is_measured(std::string_view watched_name) {
    return may_measure(metric_of(watched_name));
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

template <class List>
struct watching_of;
template <class... Ps>
struct watching_of<list<Ps...>> {
  using type = Watching<Ps...>;
};

}  // namespace detail
}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include <frugal/checkpoint/retention.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/watching.hpp>
#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/policy/formats.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/policy/watched.hpp>

namespace frugal {

// Options of Checkpoint, in any order: a cadence, and any of these.

/// Keeps the newest N checkpoints.
template <std::size_t N>
struct Keep {
  static_assert(N >= 1, "frugal: Keep<0> would keep no checkpoint. Write Keep<1> or more.");
  static constexpr std::size_t count = N;
};

/// Keeps the best N by a validated metric, too; saves each improvement when it is measured.
template <class Metric = WatchLoss, std::size_t N = 1>
struct KeepBest {
  static_assert(N >= 1, "frugal: KeepBest keeps at least one. Write KeepBest<Metric, 1>.");
  static_assert(
      detail::option::watch::has<Metric>,
      "frugal: KeepBest<...>: this is not a watched metric. Write KeepBest<WatchAccuracy>, "
      "or KeepBest<Watch<\"f1\", Better::higher>>.");
  using metric = Metric;
  static constexpr std::size_t count = N;
};

/// Saves each step that is a multiple of N, whatever the cadence, and keeps these checkpoints for ever.
template <std::uint64_t N>
struct KeepEvery {
  static_assert(N >= 1, "frugal: KeepEvery<0> names no step. Write KeepEvery<10000>.");
  static constexpr std::uint64_t count = N;
};

/// Writes in a background thread; the step pays for a copy of the state into host memory.
struct Async {};

/// Weights in 16 bits on disk, at half the size. BF16 has the range of float; FP16 has more digits,
/// and weights beyond 65504 are refused. A run that resumes from it is not bitwise identical.
template <class Format>
struct WeightsIn {
  static_assert(detail::is_half_format<Format>,
                "frugal: WeightsIn<...>: unknown format. Options: BF16, FP16. Without WeightsIn, "
                "weights keep their own type.");
  static constexpr c10::ScalarType type = detail::scalar_type_of<Format>;
};

/// Use of the checkpoints that exist when a run begins.
enum class Resume {
  Exact,    ///< continues from the newest complete one, or from Checkpoint::from, as if the run had
            ///< never stopped
  Weights,  ///< loads the weights alone, by name, and begins at step 0
  Never,    ///< begins at step 0; retention removes the old ones in time
};

/// Use of a run's checkpoints that are newer than the one in Checkpoint::from, with Resume::Exact.
enum class OnNewer {
  Refuse,  ///< StateError: going back would lose them
  Remove,  ///< removes them, but for gold ones, and continues from the older one
};

/// Use of a checkpoint that another recipe has saved.
enum class ChangedRecipe {
  Refuse,        ///< StateError, which names the first difference
  KeepWhatFits,  ///< keeps the model, the optimizer and every state that fits; reports the rest
};

/// Reaction to a checkpoint that cannot be written.
enum class OnFailure {
  Stop,      ///< the error ends the run; the last checkpoint remains
  Continue,  ///< reports it, and tries again at the next cadence
};

/// Effect of Ctrl-C (SIGINT), unless the program has its own handler.
enum class OnInterrupt {
  Save,       ///< finishes the step, saves, and returns from fit; a second one exits at once
  Terminate,  ///< ends the process at once, as without Checkpoint
};

namespace detail {

template <class T>
inline constexpr bool is_cadence = false;
template <auto N, class Unit>
inline constexpr bool is_cadence<Every<N, Unit>> = true;
template <class T>
inline constexpr bool is_keep = false;
template <std::size_t N>
inline constexpr bool is_keep<Keep<N>> = true;
template <class T>
inline constexpr bool is_keep_best = false;
template <class Metric, std::size_t N>
inline constexpr bool is_keep_best<KeepBest<Metric, N>> = true;
template <class T>
inline constexpr bool is_keep_every = false;
template <std::uint64_t N>
inline constexpr bool is_keep_every<KeepEvery<N>> = true;
template <class T>
inline constexpr bool is_weights_in = false;
template <class Format>
inline constexpr bool is_weights_in<WeightsIn<Format>> = true;

template <class O>
inline constexpr bool is_checkpoint_option =
    is_cadence<O> || is_keep<O> || is_keep_best<O> || is_keep_every<O> || is_weights_in<O> ||
    std::same_as<O, Async>;

/// The first option that is a cadence, or the default.
template <class... Os>
struct cadence_in {
  using type = Every<Auto>;
};
template <class O, class... Os>
struct cadence_in<O, Os...> {
  using type =
      typename std::conditional_t<is_cadence<O>, std::type_identity<O>, cadence_in<Os...>>::type;
};

/// How many each KeepBest keeps.
template <class... Os>
constexpr auto counts_of_best() {
  std::array<std::size_t, (0 + ... + std::size_t{is_keep_best<Os>})> counts{};
  std::size_t at = 0;
  [[maybe_unused]] auto const look = [&]<class O>(std::type_identity<O>) {
    if constexpr (is_keep_best<O>) counts[at++] = O::count;
  };
  (look(std::type_identity<Os>{}), ...);
  return counts;
}

/// SettingsError for a Checkpoint that cannot work.
void require_checkpoint_settings(Settings const& settings, Retention const& retention, double share,
                                 std::optional<double> machine_lifetime);

template <class O, class Sentence>
struct watches_of_option {
  using type = list<>;
};
template <class Metric, std::size_t N, class Sentence>
struct watches_of_option<KeepBest<Metric, N>, Sentence> {
  using type = list<watched<Metric, Sentence>>;
};

/// The options of a Checkpoint.
template <class... Os>
struct CheckpointOptions {
  using cadence = typename cadence_in<Os...>::type;

  static constexpr bool async = (false || ... || std::same_as<Os, Async>);
  /// N of Keep<N>, or 3.
  static constexpr std::size_t keep = [] {
    std::size_t count = Retention{}.last;
    [[maybe_unused]] auto const look = [&]<class O>(std::type_identity<O>) {
      if constexpr (is_keep<O>) count = O::count;
    };
    (look(std::type_identity<Os>{}), ...);
    return count;
  }();
  /// N of KeepEvery<N>, or 0.
  static constexpr std::uint64_t every = [] {
    std::uint64_t count = 0;
    [[maybe_unused]] auto const look = [&]<class O>(std::type_identity<O>) {
      if constexpr (is_keep_every<O>) count = O::count;
    };
    (look(std::type_identity<Os>{}), ...);
    return count;
  }();
  static constexpr auto best = counts_of_best<Os...>();
  /// What it costs, for explain.
  static constexpr std::string_view cost() {
    if (every != 0) {
      return async ? "a copy of the state at its cadence and each multiple of KeepEvery"
                   : "the writing of the state at its cadence and each multiple of KeepEvery";
    }
    return async ? "at its cadence a copy of the state" : "at its cadence the writing of the state";
  }
  static constexpr bool half = (false || ... || is_weights_in<Os>);
  static constexpr bool known = (true && ... && is_checkpoint_option<Os>);
  static constexpr bool unique =
      (0 + ... + int{is_cadence<Os>}) <= 1 && (0 + ... + int{is_keep<Os>}) <= 1 &&
      (0 + ... + int{is_keep_every<Os>}) <= 1 && (0 + ... + int{is_weights_in<Os>}) <= 1 &&
      (0 + ... + int{std::same_as<Os, Async>}) <= 1;

  /// The metric of each KeepBest.
  template <class Sentence>
  using watches = concat<typename watches_of_option<Os, Sentence>::type...>;

  static Retention retention(std::size_t newest, std::uint64_t for_ever,
                             decltype(best) const& counts) {
    Retention retention;
    retention.last = newest;
    retention.every = for_ever;
    std::size_t at = 0;
    [[maybe_unused]] auto const look = [&]<class O>(std::type_identity<O>) {
      if constexpr (is_keep_best<O>) {
        retention.best.push_back({.metric = std::string(O::metric::name),
                                  .highest = O::metric::better == Better::higher,
                                  .count = counts[at++]});
      }
    };
    (look(std::type_identity<Os>{}), ...);
    return retention;
  }

  /// Type of the weights on disk; Undefined: as in memory.
  static constexpr c10::ScalarType weights = [] {
    c10::ScalarType type = c10::ScalarType::Undefined;
    [[maybe_unused]] auto const look = [&]<class O>(std::type_identity<O>) {
      if constexpr (is_weights_in<O>) type = O::type;
    };
    (look(std::type_identity<Os>{}), ...);
    return type;
  }();
};

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/options.ipp>
#endif

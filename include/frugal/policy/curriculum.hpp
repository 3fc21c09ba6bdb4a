// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/collate.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/policy/curriculum/pass.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

namespace detail {

template <class T>
concept CurriculumPace = requires(std::uint64_t epoch) {
  { T::epochs } -> std::convertible_to<int>;
  { T::share(epoch) } -> std::convertible_to<double>;
};

FRUGAL_DIAGNOSTIC(curriculum_of_another_source,
                  "frugal: Curriculum: the training source does not have the order of this "
                  "curriculum. Make it with "
                  "the policy, as in `auto train = Curriculum<By<Length>, "
                  "LinearPace<5>>{}.source(set, {.batch = 32})`.");

/// The training source has the curriculum's order.
template <class Pace>
struct InOrderOf {
  using sentence = curriculum_of_another_source;
  template <class Source>
  static constexpr bool met = std::same_as<order_type_of<Source>, CurriculumPass<Pace>>;
};

}  // namespace detail

/// Trains on the easy samples first, and on all of them once its pace is over.
///
/// Lever   runs to convergence.
/// Cost    one reading of the set for its scores, and 8 bytes a sample; nothing per step.
/// State   none: the order is a function of epoch and scores.
/// Errors  a training source in another order does not compile; SettingsError before the first step for
///         an EarlyStop that watches before the pace is over; those of CurriculumPass.
/// Source  Bengio et al., "Curriculum learning" (ICML 2009).
///
///     Curriculum<By<Length>, LinearPace<5>> const easy_first;
///     auto train = easy_first.source(set, {.batch = 32});
///     Trainer trainer{net, CrossEntropy{}, Settings{.epochs = 20}, Optimize<AdamW>{}, easy_first};
///     Report report = trainer.fit(train);
template <class Score, class Pace = LinearPace<5>>
struct Curriculum {
  static_assert(
      detail::is_by<Score>,
      "frugal: Curriculum<...> begins with what makes a sample hard: Curriculum<By<Length>>, "
      "where Length is a type of yours with `double operator()(sample) const`.");
  static_assert(detail::CurriculumPace<Pace>,
                "frugal: Curriculum<By<Score>, Pace>: the pace is LinearPace<epochs, start>, "
                "RootPace<epochs, start>, or a type with `epochs` and `share(epoch)`.");
  using kind = kinds::curriculum;
  using listens = list<on::fit_begin>;
  using source_demands = list<detail::InOrderOf<Pace>>;

  static constexpr About about{Term::runs_to_convergence, "one reading of the set for its scores"};

  [[no_unique_address]] typename Score::score score{};

  /// The scores of all samples of a set, which is read once, in its own order.
  template <SampleSet Set>
  std::vector<double> scores(Set const& set) const {
    std::vector<double> all;
    auto const size = static_cast<std::uint64_t>(set.size());
    all.reserve(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      all.push_back(static_cast<double>(score(read_sample(set, {.index = i}))));
    }
    return all;
  }

  /// The order of an epoch, of scores that are known.
  CurriculumPass<Pace> order(std::vector<double> const& scores, LoaderOptions loading) const {
    return CurriculumPass<Pace>(scores, loading);
  }

  /// A source of the set in the curriculum's order.
  template <SampleSet Set, class Collate = Stack>
  auto source(Set set, LoaderOptions loading, Collate collate = {},
              LoaderSettings settings = {}) const {
    auto order = this->order(scores(set), loading);
    return Loader<Set, Collate, CurriculumPass<Pace>>(std::move(set), std::move(order),
                                                      std::move(collate), std::move(settings));
  }

  /// What a run of this length does not come to; empty if there is nothing to say.
  std::string outlook(RunLimits const& horizon) const {
    std::uint64_t const epochs = horizon.begun_epochs();
    if (epochs > static_cast<std::uint64_t>(Pace::epochs)) return {};
    return "the run ends with its epoch " + std::to_string(epochs) +
           ", and its pace gives all samples only after epoch " + std::to_string(Pace::epochs);
  }

  class State {
   public:
    using transient = void;
    explicit State(Curriculum const& settings) : settings_(settings) {}

    void on_fit_begin(FitBegin& phase) const {
      std::string const text = settings_.outlook(phase.horizon());
      if (!text.empty()) phase.warn_of_plan("Curriculum: " + text);
      phase.begin_easily(static_cast<std::uint64_t>(Pace::epochs));
    }

   private:
    [[no_unique_address]] Curriculum settings_;
  };
};

}  // namespace frugal

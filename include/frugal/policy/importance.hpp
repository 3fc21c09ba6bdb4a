// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/core/run/loss.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/collate.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/policy/importance/objective.hpp>
#include <frugal/policy/importance/pass.hpp>
#include <frugal/policy/importance/table.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

namespace detail {

FRUGAL_DIAGNOSTIC(
    importance_of_another_source,
    "frugal: Importance: the training source does not draw by importance. Make it with the "
    "policy, as in `auto train = importance.source(set, {.batch = 32})`.");

struct DrawsByImportance {
  using sentence = importance_of_another_source;
  template <class Source>
  static constexpr bool met = std::same_as<order_type_of<Source>, ImportancePass>;
};

}  // namespace detail

/// Draws samples in proportion to their last loss, and weighs their losses so that the mean stays
/// that over the set.
///
/// Lever   runs to convergence.
/// Cost    per step one loss per sample and a multiplication; one wait for the device per epoch and
///         per save; 36 bytes a sample.
/// State   the last losses, and those of which the epoch's probabilities are. A fit that does not
///         resume begins without any, whatever trained with the policy before.
/// Errors  a training source that does not draw by importance does not compile, and neither does an
///         objective that does not weigh it; SettingsError for `uniform` outside (0, 1];
///         ConcurrentFitError while another fit trains with the same policy.
/// Source  Katharopoulos and Fleuret, "Not all samples are created equal: deep learning with
///         importance sampling" (ICML 2018); the share of uniform draws bounds the weights by its
///         inverse.
///
///     Importance<By<Loss>> importance(set.size());
///     auto train = importance.source(set, {.batch = 32});
///     Trainer trainer{net, importance.objective(CrossEntropy{}), Settings{}, Optimize<AdamW>{},
///                     importance};
template <class Score = By<Loss>>
class Importance {
  static_assert(std::same_as<Score, By<Loss>>,
                "frugal: Importance<...> draws by the loss: write Importance<By<Loss>>.");

 public:
  using kind = kinds::importance;
  using listens = list<on::fit_begin, on::ready>;
  using source_demands = list<detail::DrawsByImportance>;

  static constexpr About about{Term::runs_to_convergence, "a loss per sample; a wait per epoch"};

  Importance() = default;
  /// For a set of so many samples, of which the share `uniform` is drawn without regard to the
  /// loss.
  explicit Importance(std::uint64_t samples, double uniform = 0.2)
      : table_(std::make_shared<ImportanceTable>(samples, uniform)) {}

  /// A source of the set; copies of the policy share what they know of its losses.
  template <SampleSet Set, class Collate = Stack>
  auto source(Set set, LoaderOptions loading, Collate collate = {},
              LoaderSettings settings = {}) const {
    require_table(static_cast<std::uint64_t>(set.size()));
    CollateByImportance<Collate> weighing{std::move(collate), table_};
    return Loader<Set, CollateByImportance<Collate>, ImportancePass>(
        std::move(set), ImportancePass(table_, loading), std::move(weighing), std::move(settings));
  }

  /// The objective for it.
  template <class Objective>
  ImportanceObjective<Objective> objective(Objective objective) const {
    return {std::move(objective), table_};
  }

  ImportanceTable const* table() const { return table_.get(); }

  class State {
   public:
    explicit State(Importance const& policy) : table_(policy.table_) {}
    State(State const&) = delete;
    State& operator=(State const&) = delete;
    ~State() {
      if (has_begun_) detail::quietly([this] { table_->end_fit(); });
    }

    /// Before Checkpoint, which loads the table of a resumed run.
    void on_fit_begin(FitBegin&) {
      if (!table_) return;
      table_->begin_fit();
      has_begun_ = true;
    }
    void on_ready(Ready&) {
      if (table_) table_->open();
    }

    template <class Archive>
    void persist(Archive& archive) {
      if (table_) table_->persist(archive);
    }

   private:
    std::shared_ptr<ImportanceTable> table_;
    bool has_begun_ = false;
  };

 private:
  void require_table(std::uint64_t samples) const {
    if (table_ && table_->samples() == samples) return;
    throw SettingsError({.what = "Importance was made for " +
                                 std::to_string(table_ ? table_->samples() : 0) +
                                 " samples, and the set has " + std::to_string(samples),
                         .where = "Importance::source",
                         .why = "it keeps the last loss of each sample",
                         .fix = "Write Importance<By<Loss>> importance(set.size())."});
  }

  std::shared_ptr<ImportanceTable> table_;
};

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, C classes, ... whatever one sample has.
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/libtorch/quietly.hpp>
#include <frugal/core/run/forward_batch.hpp>
#include <frugal/core/run/loss.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/core/source/labels.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/collate.hpp>
#include <frugal/data/loading/loader.hpp>
#include <frugal/data/sampling/pass.hpp>
#include <frugal/policy/importance/pass.hpp>
#include <frugal/policy/kinds.hpp>

#include <ATen/ATen.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

namespace frugal {

/// The loss of each sample.
struct SampleLosses {
  at::Tensor losses_B;  ///< [B]
  at::Tensor output{};  ///< what the module predicted; may be undefined
};

namespace detail {

/// The means [B] of values [B, ...] over what each sample has of them; where `counts` [B, ...] is
/// given, over those at which it is true. A sample without any has 0.
at::Tensor means_of_samples(at::Tensor const& values, at::Tensor const& counts = {});

[[noreturn]] void refuse_class_weights();

}  // namespace detail

/// The loss of each sample under CrossEntropy: the mean over its labels that are not -100, or over
/// its positions where it has class probabilities. SettingsError with class weights: the mean over
/// the weights of labels is no mean over samples, which Importance estimates.
template <class Module, class B>
SampleLosses sample_losses(CrossEntropy const& objective, Module& module, B const& batch) {
  if (!objective.class_weights.empty()) detail::refuse_class_weights();
  at::Tensor logits = forward_batch(module, batch);
  at::Tensor const& target = batch_target(batch);
  bool const labels = detail::require_labels(logits, target);
  at::Tensor const losses = at::cross_entropy_loss(
      logits, target, /*weight=*/{}, at::Reduction::None, ignored_label, objective.label_smoothing);
  return {.losses_B =
              detail::means_of_samples(losses, labels ? target.ne(ignored_label) : at::Tensor()),
          .output = std::move(logits)};
}

/// The loss of each sample under MeanSquaredError, L1 or Huber: of one with a mask that fits, the
/// mean over the positions of the mask.
template <detail::OfErrors O, class Module, class B>
SampleLosses sample_losses(O const& objective, Module& module, B const& batch) {
  at::Tensor output = forward_batch(module, batch);
  detail::require_one_shape(output, batch_target(batch), O::name);
  at::Tensor const losses = objective.errors(output, batch_target(batch), at::Reduction::None);
  at::Tensor mask;
  if constexpr (CountsLabels<B> && requires { batch.mask.dim(), batch.target_padded; }) {
    if (batch.target_padded) mask = batch.mask;
  }
  return {.losses_B = detail::means_of_samples(losses, mask), .output = std::move(output)};
}

/// An objective that says the loss of each sample: `SampleLosses sample_losses(module, batch)`.
template <class O, class Module, class B>
  requires requires(O& objective, Module& module, B const& batch) {
    { objective.sample_losses(module, batch) } -> std::convertible_to<SampleLosses>;
  }
SampleLosses sample_losses(O& objective, Module& module, B const& batch) {
  return objective.sample_losses(module, batch);
}

/// Another objective over samples that were drawn with unequal probabilities: the mean of their
/// losses, each times 1 / (N p), is an unbiased estimate of the mean over the set. Batches that
/// were drawn otherwise, in a validation, are that objective's own.
///
/// Errors  an objective without sample_losses does not compile.
/// Source  importance sampling; Katharopoulos and Fleuret, "Not all samples are created equal"
///         (ICML 2018).
template <class Objective>
struct ImportanceObjective {
  Objective objective;
  std::shared_ptr<ImportanceTable> table;

  template <class Module, class B>
  Loss operator()(Module& module, ImportanceBatch<B> const& batch) {
    static_assert(
        requires { sample_losses(objective, module, batch.batch); },
        "frugal: Importance needs the loss of each sample. CrossEntropy and "
        "MeanSquaredError have it; give yours a member `SampleLosses "
        "sample_losses(module, batch)`.");
    SampleLosses samples = sample_losses(objective, module, batch.batch);
    if (table->records() && base_module(module).is_training()) {
      table->record(batch.index_B, samples.losses_B);
    }
    return {.value = (samples.losses_B * batch.weight_B).mean(),
            .weight = static_cast<double>(batch.index_B.numel()),
            .output = std::move(samples.output)};
  }

  template <class Module, class B>
    requires ObjectiveFor<Objective, Module, B>
  auto operator()(Module& module, B const& batch) {
    return objective(module, batch);
  }
};

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

#ifndef FRUGAL_COMPILED
#include <frugal/policy/importance.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples in a batch, C classes, ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <memory>
#include <utility>

#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/forward_batch.hpp>
#include <frugal/core/run/loss.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/core/source/labels.hpp>
#include <frugal/policy/importance/pass.hpp>
#include <frugal/policy/importance/table.hpp>

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

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/importance/objective.ipp>
#endif

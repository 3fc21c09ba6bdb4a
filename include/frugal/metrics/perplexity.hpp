// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes (the vocabulary), ... whatever one sample has.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <string_view>

#include <frugal/core/run/objective.hpp>
#include <frugal/metrics/decisions.hpp>

namespace frugal {

/// exp of the mean negative log-likelihood of the labels, in nats: "perplexity". NaN where no label
/// counts.
///
/// Logits [B, C, ...] with labels [B, ...], in single precision at least; labels of -100 are left
/// out. It is made of the logits and not of the loss, in which smoothing, class weights and ignored
/// labels may be. MetricError for other shapes, and for labels that name no class. Cost: one softmax over the logits.
class Perplexity {
 public:
  static constexpr std::string_view name = "perplexity";

  template <class B>
  void add(Loss const& loss, B const& batch) {
    auto const [logits, labels] =
        detail::scores_of(detail::output_of(loss, name), detail::target_of(batch), name);
    bool const is_double = logits.scalar_type() == at::kDouble;
    at::Tensor const exact = is_double ? logits : logits.to(at::kFloat);
    // An operator of LibTorch fails for such a label: on a device with an assertion that ends the process.
    at::Tensor own = labels;
    if (labels_.add(labels, exact.size(1))) {
      own = labels.masked_fill(labels.ge(exact.size(1)).logical_or_(labels.lt(0)), ignored_label);
    }
    // Each label's own, so that the sum over them is in double precision.
    at::Tensor const nats =
        at::cross_entropy_loss(exact, own, /*weight=*/{}, at::Reduction::None, ignored_label);
    nats_.add(nats.sum(at::kDouble));
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    nats_.reduce(sum);
    labels_.reduce(sum);
  }
  double result() const { return std::exp(nats_.value() / labels_.counted(name)); }
  template <class Archive>
  void persist(Archive& archive) {
    nats_.persist(archive, "nats");
    labels_.persist(archive);
  }

 private:
  detail::Tally nats_;
  detail::LabelTally labels_;
};

}  // namespace frugal

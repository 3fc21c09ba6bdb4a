// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <frugal/base/memory.hpp>
#include <frugal/core/libtorch/cuda_memory.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/gauges.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/scalar_accumulator.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/report/sink/record.hpp>

namespace frugal::detail {

/// Makes the records of a run for Log and for each metric sink. `step` and `epoch` may wait for a
/// device, so they are called at a cadence; in between a collector does nothing.
class MetricCollector {
 public:
  /// `steps`: whether `step` will be called.
  void follow(FitBegin& phase, bool steps) {
    if (steps) phase.follow(since_step_);
    phase.follow(since_epoch_);
  }

  MetricRecord begin(Phase const& phase) const {
    MetricRecord record = at(RecordKind::begin, "begin", phase);
    std::uint64_t count = 0;
    for (at::Tensor const& tensor : phase.parameters().tensors) {
      count += static_cast<std::uint64_t>(tensor.numel());
    }
    record.add("parameters", count).add("seed", std::uint64_t{phase.settings().seed});
    for (auto const& [name, value] : phase.settings().options) record.add("option." + name, value);
    return record;
  }

  MetricRecord step(Step& phase) {
    MetricRecord record = at(RecordKind::step, "step", phase);
    record.add("loss", phase.last_loss()).add("lr_factor", phase.learning_rate_factor());
    if (auto const rate = phase.learning_rate()) record.add("learning_rate", *rate);
    for (auto const& [name, rate] : phase.group_learning_rates()) record.add("lr/" + name, rate);
    if (phase.gradient_norm().known()) record.add("gradient_norm", phase.gradient_norm().value());
    if (phase.counters().non_finite_windows != 0)
      record.add("skipped", phase.counters().non_finite_windows);
    add_measured(record, phase, since_step_);
    return record;
  }

  static MetricRecord validation(Validated const& phase) {
    MetricRecord record = at(RecordKind::validation, "validation", phase);
    for (auto const& [name, value] : phase.metrics) record.add(name, value);
    return record;
  }

  MetricRecord epoch(EpochEnd& phase) {
    MetricRecord record = at(RecordKind::epoch, "epoch", phase);
    record.add("loss", phase.mean_loss());
    add_measured(record, phase, since_epoch_);
    return record;
  }

  static MetricRecord end(FitEnd const& phase) {
    MetricRecord record = at(RecordKind::end, "end", phase);
    record.add("stopped_by", phase.stopped_by());
    record.preempted = phase.preempted();
    return record;
  }

  static MetricRecord event(Event const& event);

  template <class Archive>
  void persist(Archive& archive) {
    archive("train_metrics_of", train_metrics_of_);
    archive.scope("since_step", [&](auto& inner) { since_step_.persist(inner); });
    archive.scope("since_epoch", [&](auto& inner) { since_epoch_.persist(inner); });
  }

 private:
  static MetricRecord at(RecordKind kind, std::string_view name, Phase const& phase) {
    MetricRecord record{.kind = kind, .name = std::string(name), .at = phase.counters()};
    record.fields.reserve(8);
    record.seconds = phase.seconds();
    return record;
  }

  /// The objective's scalars, metrics of the training batches and the speed as far as they are new,
  /// and all gauges.
  void add_measured(MetricRecord& record, Step& phase, ScalarSpan& since) {
    for (auto const& [name, mean] : phase.scalars(since)) record.add(name, mean);
    Validation const& measured = phase.train_metrics();
    if (!measured.metrics.empty() && measured.step != train_metrics_of_) {
      train_metrics_of_ = measured.step;
      for (auto const& [name, value] : measured.metrics) record.add(name, value);
    }
    if (phase.speed() && phase.speed()->step != speed_of_) add_speed(record, *phase.speed());
    if (auto const bytes = watch::resident_bytes()) {
      phase.set_gauge("memory_bytes", static_cast<double>(*bytes));
    }
    if (auto const bytes = tensor_bytes(phase.settings().device)) {
      phase.set_gauge("device_memory_bytes", static_cast<double>(*bytes));
    }
    for (auto const& [name, value] : phase.gauges().items()) {
      // An objective's scalar of the same name is the user's, and comes first.
      if (record.find(name) == nullptr) record.add(name, value);
    }
  }

  void add_speed(MetricRecord& record, Speed const& speed);

  ScalarSpan since_step_;   ///< of the objective's scalars, since the last record of a step
  ScalarSpan since_epoch_;  ///< likewise, of an epoch
  std::optional<std::uint64_t> train_metrics_of_;  ///< step of the last ones in a record
  std::optional<std::uint64_t> speed_of_;          ///< likewise
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/sink/collector.ipp>
#endif

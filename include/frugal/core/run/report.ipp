// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/run/report.hpp>

#include <frugal/base/json_writer.hpp>
#include <frugal/base/memory.hpp>
#include <frugal/core/libtorch/cuda_memory.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE MemoryMeter::MemoryMeter(c10::Device device)
    : device_(device),
      resident_(watch::resident_bytes()),
      peak_before_(watch::peak_resident_bytes()) {
  forget_tensor_peak(device_);
}

FRUGAL_INLINE MemoryPeaks MemoryMeter::read() const {
  MemoryPeaks peaks{.process = watch::peak_resident_bytes(), .device = peak_tensor_bytes(device_)};
  if (peaks.process && peak_before_ && resident_ && *peaks.process > *peak_before_ &&
      *peaks.process > *resident_) {
    peaks.growth = *peaks.process - *resident_;
  }
  return peaks;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE int Report::exit_code() const {
  if (!unsaved.empty()) return 74;
  if (interrupted) return 130;
  return preempted ? 75 : 0;
}

FRUGAL_INLINE Metrics const& Report::last() const {
  if (validations.empty()) {
    throw MetricError({.what = "the run has no validation",
                       .where = "Report::last",
                       .why = "fit was given no validation data, or ended before the first",
                       .fix = "Call fit(train, valid)."});
  }
  return validations.back().metrics;
}

FRUGAL_INLINE std::string json_line(Report const& report) {
  detail::JsonWriter out;
  auto const metrics = [&](Metrics const& all) {
    for (auto const& [name, value] : all) out.add(name, value);
  };
  out.object()
      .add("epochs", report.epochs)
      .add("steps", report.steps)
      .add("samples", report.samples)
      .add("seconds", report.seconds)
      .add("seconds_before", report.seconds_before)
      .add("train_loss", report.train_loss)
      .key("train_metrics")
      .object();
  metrics(report.train_metrics);
  out.end().add("validation_count", report.validation_count).key("validation");
  if (report.validations.empty()) {
    out.raw("null");
  } else {
    Validation const& last = report.validations.back();
    out.object().add("epoch", last.epoch).add("step", last.step).key("metrics").object();
    metrics(last.metrics);
    out.end().end();
  }
  out.add("restored_step", report.restored_step)
      .add("stopped_by", report.stopped_by)
      .add("preempted", report.preempted)
      .add("preempted_by", report.preempted_by)
      .add("interrupted", report.interrupted)
      .add("unsaved", report.unsaved)
      .add("exit_code", report.exit_code())
      .key("resumed");
  if (!report.resumed) {
    out.raw("null");
  } else {
    Resumed const& from = *report.resumed;
    out.object()
        .add("from", from.from)
        .add("step", from.step)
        .add("steps_repeated", from.steps_repeated)
        .add("seconds_lost", from.seconds_lost);
    for (auto const& [name, list] :
         {std::pair("damaged", &from.damaged), {"changed", &from.changed}}) {
      out.key(name).array();
      for (std::string const& each : *list) out.value(each);
      out.end();
    }
    out.end();
  }
  out.add("non_finite_windows", report.non_finite_windows).key("memory").object();
  out.add("process", report.memory.process)
      .add("growth", report.memory.growth)
      .add("device", report.memory.device)
      .end()
      .key("options")
      .object();
  for (auto const& [name, value] : report.options) out.add(name, value);
  out.end().key("warnings").array();
  for (std::string const& each : report.warnings) out.value(each);
  return out.str();
}

}  // namespace frugal

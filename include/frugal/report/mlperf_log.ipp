// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/mlperf_log.hpp>

#include <frugal/inline.hpp>

#include <limits>

namespace frugal::detail {

FRUGAL_INLINE void MlperfSink::write(MetricRecord const& record) {
  switch (record.kind) {
    case RecordKind::begin:
      return begin(record);
    case RecordKind::step:
      return step(record);
    case RecordKind::validation:
      return validation(record);
    case RecordKind::epoch:
      return interval_end("epoch_stop", at_epoch(record.at.epoch));
    case RecordKind::end:
      return end(record);
    case RecordKind::event:
      return;  // the format has no place for them
  }
}

FRUGAL_INLINE void MlperfSink::put(std::string const& lines) {
  // None of them is kept when a run goes back: the format has no events of the run itself.
  file_.append(lines, "", [](std::string_view) { return std::string_view(); });
}

FRUGAL_INLINE void MlperfSink::begin(MetricRecord const& record) {
  // A resumed run has begun before.
  if (file_.continues(record.at.step)) return;
  // In the order of their times: initialisation began before any of these lines is made.
  std::string lines = mllog_line(init_, "INTERVAL_START", "init_start", "null", "{}");
  for (auto const& [key, value] : values_) lines += point(key, mllog_value(value), {});
  lines += point("seed", std::to_string(seed_), {});
  lines += mllog_line(now(), "INTERVAL_END", "init_stop", "null", "{}");
  lines += mllog_line(now(), "INTERVAL_START", "run_start", "null", "{}");
  put(lines);
}

FRUGAL_INLINE void MlperfSink::step(MetricRecord const& record) {
  put(point("tracked_stats", mllog_object(record.fields),
            {{"step", record.at.step}, {"samples_count", record.at.sample}}));
}

FRUGAL_INLINE void MlperfSink::validation(MetricRecord const& record) {
  // The epoch that it is in: the one that has begun, or at its end the one that is complete.
  std::uint64_t const epoch = record.at.epoch + (record.at.position != 0 ? 1 : 0);
  Fields const where{{"epoch_num", epoch}, {"samples_count", record.at.sample}};
  std::string lines = mllog_line(validation_began_.value_or(now()), "INTERVAL_START", "eval_start",
                                 "null", mllog_object(where));
  if (auto const measured = record.number(metric_)) {
    lines += point("eval_accuracy", mllog_value(*measured), where);
    if (target_ && (below_ ? *measured <= *target_ : *measured >= *target_)) reached_ = true;
  }
  lines += mllog_line(now(), "INTERVAL_END", "eval_stop", "null", mllog_object(where));
  put(lines);
}

FRUGAL_INLINE void MlperfSink::end(MetricRecord const& record) {
  // Also of a preempted run: if that is resumed, this line is cut off.
  bool const success = target_ ? reached_ : record.text("stopped_by").empty();
  interval_end("run_stop", {{"status", std::string(success ? "success" : "aborted")},
                            {"samples_count", record.at.sample}});
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/sink/collector.hpp>

#include <frugal/inline.hpp>

#include <utility>

namespace frugal::detail {

FRUGAL_INLINE MetricRecord MetricCollector::event(Event const& event) {
  MetricRecord record{.kind = RecordKind::event, .name = event.name, .at = event.at};
  record.seconds = event.seconds;
  record.fields = event.fields;
  return record;
}

FRUGAL_INLINE void MetricCollector::add_speed(MetricRecord& record, Speed const& speed) {
  speed_of_ = speed.step;
  record.add("step_seconds", speed.step_seconds)
      .add("samples_per_second", speed.samples_per_second)
      .add("tokens_per_second", speed.tokens_per_second);
  if (speed.flops_per_step) record.add("flops_per_step", *speed.flops_per_step);
  if (speed.flops_per_second) record.add("flops_per_second", *speed.flops_per_second);
  if (speed.utilisation) record.add("utilisation", *speed.utilisation);
  if (speed.data_wait) record.add("data_wait", *speed.data_wait);
}

}  // namespace frugal::detail

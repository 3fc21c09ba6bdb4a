// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/csv.hpp>

#include <frugal/inline.hpp>
#include <frugal/report/sink/record.hpp>

namespace frugal::detail {

FRUGAL_INLINE void CsvSink::write(MetricRecord const& record) {
  // A resumed run has begun before.
  if (record.kind == RecordKind::begin && file_.continues(record.at.step)) return;
  file_.append(csv_rows(record), csv_header, csv_event);
}

}  // namespace frugal::detail

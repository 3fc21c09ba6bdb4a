// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/prometheus.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/sink/record.hpp>

namespace frugal::detail {

FRUGAL_INLINE void PrometheusFile::write(MetricRecord const& record) {
  exposition_.take(record);
  exposition_.stamp(unix_time());
  if (path_.has_parent_path()) create_folders(path_.parent_path());
  // Not durable: after a crash of the machine the values are worthless anyway, and an fsync would
  // stall training. The name of what is being written ends in .new: node_exporter reads only
  // *.prom.
  write_whole_file(path_, exposition_.text(labels_), Durable::no);
}

}  // namespace frugal::detail

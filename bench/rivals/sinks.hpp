// SPDX-License-Identifier: Apache-2.0
// Recipe "sinks": every metric sink, each at every 100th step; compared with the loop of "none",
// which writes nothing.
#pragma once

#include <frugal/report.hpp>
#include <frugal/report/prometheus_endpoint.hpp>
#include <frugal/report/tensorboard.hpp>

#include <unistd.h>

#include <filesystem>
#include <string>

#include "job.hpp"

namespace frugal_bench {

/// What a user's function does at least: it reads a value.
struct KeepLoss {
  void operator()(fr::MetricRecord const& record) const {
    if (auto const found = record.number("loss")) *loss = *found;
  }
  double* loss;
};

inline void frugal_sinks(Net& net, fr::TensorDataset& source, std::uint64_t steps) {
  auto const folder =
      std::filesystem::temp_directory_path() / ("frugal-bench-" + std::to_string(::getpid()));
  double loss = 0;
  using Cadence = fr::Every<100>;
  fr::PrometheusEndpoint<Cadence> endpoint{};
  endpoint.port = 0;
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.run_dir = folder, .steps = steps},
                      fr::Optimize<fr::AdamW>{},
                      fr::Log<Cadence>{},
                      fr::Csv<Cadence>{},
                      fr::TensorBoard<Cadence>{},
                      fr::MlperfLog<Cadence>{},
                      fr::Prometheus<Cadence>{},
                      endpoint,
                      fr::OnMetrics<KeepLoss, Cadence>{.call = {&loss}}};
  static_cast<void>(trainer.fit(source));
  std::filesystem::remove_all(folder);
}

}  // namespace frugal_bench

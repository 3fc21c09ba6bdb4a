// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/policy/run_folder.hpp>
#include <frugal/report/sink/exposition.hpp>
#include <frugal/report/sink/state.hpp>

namespace frugal::kinds {

struct prometheus : optional_kind {
  static constexpr std::string_view name = "Prometheus";
  static constexpr std::string_view page = "report/prometheus.md";
  static constexpr bool once_per_run = true;
  static constexpr Stage stage = Stage::publish;
};

}  // namespace frugal::kinds

namespace frugal {

namespace detail {

class PrometheusFile {
 public:
  static constexpr bool forgets = true;

  template <class Policy>
  explicit PrometheusFile(Policy const& policy) : path_(policy.file), labels_(policy.labels) {}

  void open(FitBegin& phase) {
    std::filesystem::path const& run = phase.settings().run_dir;
    if (path_.empty() && run.empty()) {
      throw SettingsError({.what = "Prometheus has no file",
                           .where = "Prometheus::file",
                           .why = "neither it nor Settings::run_dir is set",
                           .fix = "Set Settings::run_dir, or a file that ends in .prom."});
    }
    if (path_.empty()) {
      lock_run_folder_if_possible(phase.run_state());
      path_ = run / "metrics.prom";
    }
    // The rename would replace a device or a pipe by a file.
    std::error_code ignored;
    if (std::filesystem::exists(path_, ignored) &&
        !std::filesystem::is_regular_file(path_, ignored)) {
      throw SettingsError({.what = "the file of Prometheus is no regular file",
                           .where = path_.string(),
                           .why = "it is replaced at each write",
                           .fix = "Set Prometheus::file to a path that ends in .prom."});
    }
    labels_ = checked_labels(labels_, run.string(), "Prometheus::labels");
    if (auto const text = label_advice(labels_, "Prometheus"); !text.empty()) phase.warn(text);
  }

  void write(MetricRecord const& record);

  template <class Archive>
  void persist(Archive& archive, SinkMoment const& now) {
    exposition_.persist(archive, now.in_run);
  }

 private:
  std::filesystem::path path_;
  PrometheusLabels labels_;
  Exposition exposition_;
};

}  // namespace detail

/// Writes the last values of a run to a text file that Prometheus's node_exporter reads.
///
/// Lever   none: a dashboard and alerts for a run, such as one whose dollars grow and whose loss
///         does not fall.
/// Cost    at its cadence one small file and, with the losses on a device, one host sync; between
///         times one comparison of a counter.
/// State   the means since the last record, and the last values: the file of a run that is started
///         again has them before the first step.
/// Errors  SettingsError without a file, for one that is no regular file, and for an invalid label.
///         A write that fails later is a warning, and counted (`outcome`).
/// Source  https://prometheus.io/docs/instrumenting/exposition_formats/
template <class Cadence = Every<100>>
struct Prometheus {
  static_assert(detail::option::cadence::has<Cadence>,
                "frugal: Prometheus<Cadence>: the option is a cadence, such as Every<100> or "
                "Every<1, Epoch>.");

  using kind = kinds::prometheus;
  using listens = detail::sink_listens;

  static constexpr About about{Term::none, "a small file at its cadence"};

  Cadence every{};
  std::filesystem::path file{};    ///< ends in .prom; empty: metrics.prom in the run directory
  PrometheusLabels labels{};       ///< of every series; `run` is the run directory by default
  Outcome<SinkOutcome> outcome{};  ///< set by fit: what arrived, and what was lost

  using State = detail::SinkState<Cadence, detail::PrometheusFile>;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/prometheus.ipp>
#endif

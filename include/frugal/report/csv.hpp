// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/report/sink/file.hpp>
#include <frugal/report/sink/state.hpp>

namespace frugal::kinds {

struct csv : repeatable_kind {
  static constexpr std::string_view name = "Csv";
  static constexpr std::string_view page = "report/csv.md";
  static constexpr bool once_per_run = true;
  static constexpr Stage stage = Stage::publish;
};

}  // namespace frugal::kinds

namespace frugal {

namespace detail {

class CsvSink {
 public:
  template <class Policy>
  explicit CsvSink(Policy const& policy) : path_(policy.path) {}

  void open(FitBegin& phase) {
    file_.open(sink_path(path_, phase.run_state(), "metrics.csv", "Csv"), "Csv", links_of(path_));
    if (file_.regular()) phase.writes_to(file_.path());
  }
  void write(MetricRecord const& record);
  template <class Archive>
  void persist(Archive& archive, SinkMoment const& now) {
    file_.persist(archive, now.in_run);
  }
  std::string lacks() const { return file_.lacks(); }

 private:
  std::filesystem::path path_;
  SinkFile file_;
};

}  // namespace detail

/// Logs a run as CSV (RFC 4180) to `metrics.csv` in the run directory: one row per value.
///
/// Lever   none; the record of Log for spreadsheets and data frames.
/// Cost    at its cadence one write and, with the losses on a device, one host sync; between times
///         one comparison of a counter.
/// State   the length of the file and a mark of its end: a resumed run cuts off the rows that it
///         writes again. A file that is shorter than it was is a warning.
/// Errors  SettingsError without a folder to write to; DataError if the file cannot be opened. A
///         failed write is a warning, once, and counted (`outcome`).
///
/// The columns are event, step, epoch, samples, seconds, name, value. They never change: a value
/// that appears later, such as a validation's, is another row and not another column.
template <class... Options>
struct Csv {
 private:
  using classes = list<detail::option::cadence>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: Csv<...>: unknown option. Options: a cadence such as Every<100> or "
                "Every<1, Epoch>.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: Csv<...>: two cadences. Write one Csv for each of them.");
  using Cadence = detail::option_of<detail::option::cadence, Every<100>, Options...>;

 public:
  using kind = kinds::csv;
  using listens = detail::sink_listens;

  static constexpr About about{Term::none, "some rows at its cadence"};

  Cadence every{};
  /// Empty: `metrics.csv` in Settings::run_dir.
  std::filesystem::path path{};
  Outcome<SinkOutcome> outcome{};  ///< set by fit: records written, and lost

  using State = detail::SinkState<Cadence, detail::CsvSink>;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/csv.ipp>
#endif

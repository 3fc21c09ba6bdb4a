// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/core/run/event.hpp>
#include <frugal/core/run/metrics.hpp>

namespace frugal {

/// The most memory that a fit has taken, in bytes.
struct MemoryPeaks {
  /// Most resident bytes of the process in its life so far, as the kernel counts them (VmHWM): also
  /// what no fit has taken.
  std::optional<std::uint64_t> process{};
  /// `process`, less what was resident when this fit began, with the module on its device. Nothing
  /// if the process had its peak before this fit, which hides the fit's own.
  std::optional<std::uint64_t> growth{};
  /// Most bytes of tensors on the GPU in Settings::device, as LibTorch's caching allocator counts
  /// them: since this fit began, those of other fits and of the program included. AutoBatch's
  /// search begins the count again. Nothing without a GPU.
  std::optional<std::uint64_t> device{};
};

namespace detail {

/// Measures them; made when the module is on its device.
class MemoryMeter {
 public:
  explicit MemoryMeter(c10::Device device);

  MemoryPeaks read() const;

 private:
  c10::Device device_;
  std::optional<std::uint64_t> resident_, peak_before_;
};

}  // namespace detail

/// The result of a fit.
struct [[nodiscard]] Report {
  std::uint64_t epochs = 0;   ///< complete epochs, those before a resume included
  std::uint64_t steps = 0;    ///< optimizer steps, likewise
  std::uint64_t samples = 0;  ///< training samples, likewise
  double seconds = 0;         ///< wall time of this fit alone, validation included
  double train_loss = 0;      ///< weighted mean over the last epoch, or what there was of it
  std::string stopped_by;     ///< kind of the policy that ended the run; empty: it ran to its end
  /// The newest 1000 validations, oldest first; only the last one has its tables.
  std::vector<Validation> validations;
  std::vector<std::string> warnings;     ///< recommendations, each once
  std::optional<Resumed> resumed{};      ///< the checkpoint it resumed from, and the repeated work
  bool preempted = false;                ///< saved before its end: start it again to resume
  std::uint64_t non_finite_windows = 0;  ///< windows whose gradients overflowed, not in `steps`
  double seconds_before = 0;             ///< of training, before the checkpoint it resumed from
  Metrics train_metrics{};               ///< of the training batches, the last ones (TrainMetrics)
  std::string unsaved{};  ///< why the end is not saved; empty: it is, or there is no Checkpoint
  /// The user pressed Ctrl-C. `preempted` is set as well, unless the run had ended.
  bool interrupted = false;
  /// The step of the best weights, if EarlyStop has restored them.
  std::optional<std::uint64_t> restored_step{};
  std::uint64_t validation_count = 0;  ///< of the whole run, those not in `validations` included
  MemoryPeaks memory{};                ///< the most that this fit, and this process, have taken
  std::map<std::string, std::string> options{};  ///< what apply() has set, by name
  std::string preempted_by{};  ///< kind of the policy that asked for it first, or "Settings::stop"

  /// Wall time of the whole run, without steps lost by a kill. `samples` divided by it is the run's
  /// rate.
  double total_seconds() const { return seconds_before + seconds; }

  /// For main() to return, by sysexits.h: 0; 75 (EX_TEMPFAIL) for a preempted run that is saved and
  /// must be started again; 74 (EX_IOERR) for a run whose end could not be saved, preempted or not;
  /// 130, as shells have it, after Ctrl-C.
  int exit_code() const;

  /// Metrics of the last validation; throws MetricError when there was none.
  Metrics const& last() const;

  friend std::ostream& operator<<(std::ostream& out, Report const& report) {
    out << detail::count_text(report.epochs, "epoch") << ", "
        << detail::count_text(report.steps, "step") << ", "
        << detail::count_text(report.samples, "sample") << " in " << report.total_seconds()
        << " s; training loss " << report.train_loss;
    for (auto const& [name, value] : report.train_metrics) out << ", " << name << ' ' << value;
    if (!report.validations.empty()) {
      for (auto const& [name, value] : report.validations.back().metrics) {
        out << ", validation " << name << ' ' << value;
      }
    }
    if (report.resumed) {
      out << "; resumed from step " << report.resumed->step << ", at " << report.seconds_before
          << " s, " << detail::count_text(report.resumed->steps_repeated, "step") << " repeated, "
          << report.resumed->seconds_lost << " s of training lost";
    }
    if (report.non_finite_windows != 0)
      out << "; " << detail::count_text(report.non_finite_windows, "step")
          << " skipped for overflow";
    if (!report.stopped_by.empty()) out << "; stopped by " << report.stopped_by;
    if (report.restored_step) out << "; weights of step " << *report.restored_step << " restored";
    if (!report.unsaved.empty()) out << "; the end is not saved: " << report.unsaved;
    for (std::string const& hint : report.warnings) out << "\nwarning: " << hint;
    return out;
  }
};

/// The report as one JSON object on one line, without a line feed, for scripts: all members but `validations`, of
/// which it has the last one and the count. A number that JSON cannot express is null.
std::string json_line(Report const& report);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/report.ipp>
#endif

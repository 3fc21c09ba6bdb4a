// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <filesystem>
#include <string>
#include <utility>

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/written_name.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/run_folder.hpp>
#include <frugal/report/html/run_page.hpp>

namespace frugal {

/// Writes a report of the run when fit ends or is preempted: report.html in the run directory, one
/// file with curves, costs, interruptions, hot spots and more (docs/report.md).
///
/// Lever   none: it shows what the run cost, and where its time went.
/// Cost    once, at the end: reading the log, about a second per million lines.
/// State   whether the log has the line "recipe", which names the policies and the device.
/// Errors  SettingsError without Settings::run_dir. A report that cannot be written is a warning; the
///         run is over by then, and its result stands.
template <class... Options>
struct HtmlReport {
  static_assert(sizeof...(Options) == 0,
                "frugal: HtmlReport<> has no options. Set HtmlReport::path for another file.");
  FRUGAL_DIAGNOSTIC(without_log,
                    "frugal: HtmlReport needs Log: the report is drawn from its lines. Add "
                    "Log<Every<100>>.");

  using kind = kinds::html_report;
  using listens = list<on::fit_begin, on::ready, on::fit_end>;
  using needs = list<need<kinds::log, without_log>>;
  // All that write lines or files at the end of a fit.
  using after = list<kinds::spot>;

  static constexpr About about{Term::none, "reads the log once, when the run ends"};

  std::filesystem::path path{};  ///< empty: `report.html` in Settings::run_dir

  template <class Context>
  class State {
   public:
    using dispensable = void;  // a recipe may gain it, or lose it

    explicit State(HtmlReport const& settings) : path_(settings.path) {}

    void on_fit_begin(FitBegin& phase) {
      if (phase.settings().run_dir.empty()) {
        throw SettingsError({.what = "HtmlReport has no run to report on",
                             .where = "HtmlReport",
                             .why = "Settings::run_dir is not set, where Log writes metrics.jsonl",
                             .fix = "Set Settings::run_dir to a folder."});
      }
      if (!path_.empty()) return;
      detail::lock_run_folder_if_possible(phase.run_state());
      path_ = phase.settings().run_dir / "report.html";
    }

    void on_ready(Ready& phase) {
      if (std::exchange(told_, true)) return;
      phase.record({.name = "recipe",
                    .fields = {{"recipe", detail::written_recipe(typename Context::policies{})},
                               {"device", phase.settings().device.str()}}});
    }

    /// Also after a preemption: the run directory then shows how far it is.
    void on_fit_end(FitEnd& phase) {
      try {
        write_run_report(path_, phase.settings().run_dir);
      } catch (std::exception const& error) {
        phase.warn("HtmlReport: there is no report: " + std::string(error.what()));
      }
    }

    template <class Archive>
    void persist(Archive& archive) {
      archive("told", told_);
    }

   private:
    std::filesystem::path path_;
    bool told_ = false;
  };
};

}  // namespace frugal

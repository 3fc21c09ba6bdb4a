// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/report/plan/all_reduce.hpp>
#include <frugal/report/plan/compute_optimal.hpp>
#include <frugal/report/plan/memory.hpp>
#include <frugal/report/plan/money.hpp>
#include <frugal/report/plan/plan.hpp>
#include <frugal/report/plan/require.hpp>
#include <frugal/report/plan/spot_cost.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::plan {

/// Cost of training = price per hour x hours per run x runs. Every lever lowers one of the three.
struct RunCost {
  PricePerDevice price{};
  double devices = 1;
  double hours = 0;  ///< of a run, on all devices at once
  double runs = 1;

  constexpr Usd per_hour() const { return price * DeviceHours(devices); }
  constexpr DeviceHours per_run_hours() const { return DeviceHours(devices * hours); }
  constexpr Usd per_run() const { return price * per_run_hours(); }
  constexpr Usd total() const { return per_run() * runs; }

  /// Throws SettingsError for what is negative or not finite.
  constexpr RunCost const& checked() const {
    detail::require_not_negative("price", price.value());
    detail::require_positive("devices", devices);
    detail::require_not_negative("hours", hours);
    detail::require_not_negative("runs", runs);
    return *this;
  }

  /// The price that a published cost of one run implies: compare it with a price list.
  static constexpr RunCost from_total(Usd one_run, double devices, double hours, double runs = 1) {
    detail::require_not_negative("cost of a run", one_run.value());
    detail::require_positive("devices", devices);
    detail::require_positive("hours", hours);
    return RunCost{.price = PricePerDevice(one_run.value() / (devices * hours)),
                   .devices = devices,
                   .hours = hours,
                   .runs = runs}
        .checked();
  }
};

/// The three terms of the cost.
enum class Term { price, hours, runs };
/// Where a lever's factor comes from.
enum class Evidence { measured, assumed };

constexpr std::string_view name_of(Term term) {
  return term == Term::price ? "price per hour" : term == Term::hours ? "hours per run" : "runs";
}
constexpr std::string_view name_of(Evidence evidence) {
  return evidence == Evidence::measured ? "measured" : "assumed";
}

/// One lever multiplies one term by a factor: BF16 from 72 h to 48 h is {hours, 48 / 72.0}. A
/// factor above 1 is a lever that costs.
struct Lever {
  std::string name{};
  Term term = Term::hours;
  double factor = 1;
  Evidence evidence = Evidence::assumed;
  std::string note{};
};

/// The cost after one more lever.
struct BreakdownStep {
  std::string name{};
  RunCost cost{};
  Usd saved{};  ///< by this lever, after those before it
  std::string note{};
};

/// Cost before, after each lever in turn, and after all. The order decides how the saving is shared
/// out among the levers, and not what they save together: factors multiply.
class Breakdown {
 public:
  explicit Breakdown(RunCost const& before, std::string title = "Levers")
      : title_(std::move(title)) {
    steps_.push_back({.name = "baseline", .cost = before.checked()});
  }

  /// Throws SettingsError for a factor that is negative or not finite.
  Breakdown& add(Lever const& lever);

  std::string const& title() const { return title_; }
  std::vector<BreakdownStep> const& steps() const { return steps_; }
  RunCost const& before() const { return steps_.front().cost; }
  RunCost const& after() const { return steps_.back().cost; }
  Usd saved() const { return before().total() - after().total(); }
  /// The saving as a share of the cost before; 0 if that was 0.
  double saved_share() const { return before().total() > Usd(0) ? saved() / before().total() : 0; }

  /// The waterfall that report.html draws (levers.json).
  std::string json() const;

  /// Replaces the file as a whole. Throws StoreError.
  void write(std::filesystem::path const& path) const {
    frugal::detail::write_whole_file(path, json(), frugal::detail::Durable::no);
  }

 private:
  std::string title_;
  std::vector<BreakdownStep> steps_;
};

}  // namespace frugal::plan

/// The results of the formulas as plans.
namespace frugal::plan {

/// The devices on which a budget is spent; hours need their speed, and dollars a price.
struct Spending {
  Speed speed{};
  std::optional<PricePerDevice> price{};
};

/// Adds, if `on` is given, the device hours and the cost of each allocation.
Plan plan_of(OptimalPlan const& got, std::optional<Spending> const& on = {});

Plan plan_of(RunCost const& cost);

/// The rows are keyed by the names of the levers, which are the user's.
Plan plan_of(Breakdown const& breakdown);

/// `sample`: what `job` counts as samples, such as "tokens".
Plan plan_of(DataParallel const& job, std::string const& sample = "samples");

Plan plan_of(MemoryEstimate const& got);

Plan plan_of(CheckpointInputs const& in);

Plan plan_of(SpotInputs const& in);

}  // namespace frugal::plan

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/tables.ipp>
#endif

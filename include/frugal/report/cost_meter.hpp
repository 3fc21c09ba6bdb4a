// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <frugal/base/number_text.hpp>
#include <frugal/base/signal_free_thread.hpp>
#include <frugal/base/wall_clock.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/run_folder.hpp>
#include <frugal/policy/step_pace.hpp>
#include <frugal/report/cost_meter/bill.hpp>
#include <frugal/report/cost_meter/rate.hpp>
#include <frugal/report/energy/meter.hpp>

namespace frugal::detail {

/// The UUIDs of this process's GPUs, in CUDA's order. That is the order of neither NVML nor the bus
/// unless CUDA_DEVICE_ORDER says so, and CUDA_VISIBLE_DEVICES may abbreviate UUIDs: only these name
/// a device in both. Empty in a build without CUDA.
std::vector<std::array<unsigned char, 16>> cuda_uuids();

}  // namespace frugal::detail

namespace frugal {

/// Counts what a run costs: hours, money, energy and carbon, so far and until its end.
///
/// Lever   none: it shows the cost that every other lever lowers.
/// Cost    one reading of the clock per step; about once a second a few sums. Energy is read by a
///         thread of its own, and the file is written by another. No host sync.
/// State   the bill of all processes of the run, also in the file `bill` of its folder, so that a
///         kill forgets nothing that was paid. A Rollback does not take money back.
/// Errors  SettingsError for a price that is negative or not a number, a name that the price table
///         lacks, and 0 devices. Energy that cannot be read is a note in Report::warnings.
struct CostMeter {
  using kind = kinds::cost_meter;
  using listens = list<on::fit_begin, on::ready, on::step, on::epoch_end, on::fit_end, around::fit>;

  static constexpr About about{Term::none, "one reading of the clock"};

  GivenPrice price{};                 ///< plan::PricePerDevice(2.5) or plan::PricePerNode(20)
  std::optional<unsigned> devices{};  ///< that are billed; nothing: one for each process of the run
  std::optional<unsigned> nodes{};    ///< likewise, at a price per node; nothing: its machines
  std::filesystem::path prices{};     ///< a price file; empty: the built-in examples, by name only
  std::string offer{};                ///< the name of a machine in it, such as "p4d.24xlarge"
  bool spot = false;                  ///< the spot price of that offer
  std::string currency = "USD";       ///< of the prices given here
  double other_per_hour = 0;          ///< storage, network and the like
  double idle = 0;                    ///< seconds billed before each start: boot, image, data
  double price_per_kilowatt_hour = 0;  ///< of a machine of your own; needs a price, perhaps of 0
  std::optional<double> kg_co2_per_kilowatt_hour{};  ///< of the grid
  energy::EnergySettings energy{};                   ///< where energy is read
  double refresh = 1;                                ///< seconds between two sums
  double (*clock)() = &WallClock::seconds;           ///< for tests
  Outcome<Cost> outcome{};                           ///< set by fit

  /// What the last fit has cost; nothing before one has ended.
  std::optional<Cost> cost() const {
    return outcome.get() == nullptr ? std::nullopt : std::optional(*outcome.get());
  }

  /// What an hour costs. `on_gpu`: whether the price may be that of the machine's GPUs.
  detail::Rate rate(bool on_gpu, Processes const& all = {}) const;

  class State;
};

class CostMeter::State {
 public:
  using dispensable = void;  // a run may get its meter later

  explicit State(CostMeter const& settings) : settings_(&settings) {}
  State(State const&) = delete;
  State& operator=(State const&) = delete;
  ~State() {
    // Also after an exception: a failed run is paid for too.
    try {
      beat_.reset();
      note();
      if (began_) settings_->outcome.set(cost_now());
    } catch (...) {  // no memory
    }
  }

  void on_fit_begin(FitBegin& phase) {
    require_valid();
    settings_->outcome.clear();
    if (!phase.settings().run_dir.empty())
      lock_ = detail::lock_run_folder_if_possible(phase.run_state());
    double const now = settings_->clock();
    total_steps_ = phase.horizon().total_steps;
    bool const cuda = phase.settings().device.is_cuda();
    rate_ = settings_->rate(cuda, phase.processes());
    bill_.start({.per_hour = rate_.per_hour,
                 .idle = settings_->idle,
                 .per_kilowatt_hour = settings_->price_per_kilowatt_hour},
                now);
    began_ = true;
    if (!rate_.warning.empty()) phase.warn(rate_.warning);
    if (WallClock::shortcoming()) phase.warn(std::string("CostMeter: ") + WallClock::shortcoming());
    if (!rate_.per_hour &&
        (settings_->other_per_hour > 0 || settings_->price_per_kilowatt_hour > 0)) {
      phase.warn(
          "CostMeter: other_per_hour and price_per_kilowatt_hour need a price, perhaps of 0; "
          "without one there are hours alone");
    }
    begin_energy(phase, cuda);
    if (phase.processes().machines > 1 && energy_->reads()) {
      phase.warn("CostMeter: energy is that of the first process's machine, of " +
                 std::to_string(phase.processes().machines));
    }
    show(phase);
  }

  void on_ready(Ready& phase) {
    std::filesystem::path const& folder = phase.settings().run_dir;
    if (auto const& resumed = phase.resumed_from()) {
      double const rest = bill_.take_over(folder, resumed->seconds_lost, phase.seconds_before());
      if (rest >= 1) {
        phase.warn("CostMeter: " + detail::general(rest / 3600, 4) +
                   " h before this resume had no price, and count at the one of now");
      }
    }
    if (std::string const fault = bill_.begin(folder); !fault.empty()) {
      phase.warn(
          "CostMeter: the bill cannot be written, so a kill forgets what was paid after "
          "the last checkpoint: " +
          fault);
    }
    note();
    // A validation or a save may take longer than a machine lives. A test's clock has no time of
    // its own between two steps.
    if (settings_->clock == &WallClock::seconds && !folder.empty()) {
      beat_.emplace(settings_->refresh, [this] { note(); });
    }
    show(phase);
    Event event{.name = "price", .fields = {{"currency", settings_->currency}}};
    if (rate_.per_hour) event.fields.emplace_back("per_hour", *rate_.per_hour);
    event.fields.emplace_back("per", rate_.per);
    if (rate_.per == "node") event.fields.emplace_back("nodes", std::uint64_t{rate_.nodes});
    if (rate_.knows_devices) event.fields.emplace_back("devices", std::uint64_t{rate_.devices});
    event.fields.emplace_back("source", rate_.source);
    phase.record(std::move(event));
  }

  void on_step(Step& phase) {
    double const now = settings_->clock();
    std::uint64_t const step = phase.counters().step;
    if (now < due_ && step < project_at_) [[likely]]
      return;
    if (project_at_ == 0) {
      project_at_ = step + steps_before_plan;
    } else if (step >= project_at_ && pace_.steps() == 0) {
      // So many steps in less than a refresh: in most of their time allocators, caches and
      // profilers were set up. The next sum has the first projection.
      pace_ = {};
    }
    if (step >= project_at_) project_at_ = RunLimits::unlimited;
    pace_.step(step, now);
    update(phase, now);
  }

  void on_epoch_end(EpochEnd& phase) {
    double const now = settings_->clock();
    pace_.step(phase.counters().step, now);
    update(phase, now);
  }

  void on_fit_end(FitEnd& phase) {
    if (energy_) {
      for (std::string const& problem : energy_->stop()) phase.warn("CostMeter: " + problem);
    }
    Cost const cost = show(phase);
    // Nothing more will be spent, however far the projection went.
    project(phase, cost.hours, cost.amount, cost.kilowatt_hours);
    // A finished run that is started again has one line.
    if (ended_at_ == phase.counters().step) return;
    ended_at_ = phase.counters().step;
    Event event{.name = "cost", .fields = {{"hours", cost.hours}}};
    auto const add = [&](char const* name, std::optional<double> const& value) {
      if (value) event.fields.emplace_back(name, *value);
    };
    if (cost.currency == "USD") add("dollars", cost.amount);
    add("kilowatt_hours", cost.kilowatt_hours);
    add("kg_co2", cost.kg_co2);
    add("lost_seconds", cost.lost_seconds);
    if (cost.currency == "USD") add("lost_dollars", cost.lost_amount);
    phase.record(std::move(event));
  }

  /// Ends the bill after the last save.
  template <class Next>
  void around_fit(FitRun&, Next&& next) {
    next();
    bill_.end(settings_->clock(), joules());
  }

  template <class Archive>
  void persist(Archive& archive) {
    bool const returns = bill_.begun();
    bill_.persist(archive, settings_->clock(), joules());
    bool planned = planned_;
    archive("planned", planned);
    archive("ended_at", ended_at_);
    if (Archive::loading && !returns) planned_ = planned;
  }

 private:
  static constexpr std::uint64_t steps_before_plan = 10;

  void require_valid() const {
    auto const check = [](double value, char const* name) {
      if (value >= 0 && std::isfinite(value)) return;
      throw SettingsError({.what = std::string(name) + " is " + detail::general(value, 6),
                           .where = std::string("CostMeter::") + name,
                           .why = "it is 0 or more",
                           .fix = "Correct it, or leave it out."});
    };
    check(settings_->idle, "idle");
    check(settings_->price_per_kilowatt_hour, "price_per_kilowatt_hour");
    check(settings_->kg_co2_per_kilowatt_hour.value_or(0), "kg_co2_per_kilowatt_hour");
    check(settings_->refresh, "refresh");
    check(settings_->energy.interval_seconds, "energy.interval_seconds");
  }

  void begin_energy(FitBegin& phase, bool cuda) {
    energy::EnergySettings where = settings_->energy;
    where.gpus = where.gpus && cuda;
    if (where.gpus && !where.devices) {
      c10::Device const device = phase.settings().device;
      bool const one = rate_.devices == 1 && rate_.per == "device" && device.has_index();
      where.devices = detail::metered_gpus(
          detail::cuda_uuids(), std::getenv("CUDA_VISIBLE_DEVICES"),
          one ? std::optional(static_cast<std::size_t>(device.index())) : std::nullopt);
    }
    energy_ = std::make_unique<energy::EnergySampler>(where);
    bool const wanted =
        settings_->price_per_kilowatt_hour > 0 || settings_->kg_co2_per_kilowatt_hour;
    if (!wanted && !energy_->denied()) return;  // few machines have every counter
    for (std::string const& problem : energy_->problems()) phase.warn("CostMeter: " + problem);
  }

  void note() const {
    bill_.note(settings_->clock, [this] { return joules(); });
  }
  double joules() const { return energy_ ? energy_->joules() : 0; }
  Cost cost_now() const {
    Cost cost = detail::cost_of(bill_.total(settings_->clock(), joules()),
                                energy_ && energy_->reads(), settings_->kg_co2_per_kilowatt_hour);
    cost.currency = settings_->currency;
    return cost;
  }

  void update(Step& phase, double now) {
    due_ = now + settings_->refresh;
    if (!beat_) note();  // else the thread does, as often
    if (energy_ && energy_->failing() && !std::exchange(told_failing_, true)) {
      phase.warn(
          "CostMeter: a counter of energy cannot be read any more, so energy is too low from "
          "step " +
          std::to_string(phase.counters().step) + " on; no budget in kWh sees what is used now");
    }
    Cost const cost = show(phase);
    auto const left = pace_.seconds_left(total_steps_, phase.counters().step);
    if (!left || pace_.steps() < steps_before_plan) return;
    double const hours = cost.hours + *left / 3600;
    std::optional<double> kilowatt_hours;
    if (cost.kilowatt_hours && cost.hours > 0) {
      kilowatt_hours = *cost.kilowatt_hours * hours / cost.hours;
    }
    std::optional<double> amount;
    if (cost.amount) {
      // The projection assumes that power stays at its mean so far.
      double const power =
          cost.hours > 0 ? bill_.money_of(bill_.joules_before() + joules()) / cost.hours : 0;
      amount = *cost.amount + *left / 3600 * (*rate_.per_hour + power);
    }
    projected_ = true;
    project(phase, hours, amount, kilowatt_hours);
    if (std::exchange(planned_, true)) return;
    Event event{.name = "plan",
                .fields = {{"steps_planned", *total_steps_}, {"hours_planned", hours}}};
    if (amount && dollars()) event.fields.emplace_back("dollars_planned", *amount);
    phase.record(std::move(event));
  }

  void project(Phase const& phase, double hours, std::optional<double> amount,
               std::optional<double> kilowatt_hours) const {
    if (!projected_) return;
    phase.set_gauge("hours_projected", hours);
    if (kilowatt_hours) phase.set_gauge("kilowatt_hours_projected", *kilowatt_hours);
    if (amount && dollars()) phase.set_gauge("dollars_projected", *amount);
  }

  bool dollars() const { return settings_->currency == "USD"; }

  Cost show(Phase const& phase) const {
    Cost cost = cost_now();
    phase.set_gauge("hours", cost.hours);
    if (cost.amount && dollars()) phase.set_gauge("dollars", *cost.amount);
    if (cost.kilowatt_hours) phase.set_gauge("kilowatt_hours", *cost.kilowatt_hours);
    if (cost.kg_co2) phase.set_gauge("kg_co2", *cost.kg_co2);
    return cost;
  }

  std::shared_ptr<void> lock_;
  CostMeter const* settings_;  // the trainer's, which outlives the fit
  detail::Rate rate_;
  detail::RunBill bill_;
  std::unique_ptr<energy::EnergySampler> energy_;
  detail::StepPace pace_;
  std::optional<std::uint64_t> total_steps_;
  double due_ = 0;
  std::uint64_t project_at_ = 0;  ///< the step of the first projection
  bool planned_ = false;
  bool projected_ = false;
  bool told_failing_ = false;
  bool began_ = false;
  std::optional<std::uint64_t> ended_at_;
  std::optional<detail::PeriodicThread> beat_;  // last: it uses the members above
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/cost_meter.ipp>
#endif

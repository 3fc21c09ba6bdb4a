// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>
#include <frugal/report/cost_meter.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace frugal_test::policy_cost_meter {

using namespace support;
using namespace support::dying_runs;
using frugal::Cost;
using frugal::CostMeter;
using frugal::Every;
using frugal::plan::PricePerDevice;
using frugal::plan::PricePerNode;
using Optimizer = frugal::Optimize<frugal::AdamW>;
using Saves = frugal::Checkpoint<Every<4>>;

double now = 0;
double fake_clock() { return now; }

/// What a run has shown.
struct Shown {
  std::vector<std::optional<double>> projected{};  ///< dollars, after each step
  std::vector<frugal::Event> events{};
  frugal::Gauges gauges{};
};

/// Time passes in steps alone.
struct Passing {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "cost_meter.Passing";
  };
  using listens = frugal::list<frugal::on::backward, frugal::on::step, frugal::on::fit_end>;
  using after = frugal::list<frugal::kinds::cost_meter>;

  double seconds = 3600;  ///< per step
  Shown* shown = nullptr;

  class State {
   public:
    using transient = void;
    explicit State(Passing const& settings) : seconds_(settings.seconds), shown_(settings.shown) {}

    void on_backward(frugal::Backward const&) { now += seconds_; }
    void on_step(frugal::Step& phase) {
      if (shown_) shown_->projected.push_back(phase.gauges().find("dollars_projected"));
    }
    void on_fit_end(frugal::FitEnd& phase) {
      if (!shown_) return;
      shown_->events = phase.events();
      shown_->gauges = phase.gauges();
    }

   private:
    double seconds_;
    Shown* shown_;
  };
};

CostMeter meter_of(double price) {
  CostMeter meter{.price = PricePerDevice(price), .clock = &fake_clock};
  meter.energy.processors = false;
  return meter;
}

frugal::Event const* find(std::vector<frugal::Event> const& events, std::string const& name) {
  auto const at = std::find_if(events.begin(), events.end(),
                               [&](auto const& event) { return event.name == name; });
  return at == events.end() ? nullptr : &*at;
}
double number(frugal::Event const& event, std::string const& name) {
  for (auto const& [key, value] : event.fields) {
    if (key != name) continue;
    if (auto const* const real = std::get_if<double>(&value)) return *real;
    return static_cast<double>(std::get<std::uint64_t>(value));
  }
  return std::numeric_limits<double>::quiet_NaN();
}
bool holds(frugal::Event const& event, std::string const& name) {
  return std::any_of(event.fields.begin(), event.fields.end(),
                     [&](auto const& field) { return field.first == name; });
}

struct Metered {
  frugal::Report report;
  bool died = false;
  Cost cost;
  Shown shown;
  std::map<std::string, at::Tensor> tensors;
};

/// Three epochs of 11 steps, as dying_runs has them, with a meter.
template <class... Ps>
Metered metered(CostMeter const& meter, Job const& job, double seconds, Ps const&... policies) {
  Metered result;
  std::vector<double> losses;
  auto const module = std::make_shared<Mlp>(job.shape);
  frugal::Trainer trainer{module,
                          Witness{.losses = &losses, .dies_at = job.dies_at},
                          frugal::Settings{.run_dir = job.folder, .epochs = 3, .seed = 7},
                          Optimizer{},
                          meter,
                          Passing{.seconds = seconds, .shown = &result.shown},
                          policies...};
  frugal::TensorDataset train(samples(43), {.batch = 4, .shuffle = true});
  try {
    result.report = trainer.fit(train);
    REQUIRE(trainer.cost_meter().cost());
    result.cost = *trainer.cost_meter().cost();
  } catch (Gone const&) {
    result.died = true;
  }
  result.tensors = tensors_of(*module);
  return result;
}

TEST_CASE("33 steps of an hour at 2 dollars cost 66 dollars, as value, gauges and events") {
  auto const [report, died, cost, shown, tensors] = metered(meter_of(2), {}, 3600);
  CHECK(report.steps == 33);
  CHECK(cost.hours == doctest::Approx(33));
  CHECK(*cost.amount == doctest::Approx(66));
  CHECK(*cost.per_hour == 2);
  CHECK_FALSE(cost.kilowatt_hours);
  CHECK(cost.resumes == 0);

  frugal::Event const* const price = find(shown.events, "price");
  REQUIRE(price);
  CHECK(number(*price, "per_hour") == 2);
  CHECK(number(*price, "devices") == 1);
  frugal::Event const* const plan = find(shown.events, "plan");
  REQUIRE(plan);
  CHECK(plan->at.step == 11);
  CHECK(number(*plan, "steps_planned") == 33);
  CHECK(number(*plan, "hours_planned") == doctest::Approx(33));
  CHECK(number(*plan, "dollars_planned") == doctest::Approx(66));
  frugal::Event const* const end = find(shown.events, "cost");
  REQUIRE(end);
  CHECK(number(*end, "dollars") == doctest::Approx(66));
  CHECK(number(*end, "hours") == doctest::Approx(33));
  CHECK(number(*end, "lost_seconds") == 0);
  CHECK_FALSE(holds(*end, "kilowatt_hours"));

  CHECK(shown.gauges.find("dollars").value_or(0) == doctest::Approx(66));
  CHECK(shown.gauges.find("hours").value_or(0) == doctest::Approx(33));
  CHECK_FALSE(shown.gauges.find("kilowatt_hours"));
  REQUIRE(shown.projected.size() == 33);
  for (std::size_t step = 1; step <= 33; ++step) {
    CHECK(shown.projected[step - 1].has_value() == (step > 10));
    if (step > 10) CHECK(*shown.projected[step - 1] == doctest::Approx(66));
  }
}

TEST_CASE("between two sums nothing is shown, and the end of an epoch is summed") {
  CostMeter meter = meter_of(3600);
  meter.refresh = 1e9;
  auto const shown = metered(meter, {}, 1).shown;
  REQUIRE(shown.projected.size() == 33);
  CHECK_FALSE(shown.projected[21]);
  CHECK(shown.projected[22].value_or(0) == doctest::Approx(33));  // of the second epoch's end
  CHECK(shown.gauges.find("dollars").value_or(0) == doctest::Approx(33));
}

TEST_CASE("without a price there are hours, and never a price that nobody gave") {
  CostMeter meter = meter_of(0);
  meter.price = {};
  auto const [report, died, cost, shown, tensors] = metered(meter, {}, 3600);
  CHECK(cost.hours == doctest::Approx(33));
  CHECK_FALSE(cost.amount);
  CHECK_FALSE(cost.per_hour);
  CHECK_FALSE(shown.gauges.find("dollars"));
  CHECK_FALSE(shown.gauges.find("dollars_projected"));
  CHECK(shown.gauges.find("hours_projected").value_or(0) == doctest::Approx(33));
  CHECK_FALSE(holds(*find(shown.events, "price"), "per_hour"));
  CHECK_FALSE(holds(*find(shown.events, "plan"), "dollars_planned"));
  CHECK_FALSE(holds(*find(shown.events, "cost"), "dollars"));
}

TEST_CASE("another currency is counted, and is never shown as dollars") {
  CostMeter meter = meter_of(2);
  meter.currency = "EUR";
  auto const [report, died, cost, shown, tensors] = metered(meter, {}, 3600);
  CHECK(*cost.amount == doctest::Approx(66));
  CHECK(cost.currency == "EUR");
  CHECK_FALSE(shown.gauges.find("dollars"));
  CHECK_FALSE(holds(*find(shown.events, "cost"), "dollars"));
}

TEST_CASE("idle time before each start and other costs are billed") {
  CostMeter meter = meter_of(2);
  meter.devices = 4;
  meter.other_per_hour = 1;
  meter.idle = 3600;
  Cost const cost = metered(meter, {}, 3600).cost;
  CHECK(cost.hours == doctest::Approx(34));
  CHECK(*cost.amount == doctest::Approx(34 * 9));
}

TEST_CASE("a killed run's bill goes on, with the work that was lost, at the price of its time") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 11};
  CHECK(metered(meter_of(2), job, 3600, Saves{}).died);
  job.dies_at = 0;
  auto const [report, died, cost, shown, tensors] = metered(meter_of(5), job, 3600, Saves{});
  REQUIRE(report.resumed);
  CHECK(report.resumed->step == 8);
  CHECK(cost.resumes == 1);
  // Ten hours at 2 dollars, of which two are behind the checkpoint, and 25 at 5.
  CHECK(cost.lost_seconds == doctest::Approx(2 * 3600));
  CHECK(*cost.lost_amount == doctest::Approx(4));
  CHECK(cost.hours == doctest::Approx(35));
  CHECK(*cost.amount == doctest::Approx(10 * 2 + 25 * 5));
  CHECK(number(*find(shown.events, "cost"), "lost_seconds") == cost.lost_seconds);

  // Again: nothing is trained, so there is no second line.
  auto const again = metered(meter_of(5), job, 3600, Saves{});
  CHECK(*again.cost.amount == doctest::Approx(*cost.amount));
  CHECK_FALSE(find(again.shown.events, "cost"));
}

TEST_CASE("kills between two saves each cost what they cost, with the boots after them") {
  TemporaryFolder const folder;
  CostMeter meter = meter_of(2);
  meter.idle = 1800;
  Job job{.folder = folder.path(), .dies_at = 11};
  CHECK(metered(meter, job, 3600, Saves{}).died);  // saved at step 8, died in step 11
  job.dies_at = 3;
  CHECK(metered(meter, job, 3600, Saves{}).died);
  CHECK(metered(meter, job, 3600, Saves{}).died);
  job.dies_at = 0;
  Cost const cost = metered(meter, job, 3600, Saves{}).cost;
  // Ten hours, twice two, and 25; half an hour before each of the four.
  CHECK(cost.resumes == 3);
  CHECK(cost.hours == doctest::Approx(10 + 2 + 2 + 25 + 4 * 0.5));
  CHECK(*cost.amount == doctest::Approx(2 * cost.hours));
  // Two behind the checkpoint, and whatever the second and the third process did; three boots.
  CHECK(cost.lost_seconds == doctest::Approx(3600 * (2 + 2 + 2 + 3 * 0.5)));
  CHECK(*cost.lost_amount == doctest::Approx(2 * cost.lost_seconds / 3600));
}

TEST_CASE("a run killed before its first cadence has lost money at the price of that time") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 3};
  CHECK(metered(meter_of(2), job, 3600, Saves{}).died);
  job.dies_at = 0;
  auto const end = metered(meter_of(5), job, 3600, Saves{});
  CHECK(end.cost.lost_seconds == doctest::Approx(2 * 3600));
  CHECK(*end.cost.lost_amount == doctest::Approx(4));
  CHECK(*end.cost.amount == doctest::Approx(2 * 2 + 33 * 5));
  CHECK_FALSE(advises(end.report, "had no price"));
}

/// The machine goes between the end of training and its last save.
struct GoneAtEnd {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "cost_meter.GoneAtEnd";
  };
  using listens = frugal::list<frugal::on::fit_end>;
  using after = frugal::list<frugal::kinds::cost_meter>;
  using before = frugal::list<frugal::kinds::checkpoint>;
  bool dies = true;

  class State {
   public:
    using transient = void;
    explicit State(GoneAtEnd const& settings) : dies_(settings.dies) {}
    void on_fit_end(frugal::FitEnd&) {
      if (!dies_) return;
      now += 1800;
      throw Gone{};
    }

   private:
    bool dies_;
  };
};

TEST_CASE("a kill between the last step and the last save loses them") {
  TemporaryFolder const folder;
  Job const job{.folder = folder.path()};
  frugal::Checkpoint<Every<1000>> const rarely;
  CHECK(metered(meter_of(2), job, 3600, rarely, GoneAtEnd{}).died);
  Cost const cost = metered(meter_of(2), job, 3600, rarely, GoneAtEnd{.dies = false}).cost;
  CHECK(cost.hours == doctest::Approx(2 * 33 + 0.5));
  CHECK(cost.lost_seconds == doctest::Approx(3600 * 33.5));
}

TEST_CASE("the bill goes on while a step, a validation or a save takes its time") {
  TemporaryFolder const folder;
  std::filesystem::path const file = folder / "bill";
  int calls = 0;
  bool grows = false;
  auto const objective = [&](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    if (++calls == 3) {
      auto const seconds = [&] { return frugal::detail::BillFile::read(file)->bill.seconds; };
      double const before = seconds();
      while (seconds() == before) std::this_thread::yield();  // for ever, without a thread for it
      grows = true;
    }
    return frugal::CrossEntropy{}(module, batch);
  };
  CostMeter meter{.price = PricePerDevice(2), .refresh = 0.01};
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          objective,
                          frugal::Settings{.run_dir = folder.path(), .steps = 5},
                          Optimizer{},
                          meter,
                          Saves{}};
  frugal::TensorDataset train(samples(43), {.batch = 4});
  static_cast<void>(trainer.fit(train));
  CHECK(grows);
  auto const last = frugal::detail::BillFile::read(file);
  REQUIRE(last);
  CHECK(last->bill.seconds / 3600 ==
        doctest::Approx(trainer.cost_meter().cost()->hours).epsilon(0.01));
}

TEST_CASE("a run that ends by an exception has its bill too") {
  CostMeter const meter = meter_of(2);
  int calls = 0;
  auto const objective = [&](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    if (++calls == 5) throw Gone{};
    return frugal::CrossEntropy{}(module, batch);
  };
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          objective,
                          frugal::Settings{.epochs = 3},
                          Optimizer{},
                          meter,
                          Passing{}};
  frugal::TensorDataset train(samples(43), {.batch = 4});
  CHECK_THROWS_AS(static_cast<void>(trainer.fit(train)), Gone);
  REQUIRE(trainer.cost_meter().cost());
  CHECK(*trainer.cost_meter().cost()->amount == doctest::Approx(8));
}

TEST_CASE("a run that is stopped early projects no more than it has spent") {
  Shown shown;
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 3},
                          Optimizer{},
                          meter_of(2),
                          Passing{.shown = &shown},
                          frugal::Budget<frugal::Usd<30>, frugal::Stop>{}};
  frugal::TensorDataset train(samples(43), {.batch = 4});
  CHECK(trainer.fit(train).steps == 15);
  CHECK(shown.gauges.find("dollars_projected").value_or(0) == doctest::Approx(30));
  CHECK(shown.gauges.find("hours_projected").value_or(0) == doctest::Approx(15));
}

TEST_CASE("other costs without a price are said to be left out") {
  CostMeter meter = meter_of(0);
  meter.price = {};
  meter.other_per_hour = 1;
  CHECK(advises(metered(meter, {}, 3600).report, "need a price, perhaps of 0"));
}

TEST_CASE("work that a kill has undone is lost money") {
  frugal::detail::Bill bill;
  bill.add(7200, 3.0);
  bill.per_hour = 3;
  bill.lose(1800);
  CHECK(bill.amount == doctest::Approx(7.5));
  CHECK(bill.lost_amount == doctest::Approx(1.5));
  CHECK(bill.lost_seconds == 1800);
  CHECK(bill.seconds == 9000);
  // Without a price it gets the first that is known, as the whole bill does.
  frugal::detail::Bill unpriced;
  unpriced.add(3600, {});
  unpriced.lose(1800);
  CHECK(unpriced.price_the_rest(2) == 5400);
  CHECK(unpriced.amount == doctest::Approx(3));
  CHECK(unpriced.lost_amount == doctest::Approx(1));
}

TEST_CASE("time without a price, or before there was a meter, counts at the first price") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 9};
  CostMeter unknown = meter_of(0);
  unknown.price = {};
  CHECK(metered(unknown, job, 3600, Saves{}).died);
  job.dies_at = 5;
  CHECK(metered(unknown, job, 3600, Saves{}).died);
  job.dies_at = 0;
  auto const priced = metered(meter_of(2), job, 3600, Saves{});
  CHECK(priced.cost.hours == doctest::Approx(33).epsilon(0.01));
  CHECK(*priced.cost.amount == doctest::Approx(66).epsilon(0.01));
  CHECK(advises(priced.report, "had no price, and count at the one of now"));

  TemporaryFolder const other;
  CHECK(run({.folder = other.path(), .dies_at = 9}, Optimizer{}, Saves{}).died);
  auto const late = metered(meter_of(2), {.folder = other.path()}, 3600, Saves{});
  CHECK(late.cost.resumes == 1);
  CHECK(late.cost.hours == doctest::Approx(25 + late.report.seconds_before / 3600));
}

TEST_CASE("what the first of many quick steps set up is not projected") {
  CostMeter meter = meter_of(3600);
  meter.refresh = 1;
  int calls = 0;
  auto const objective = [&](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    now += ++calls <= 10 ? 0.09 : 0.001;
    return frugal::CrossEntropy{}(module, batch);
  };
  Shown shown;
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          objective,
                          frugal::Settings{.epochs = 3},
                          Optimizer{},
                          meter,
                          Passing{.seconds = 0, .shown = &shown}};
  frugal::TensorDataset train(samples(43), {.batch = 4});
  static_cast<void>(trainer.fit(train));
  frugal::Event const* const plan = find(shown.events, "plan");
  REQUIRE(plan);
  CHECK(plan->at.step == 22);  // the end of the second epoch, before a second has gone
  CHECK(number(*plan, "dollars_planned") == doctest::Approx(0.9 + 23 * 0.001));
}

TEST_CASE("a Rollback takes no money back, and repeats no plan") {
  CostMeter const meter = meter_of(2);
  Shown shown;
  int calls = 0;
  auto const objective = [&](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    frugal::Loss loss = frugal::CrossEntropy{}(module, batch);
    if (++calls == 20) loss.value = loss.value * std::numeric_limits<double>::quiet_NaN();
    return loss;
  };
  frugal::Trainer trainer{std::make_shared<Mlp>(),
                          objective,
                          frugal::Settings{.epochs = 3},
                          Optimizer{},
                          meter,
                          Passing{.shown = &shown},
                          frugal::Rollback<>{}};
  frugal::TensorDataset train(samples(43), {.batch = 4});
  auto const report = trainer.fit(train);
  CHECK(calls > 33);
  CHECK(std::count_if(shown.events.begin(), shown.events.end(),
                      [](frugal::Event const& event) { return event.name == "plan"; }) == 1);
  CHECK(*trainer.cost_meter().cost()->amount == doctest::Approx(2 * calls).epsilon(0.06));
}

TEST_CASE("energy is read, priced, turned into carbon, and kept by a resume") {
  TemporaryFolder const folder;
  std::filesystem::path const zone = folder / "cap/intel-rapl:0";
  std::filesystem::create_directories(zone);
  std::ofstream(zone / "name") << "package-0\n";
  std::ofstream(zone / "max_energy_range_uj") << "262143328850\n";
  auto const set = [&](std::uint64_t microjoules) {
    std::ofstream(zone / "energy_uj") << microjoules << '\n';
  };
  CostMeter meter = meter_of(0);
  meter.energy = {.powercap = folder / "cap", .gpus = false, .interval_seconds = 1e5};
  meter.price_per_kilowatt_hour = 0.25;
  meter.kg_co2_per_kilowatt_hour = 0.4;
  int calls = 0;
  auto const fit = [&](std::uint64_t steps) {
    set(0);
    calls = 0;
    auto const objective = [&](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
      if (++calls == 3) set(7'200'000'000);  // 2 Wh
      return frugal::CrossEntropy{}(module, batch);
    };
    frugal::Trainer trainer{
        std::make_shared<Mlp>(),
        objective,
        frugal::Settings{.run_dir = folder / "run", .epochs = 3, .steps = steps},
        Optimizer{},
        meter,
        Saves{}};
    frugal::TensorDataset train(samples(43), {.batch = 4});
    static_cast<void>(trainer.fit(train));
    return *trainer.cost_meter().cost();
  };
  Cost const cost = fit(8);
  CHECK(*cost.kilowatt_hours == doctest::Approx(0.002));
  CHECK(*cost.kg_co2 == doctest::Approx(0.0008));
  CHECK(*cost.amount == doctest::Approx(0.0005));
  // The counters of the second process begin again, and add to the bill of the first.
  Cost const both = fit(16);
  CHECK(both.resumes == 1);
  CHECK(*both.kilowatt_hours == doctest::Approx(0.004));
  CHECK(*both.kg_co2 == doctest::Approx(0.0016));
  CHECK(*both.amount == doctest::Approx(0.001));
}

TEST_CASE("energy that cannot be read is said where somebody has asked for it") {
  TemporaryFolder const folder;
  CostMeter meter = meter_of(1);
  meter.energy = {.powercap = folder.path(), .gpus = false};
  CHECK(metered(meter, {}, 1).report.warnings.empty());
  meter.kg_co2_per_kilowatt_hour = 0.4;
  auto const asked = metered(meter, {}, 1);
  CHECK(advises(asked.report, "no RAPL counters"));
  CHECK_FALSE(asked.cost.kg_co2);
}

TEST_CASE("the meter changes no bit of a training") {
  auto const plain = run({}, Optimizer{});
  std::vector<double> losses;
  auto const with = run({}, Optimizer{}, meter_of(2), Passing{});
  CHECK(same_bits(plain.tensors, with.tensors));
  CHECK(plain.losses == with.losses);
}

TEST_CASE("settings that cannot be meant are refused when fit begins") {
  for (auto const change : std::vector<void (*)(CostMeter&)>{
           [](CostMeter& meter) { meter.price = PricePerDevice(-2); },
           [](CostMeter& meter) { meter.price = PricePerNode(std::nan("")); },
           [](CostMeter& meter) { meter.devices = 0; }, [](CostMeter& meter) { meter.nodes = 0; },
           [](CostMeter& meter) { meter.idle = -1; },
           [](CostMeter& meter) { meter.other_per_hour = -1; },
           [](CostMeter& meter) { meter.refresh = std::nan(""); },
           [](CostMeter& meter) { meter.kg_co2_per_kilowatt_hour = -0.1; },
           [](CostMeter& meter) { meter.price = {}, meter.offer = "p4d.24xlrge"; }}) {
    CostMeter meter = meter_of(1);
    change(meter);
    CHECK_THROWS_AS(run({}, Optimizer{}, meter), frugal::SettingsError);
  }
}

}  // namespace frugal_test::policy_cost_meter

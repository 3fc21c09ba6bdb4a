// SPDX-License-Identifier: Apache-2.0
// torch-free
// What training will cost, before anything is rented: plain arithmetic over device tables and
// prices (docs/plan.md). Wrong arguments end it with exit code 2 and one sentence.
//
//   frugal_plan optimal --money 1000 --offer p4d.24xlarge --spot-price
//   frugal_plan run --parameters 1.3e9 --device "A100 80GB" --devices 8 --price-per-node 32
//   frugal_plan cost --hours 72 --devices 8 --runs 24 --price-per-device 4
//   frugal_plan levers --cost-per-run 37748 --hours 72 --devices 8 --lever spot:price:0.358
//   frugal_plan allreduce --devices 8 --parameters 1.3e9 --gbit-per-s 600 --samples-per-s 850
//   frugal_plan ranks --micro-batch-s 0.133 --micro-batches 64 --parameters 1.24e8 --gbit-per-s 10 --steps 20000
//   frugal_plan memory --parameters 1.3e9 --optimizer AdamW
//   frugal_plan checkpoint --save-s 15 --lifetime-h 24
//   frugal_plan spot --hours 72 --price-per-device 4 --spot-per-device 1.6 --preemptions-per-h 0.1
//
// --prices FILE reads your own devices and prices; --json writes JSON.
#include <frugal/error.hpp>
#include <frugal/report/plan/prices.hpp>
#include <frugal/report/plan/rank_plan.hpp>
#include <frugal/report/plan/run_plan.hpp>
#include <frugal/report/plan/tables.hpp>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace fr = frugal;
namespace plan = frugal::plan;

namespace {

constexpr int wrong_arguments = 2;

/// The offer of the built-in examples that was asked for; a plan that depends on it says so.
std::string example_used;

plan::Offer const& offer_of(plan::PriceTable const& table, std::string const& name) {
  plan::Offer const& offer = table.offer(name);
  if (offer.example) example_used = offer.name + ", " + offer.as_of;
  return offer;
}

[[noreturn]] void refuse(std::string what, std::string where, std::string fix) {
  throw fr::SettingsError(
      {.what = std::move(what), .where = std::move(where), .why = "", .fix = std::move(fix)});
}

bool is_given(CLI::Option const* option) { return option != nullptr && option->count() != 0; }

/// Nothing that was asked for is ignored in silence.
void refuse_without(CLI::Option const* option, std::string const& missing) {
  if (!is_given(option)) return;
  refuse(option->get_name() + " changes nothing without " + missing, "arguments",
         "Give " + missing + " as well, or leave it out.");
}

/// A price by the name of an offer, per device or per node: one of the three.
struct PriceOptions {
  std::string offer;
  double per_device = 0, per_node = 0, spot_per_device = 0, spot_per_node = 0;
  unsigned devices_per_node = 8;
  bool of_spot = false;
  CLI::Option* has_node_size = nullptr;
  CLI::Option* has_device = nullptr;
  CLI::Option* has_node = nullptr;
  CLI::Option* has_spot_device = nullptr;
  CLI::Option* has_spot_node = nullptr;

  void add_to(CLI::App& app, bool with_spot) {
    auto* const by_name =
        app.add_option("--offer", offer, "price of this name in the table of prices");
    has_device = app.add_option("--price-per-device", per_device, "USD per hour of one device")
                     ->excludes(by_name);
    has_node = app.add_option("--price-per-node", per_node, "USD per hour of a whole node")
                   ->excludes(by_name)
                   ->excludes(has_device);
    has_node_size =
        app.add_option("--devices-per-node", devices_per_node, "where a price is per node")
            ->check(CLI::Range(1, 4096))
            ->capture_default_str();
    if (!with_spot) {
      app.add_flag("--spot-price", of_spot, "take the spot price of the offer")->needs(by_name);
      return;
    }
    has_spot_device = app.add_option("--spot-per-device", spot_per_device, "the same on spot");
    has_spot_node = app.add_option("--spot-per-node", spot_per_node, "the same on spot")
                        ->excludes(has_spot_device);
  }

  std::optional<plan::Price> on_demand(plan::PriceTable const& table) const {
    require_node_price();
    if (!offer.empty())
      return of_spot ? spot_of(offer_of(table, offer)) : offer_of(table, offer).on_demand;
    return given(has_device, per_device, has_node, per_node, devices_per_node);
  }
  void require_node_price() const {
    if (!is_given(has_node) && !is_given(has_spot_node)) {
      refuse_without(has_node_size, "a price per node");
    }
  }
  std::optional<plan::Price> spot(plan::PriceTable const& table) const {
    unsigned node = devices_per_node;
    if (!offer.empty() && !is_given(has_node_size)) node = table.offer(offer).devices;
    if (auto price = given(has_spot_device, spot_per_device, has_spot_node, spot_per_node, node)) {
      return price;
    }
    return offer.empty() ? std::nullopt : offer_of(table, offer).spot;
  }
  plan::Price needed(plan::PriceTable const& table) const {
    if (auto const price = on_demand(table)) return *price;
    refuse("a price is missing", "arguments",
           "Give --offer, --price-per-device or --price-per-node.");
  }

 private:
  static plan::Price spot_of(plan::Offer const& offer) {
    if (offer.spot) return *offer.spot;
    refuse("this offer has no spot price", offer.name, "Add \"spot\" to it in a price file.");
  }
  static std::optional<plan::Price> given(CLI::Option const* device, double by_device,
                                          CLI::Option const* node, double by_node,
                                          unsigned devices_of_node) {
    if (is_given(device)) {
      plan::detail::require_not_negative("price per device", by_device);
      return plan::Price(plan::PricePerDevice(by_device), devices_of_node);
    }
    if (is_given(node)) {
      plan::detail::require_not_negative("price per node", by_node);
      return plan::Price(plan::PricePerNode(by_node), devices_of_node);
    }
    return std::nullopt;
  }
};

/// A bandwidth in bits or in bytes.
struct LinkOptions {
  double gigabits = 0, gigabytes = 0;
  CLI::Option* has_bits = nullptr;
  CLI::Option* has_bytes = nullptr;

  void add_to(CLI::App& app) {
    has_bits = app.add_option("--gbit-per-s", gigabits,
                              "bandwidth of the slowest link, gigabits per second");
    has_bytes = app.add_option("--gbyte-per-s", gigabytes, "the same in gigabytes per second")
                    ->excludes(has_bits);
  }
  bool given() const { return is_given(has_bits) || is_given(has_bytes); }
  plan::GigabytesPerSecond bandwidth() const {
    if (given()) plan::detail::require_positive("bandwidth", gigabits + gigabytes);
    return is_given(has_bytes) ? plan::GigabytesPerSecond(gigabytes)
                               : plan::in_bytes(plan::GigabitsPerSecond(gigabits));
  }
};

/// "BF16:hours:0.667:measured"
plan::Lever lever_of(std::string const& text) {
  std::vector<std::string> parts(1);
  for (char const c : text) {
    if (c == ':') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  char const* const fix =
      "Write NAME:TERM:FACTOR, and perhaps :measured; TERM is price, hours or runs.";
  std::map<std::string, plan::Term> const terms{
      {"price", plan::Term::price}, {"hours", plan::Term::hours}, {"runs", plan::Term::runs}};
  std::map<std::string, plan::Evidence> const kinds{{"measured", plan::Evidence::measured},
                                                    {"assumed", plan::Evidence::assumed}};
  if (parts.size() < 3 || parts.size() > 4 || !terms.contains(parts[1]) ||
      (parts.size() == 4 && !kinds.contains(parts[3]))) {
    refuse("a lever cannot be read", "--lever " + text, fix);
  }
  double factor = 0;
  char const* const end = parts[2].data() + parts[2].size();
  auto const [stop, error] = std::from_chars(parts[2].data(), end, factor);
  if (error != std::errc() || stop != end)
    refuse("a factor is not a number", "--lever " + text, fix);
  return {.name = parts[0],
          .term = terms.at(parts[1]),
          .factor = factor,
          .evidence = parts.size() == 4 ? kinds.at(parts[3]) : plan::Evidence::assumed};
}

std::map<std::string, plan::GradientFormat> const gradient_formats{
    {"FP32", plan::GradientFormat::FP32},
    {"BF16", plan::GradientFormat::BF16},
    {"FP16", plan::GradientFormat::FP16}};
std::map<std::string, plan::Keeping> const keepings{
    {"fp32", plan::Keeping::fp32},
    {"autocast", plan::Keeping::autocast},
    {"half-and-master", plan::Keeping::half_and_master}};

template <class Value>
CLI::Option* choice(CLI::App& app, char const* name, Value& value,
                    std::map<std::string, Value> const& among, char const* about) {
  return app.add_option(name, value, about)
      ->transform(CLI::CheckedTransformer(among, CLI::ignore_case));
}

/// The device, its format and the share of its peak that training reaches.
struct DeviceOptions {
  std::string device, format = "BF16";
  double utilisation = 0.3;
  CLI::Option* has_format = nullptr;
  CLI::Option* has_utilisation = nullptr;

  void add_to(CLI::App& app) {
    app.add_option("--device", device, "of the table of devices, or as its driver names it");
    has_format = app.add_option("--format", format, "of matrix products")->capture_default_str();
    has_utilisation =
        app.add_option("--utilisation", utilisation, "share of the peak that training reaches")
            ->capture_default_str();
  }
  /// The one that is named, or that of the offer; null if neither is.
  plan::Device const* find(plan::PriceTable const& table, std::string const& offer) const {
    if (offer.empty()) return device.empty() ? nullptr : &table.devices().at(device);
    plan::Device const& of_offer = table.devices().at(table.offer(offer).device);
    if (device.empty() || &table.devices().at(device) == &of_offer) return &of_offer;
    refuse("this offer has another device: " + of_offer.name, offer,
           "Leave out --device, or give the price of your own.");
  }
  plan::Device const& of(plan::PriceTable const& table, std::string const& offer) const {
    if (plan::Device const* const found = find(table, offer)) return *found;
    refuse("a device is missing", "arguments", "Give --device or --offer.");
  }
  plan::Speed speed(plan::Device const& of_device) const {
    return {of_device.peak(format), utilisation};
  }
};

/// Each adds a subcommand, and says how its plan is made.
using Make = std::function<plan::Plan(plan::PriceTable const&)>;
struct Subcommand {
  CLI::App* app;
  Make make;
};

Subcommand optimal(CLI::App& all) {
  struct Options {
    double compute = 0, money = 0, device_hours = 0, ratio = 20;
    DeviceOptions device;
    PriceOptions price;
    CLI::Option* by_compute = nullptr;
    CLI::Option* by_money = nullptr;
  };
  auto const in = std::make_shared<Options>();
  auto* const app = all.add_subcommand("optimal", "compute-optimal parameters and tokens");
  auto* const budget = app->add_option_group("budget");
  in->by_compute = budget->add_option("--compute", in->compute, "FLOP");
  in->by_money = budget->add_option("--money", in->money, "USD; needs a price");
  budget->add_option("--device-hours", in->device_hours, "hours of one device");
  budget->require_option(1);
  app->add_option("--tokens-per-parameter", in->ratio, "of the rule")->capture_default_str();
  in->device.add_to(*app);
  in->price.add_to(*app, false);
  return {app, [in](plan::PriceTable const& table) {
            std::optional<plan::Price> const price = in->price.on_demand(table);
            plan::Device const* const device = in->device.find(table, in->price.offer);
            double flops = in->compute;
            if (in->by_compute->count() != 0 && device == nullptr) {
              if (price) refuse("a device is missing", "arguments", "The cost needs --device.");
              refuse_without(in->device.has_format, "--device");
              refuse_without(in->device.has_utilisation, "--device");
              return plan::plan_of(plan::optimal_plan(flops, {}, in->ratio));
            }
            plan::Device const& on = in->device.of(table, in->price.offer);
            plan::Spending spending{.speed = in->device.speed(on)};
            if (price) spending.price = price->per_device();
            plan::Plan made;
            plan::PlanSection& section = made.add("Budget");
            plan::DeviceHours hours(in->device_hours);
            if (in->by_money->count() != 0) {
              plan::detail::require_positive("money", in->money);
              spending.price = in->price.needed(table).per_device();
              flops = plan::flops_for(plan::Usd(in->money), *spending.price, spending.speed);
              hours = plan::Usd(in->money) / *spending.price;
              section.rows = {{"money", in->money, plan::Unit::usd}};
            } else if (in->by_compute->count() != 0) {
              hours = plan::time_for(flops, spending.speed);
            } else {
              plan::detail::require_positive("device-hours", in->device_hours);
              flops = plan::flops_in(hours, spending.speed);
            }
            if (spending.price) {
              section.rows.push_back(
                  {"price_per_device", spending.price->value(), plan::Unit::usd_per_hour});
            }
            section.rows.push_back({"device_hours", hours.value(), plan::Unit::hours, on.name});
            made += plan::plan_of(plan::optimal_plan(flops, {}, in->ratio), spending);
            return made;
          }};
}

Subcommand run(CLI::App& all) {
  struct Options {
    plan::RunInputs run;
    DeviceOptions device;
    PriceOptions price;
    LinkOptions link;
    double restart = 300, disk = 1;
    CLI::Option* has_rate = nullptr;
    std::vector<CLI::Option const*> of_spot, of_link;  // change nothing without these
  };
  auto const in = std::make_shared<Options>();
  auto* const app = all.add_subcommand("run", "time, memory, checkpoints and cost of one run");
  app->add_option("--parameters", in->run.parameters, "of the model")->required();
  app->add_option("--tokens", in->run.tokens, "of the training data; 20 per parameter if left out");
  app->add_option("--devices", in->run.devices, "that train together")->capture_default_str();
  in->has_rate = app->add_option("--preemptions-per-h", in->run.preemptions_per_hour,
                                 "of the whole job, on spot");
  in->of_spot = {app->add_option("--restart-s", in->restart, "from a preemption to the next step")
                     ->capture_default_str(),
                 app->add_flag("--notice", in->run.notice, "Spot saves within the notice")};
  choice(*app, "--keeping", in->run.keeping, keepings, "fp32, autocast or half-and-master");
  app->add_option("--optimizer", in->run.optimizer, "AdamW, SGD, ...")->capture_default_str();
  app->add_option("--activation-bytes", in->run.activations, "at their peak");
  app->add_option("--disk-gbyte-per-s", in->disk, "at which a checkpoint is written")
      ->capture_default_str();
  in->of_link = {
      choice(*app, "--gradients", in->run.gradients, gradient_formats, "FP32, BF16 or FP16"),
      app->add_option("--overlap", in->run.overlap, "share of a step in which gradients travel"),
      app->add_option("--tokens-per-step", in->run.tokens_per_step,
                      "of one device; with a bandwidth")};
  in->link.add_to(*app);
  in->device.add_to(*app);
  in->price.add_to(*app, true);
  return {app, [in](plan::PriceTable const& table) {
            plan::RunInputs inputs = in->run;
            inputs.device = in->device.of(table, in->price.offer);
            inputs.format = in->device.format;
            inputs.utilisation = in->device.utilisation;
            inputs.link = in->link.bandwidth();
            inputs.restart = plan::Seconds(in->restart);
            inputs.disk = plan::GigabytesPerSecond(in->disk);
            inputs.on_demand = in->price.on_demand(table);
            inputs.spot = in->price.spot(table);
            for (auto const* each : in->of_link) {
              if (!in->link.given()) refuse_without(each, "a bandwidth");
              if (inputs.devices <= 1) refuse_without(each, "--devices above 1");
            }
            for (auto const* each : in->of_spot) {
              if (!inputs.spot) refuse_without(each, "a spot price");
              if (!is_given(in->has_rate)) refuse_without(each, "--preemptions-per-h");
            }
            if (inputs.spot && !inputs.on_demand) {
              refuse("a price on demand is missing", "arguments",
                     "Spot is compared with it: give --price-per-device or --price-per-node.");
            }
            return plan::plan_of(inputs);
          }};
}

/// What cost and levers have in common.
struct CostOptions {
  double hours = 0, devices = 1, runs = 1, cost_per_run = 0;
  CLI::Option* whole = nullptr;
  PriceOptions price;

  void add_to(CLI::App& app) {
    app.add_option("--hours", hours, "of one run")->required();
    app.add_option("--devices", devices, "that train together")->capture_default_str();
    app.add_option("--runs", runs, "until the model is good")->capture_default_str();
    whole = app.add_option("--cost-per-run", cost_per_run, "USD, instead of a price");
    price.add_to(app, false);
    for (char const* const each : {"--offer", "--price-per-device", "--price-per-node"}) {
      whole->excludes(app.get_option(each));
    }
  }
  plan::RunCost cost(plan::PriceTable const& table) const {
    if (whole->count() != 0) {
      price.require_node_price();
      return plan::RunCost::from_total(plan::Usd(cost_per_run), devices, hours, runs);
    }
    plan::Price const paid = price.needed(table);
    plan::RunCost out{
        .price = paid.per_device(), .devices = paid.billed(devices), .hours = hours, .runs = runs};
    return out.checked();
  }
};

Subcommand cost(CLI::App& all) {
  auto const in = std::make_shared<CostOptions>();
  auto* const app = all.add_subcommand("cost", "price per hour x hours per run x runs");
  in->add_to(*app);
  return {app, [in](plan::PriceTable const& table) { return plan::plan_of(in->cost(table)); }};
}

Subcommand levers(CLI::App& all) {
  struct Options {
    CostOptions cost;
    std::vector<std::string> levers;
    std::string title = "Before and after", write;
  };
  auto const in = std::make_shared<Options>();
  auto* const app = all.add_subcommand("levers", "what each lever saves, one after the other");
  in->cost.add_to(*app);
  app->add_option("--lever", in->levers,
                  "NAME:TERM:FACTOR[:measured], for example BF16:hours:0.667; may be repeated")
      ->allow_extra_args(false)
      ->required();
  app->add_option("--title", in->title, "of the table")->capture_default_str();
  app->add_option("--write", in->write, "this file as levers.json, for report.html");
  return {app, [in](plan::PriceTable const& table) {
            plan::Breakdown breakdown(in->cost.cost(table), in->title);
            for (std::string const& text : in->levers) breakdown.add(lever_of(text));
            if (!in->write.empty()) breakdown.write(in->write);
            return plan::plan_of(breakdown);
          }};
}

Subcommand all_reduce(CLI::App& all) {
  struct Options {
    plan::DataParallel job;
    LinkOptions link;
  };
  auto const in = std::make_shared<Options>();
  auto* const app = all.add_subcommand("allreduce", "efficiency of data-parallel training");
  app->add_option("--devices", in->job.devices, "in the ring")->required();
  app->add_option("--parameters", in->job.parameters, "with gradients")->required();
  app->add_option("--samples-per-s", in->job.samples_per_second, "of one device alone")->required();
  app->add_option("--samples", in->job.samples, "of one device in an optimizer step")
      ->capture_default_str();
  app->add_option("--overlap", in->job.overlap,
                  "share of a step in which gradients travel: 0 without, about 0.67 with")
      ->capture_default_str();
  choice(*app, "--gradients", in->job.gradients, gradient_formats, "FP32, BF16 or FP16");
  in->link.add_to(*app);
  return {app, [in](plan::PriceTable const&) {
            plan::DataParallel job = in->job;
            job.bandwidth = in->link.bandwidth();
            return plan::plan_of(job);
          }};
}

Subcommand ranks(CLI::App& all) {
  struct Options {
    plan::RankInputs job;
    double micro_batch = 0, update = 0, parameters = 0, bytes = 4, gigabits = 0, latency = 50e-6,
           low_rank = 0;
    bool exact = false;
    PriceOptions price;
  };
  auto const in = std::make_shared<Options>();
  auto* const app =
      all.add_subcommand("ranks", "time, efficiency and cost by the number of processes");
  app->add_option("--micro-batch-s", in->micro_batch,
                  "seconds of forward and backward of one, measured")
      ->required();
  app->add_option("--micro-batches", in->job.micro_batches, "of a step in all processes together")
      ->required();
  app->add_option("--update-s", in->update, "seconds of clipping and the optimizer, a step");
  app->add_option("--parameters", in->parameters, "with gradients")->required();
  app->add_option("--bytes", in->bytes, "of a gradient as it is computed")->capture_default_str();
  app->add_option("--gbit-per-s", in->gigabits, "of the slowest link")->required();
  app->add_option("--latency-s", in->latency, "of a message")->capture_default_str();
  app->add_option("--steps", in->job.steps, "of the run")->required();
  auto* const exact = app->add_flag("--exact", in->exact, "Replicate<Exact> in place of Ring");
  app->add_flag("--bf16", in->job.bf16, "Wire<BF16>")->excludes(exact);
  app->add_flag("--shard", in->job.shards_states, "Shard<States>");
  app->add_option(
      "--low-rank-parameters", in->low_rank,
      "numbers that Wire<PowerSGD<4>> sends: (rows + columns) x 4 of each matrix, and the rest");
  app->add_option("--local-steps", in->job.local_steps, "Replicate<LocalSteps<H>> in place of Ring")
      ->excludes(exact)
      ->excludes("--shard")
      ->excludes("--bf16");
  app->add_option("--runs", in->job.runs, "to do on the same processes")->capture_default_str();
  app->add_option("--most", in->job.most, "processes of the last row")->capture_default_str();
  in->price.add_to(*app, false);
  return {app, [in, app](plan::PriceTable const& table) {
            plan::RankInputs job = in->job;
            plan::detail::require_positive("parameters", in->parameters);
            plan::detail::require_positive("bytes", in->bytes);
            plan::detail::require_positive("gbit per second", in->gigabits);
            job.micro_batch = plan::Seconds(in->micro_batch);
            job.update = plan::Seconds(in->update);
            job.gradients = plan::gigabytes(in->parameters * in->bytes);
            job.link = fr::tcp_link(in->gigabits, in->latency);
            job.low_rank = plan::gigabytes(in->low_rank * in->bytes);
            if (in->exact) job.sum = plan::GradientSum::exact;
            if (app->count("--local-steps") != 0) job.sum = plan::GradientSum::local_steps;
            job.price = in->price.on_demand(table);
            return plan::plan_of(plan::plan_ranks(job));
          }};
}

Subcommand memory(CLI::App& all) {
  struct Options {
    plan::MemoryInputs memory;
    plan::Keeping keeping = plan::Keeping::autocast;
    std::string optimizer = "AdamW";
  };
  auto const in = std::make_shared<Options>();
  auto* const app = all.add_subcommand("memory", "memory of a device, and size of a checkpoint");
  app->add_option("--parameters", in->memory.parameters, "of the model")->required();
  app->add_option("--frozen", in->memory.frozen, "of these, without gradient");
  app->add_option("--buffer-bytes", in->memory.buffers, "of what is no parameter");
  app->add_option("--averages", in->memory.averages, "copies of the weights that Average keeps");
  app->add_option("--activation-bytes", in->memory.activations, "at their peak");
  app->add_option("--optimizer", in->optimizer, "AdamW, SGD, ...")->capture_default_str();
  choice(*app, "--keeping", in->keeping, keepings, "fp32, autocast or half-and-master");
  return {app, [in](plan::PriceTable const&) {
            plan::MemoryInputs inputs = in->memory;
            inputs.per =
                plan::bytes_per_parameter(in->keeping, plan::optimizer_bytes(in->optimizer));
            return plan::plan_of(plan::estimate(inputs));
          }};
}

Subcommand checkpoint(CLI::App& all) {
  struct Options {
    double save = 0, lifetime = 0, work = 24, restart = 300;
  };
  auto const in = std::make_shared<Options>();
  auto* const app = all.add_subcommand("checkpoint", "the interval that loses the least time");
  app->add_option("--save-s", in->save, "seconds that a checkpoint stops the steps")->required();
  app->add_option("--lifetime-h", in->lifetime, "mean hours between failures")->required();
  app->add_option("--work-h", in->work, "hours of work")->capture_default_str();
  app->add_option("--restart-s", in->restart, "from a failure to the next step")
      ->capture_default_str();
  return {
      app, [in](plan::PriceTable const&) {
        plan::detail::require_positive("work", in->work);
        return plan::plan_of(plan::CheckpointInputs{.save = plan::Seconds(in->save),
                                                    .lifetime = plan::Seconds(in->lifetime * 3600),
                                                    .restart = plan::Seconds(in->restart),
                                                    .hours = in->work});
      }};
}

Subcommand spot(CLI::App& all) {
  struct Options {
    plan::SpotInputs spot;
    double save = 30, restart = 300, interval = 0;
    CLI::Option* has_interval = nullptr;
    PriceOptions price;
  };
  auto const in = std::make_shared<Options>();
  auto* const app = all.add_subcommand("spot", "expected cost on spot, against on demand");
  app->add_option("--hours", in->spot.hours, "of work")->required();
  app->add_option("--devices", in->spot.devices, "that train together")->capture_default_str();
  app->add_option("--preemptions-per-h", in->spot.preemptions_per_hour, "of the whole job")
      ->required();
  app->add_option("--save-s", in->save, "seconds that a checkpoint stops the steps")
      ->capture_default_str();
  app->add_option("--restart-s", in->restart, "from a preemption to the next step")
      ->capture_default_str();
  in->has_interval =
      app->add_option("--interval-s", in->interval, "between checkpoints; Daly's if left out");
  app->add_flag("--notice", in->spot.notice, "Spot saves within the notice: no work is lost");
  in->price.add_to(*app, true);
  return {app, [in](plan::PriceTable const& table) {
            plan::SpotInputs inputs = in->spot;
            auto const price = in->price.spot(table);
            if (!price) {
              refuse("a spot price is missing", "arguments",
                     "Give --spot-per-device, --spot-per-node, or an --offer that has one.");
            }
            plan::Price const on_demand = in->price.needed(table);
            inputs.on_demand = on_demand.per_device();
            inputs.spot = price->per_device();
            inputs.billed = on_demand.billed(inputs.devices);
            inputs.spot_billed = price->billed(inputs.devices);
            inputs.save = plan::Seconds(in->save);
            inputs.restart = plan::Seconds(in->restart);
            if (is_given(in->has_interval)) inputs.interval = plan::Seconds(in->interval);
            return plan::plan_of(inputs);
          }};
}

/// What the tables have.
plan::Plan list_of(plan::PriceTable const& table) {
  plan::Plan out;
  for (plan::Device const& device : table.devices().devices()) {
    plan::PlanSection& section = out.add(device.name);
    section.rows = {{"memory", device.memory.value() * 1e9, plan::Unit::bytes},
                    {"bandwidth_per_second", device.bandwidth.value() * 1e9, plan::Unit::bytes}};
    for (auto const& [format, peak] : device.peaks) {
      section.rows.push_back({"peak_per_second_" + format, peak, plan::Unit::flop});
    }
    for (plan::Offer const& offer : table.offers()) {
      if (table.devices().find(offer.device) != &device) continue;
      section.rows.push_back({offer.name, offer.on_demand.per_device().value(),
                              plan::Unit::usd_per_hour,
                              "a device; " + offer.source + " " + offer.as_of});
      if (!offer.spot) continue;
      section.rows.push_back({offer.name + " spot", offer.spot->per_device().value(),
                              plan::Unit::usd_per_hour, "a device"});
    }
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  std::string prices;
  bool json = false;
  CLI::App app("What training will cost: plain arithmetic over devices and prices.");
  app.add_option("--prices", prices, "JSON file with your devices and prices (docs/plan.md)");
  app.add_flag("--json", json, "write JSON");
  app.fallthrough();
  app.require_subcommand(1);
  std::vector<Subcommand> const subcommands{
      optimal(app),
      run(app),
      cost(app),
      levers(app),
      all_reduce(app),
      ranks(app),
      memory(app),
      checkpoint(app),
      spot(app),
      {app.add_subcommand("devices", "the devices and prices of the tables"), list_of}};
  try {
    app.parse(argc, argv);
    plan::PriceTable const table =
        prices.empty() ? plan::PriceTable::built_in() : plan::read_prices(prices);
    for (Subcommand const& each : subcommands) {
      if (!each.app->parsed()) continue;
      plan::Plan made = each.make(table);
      if (!example_used.empty()) {
        made.sections.back().notes.push_back("The price is an example (" + example_used +
                                             "). Replace it: --prices, or --price-per-node.");
      }
      if (json) {
        std::cout << made.json();
      } else {
        std::cout << made;
      }
    }
    return std::cout.flush() ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (CLI::ParseError const& error) {
    return app.exit(error) == 0 ? EXIT_SUCCESS : wrong_arguments;
  } catch (fr::Error const& error) {
    std::cerr << error.what() << '\n';
    return wrong_arguments;
  } catch (std::exception const& error) {
    std::cerr << error.what() << '\n';
    return EXIT_FAILURE;
  }
}

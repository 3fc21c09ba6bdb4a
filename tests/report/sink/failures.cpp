// SPDX-License-Identifier: Apache-2.0
// needs: notices prometheus tensorboard
// Everything that a run tells to others fails at once.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>
#include <frugal/report/notify/webhook.hpp>
#include <frugal/report/prometheus_endpoint.hpp>
#include <frugal/report/sink/state.hpp>
#include <frugal/report/tensorboard.hpp>

#include "support/event_file.hpp"
#include "support/files.hpp"
#include "support/loopback_server.hpp"
#include "support/running.hpp"
#include "support/sockets.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::policy_sink_failures {

using namespace support;
using namespace std::chrono_literals;
using frugal::Every;
namespace fr = frugal;

double now = 0;
double fake_clock() { return now; }

/// An hour passes in each step, for a dollar.
struct Hourly {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "failures.Hourly";
  };
  using listens = fr::list<fr::on::backward>;
  struct State {
    using transient = void;
    explicit State(Hourly const&) {}
    void on_backward(fr::Backward const&) { now += 3600; }
  };
};

struct Ended {
  fr::Report report;
  std::map<std::string, at::Tensor> weights;
};

/// `prepare` gets the trainer.
template <class Prepare, class... Ps>
Ended train(Prepare const& prepare, Ps const&... policies) {
  now = 0;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3});
  fr::Trainer trainer{module, fr::CrossEntropy{}, fr::Settings{.epochs = 2, .seed = 5},
                      fr::Optimize<fr::AdamW>{}, policies...};
  prepare(trainer);
  Ended ended;
  ended.report = trainer.fit(fr::TensorDataset(samples(42), {.batch = 4, .shuffle = true}),
                             fr::TensorDataset(samples(9, 92), {.batch = 4}));
  ended.weights = tensors_of(*module);
  return ended;
}

/// A run of 22 steps for 22 dollars, with a budget of 20: everything that can fail, and every sink
/// once more, in a folder. `shut_at`: the step after which the endpoint's socket is shut.
Ended train_all(std::filesystem::path const& folder, std::string const& hook,
                std::filesystem::path const& csv, std::uint64_t shut_at) {
  std::filesystem::create_directories(folder);
  fr::CostMeter meter{.price = fr::plan::PricePerDevice(1), .clock = &fake_clock};
  meter.energy.processors = false;
  fr::Webhook webhook{.url = hook};
  webhook.delivery.first_wait = 1ms;
  webhook.delivery.at_end = 600s;
  std::function<std::uint16_t()> port;
  Spy const killer{.each_step = [&](fr::Counters const& at) {
    if (at.step == shut_at) shut_listener(port());
  }};
  auto const prepare = [&](auto& trainer) {
    port = [&trainer] {
      return *trainer.template policy<fr::kinds::prometheus_endpoint>().listening.get();
    };
  };
  return train(prepare, meter, Hourly{}, fr::Budget<fr::Usd<20>, fr::Webhook>{.webhook = webhook},
               fr::Csv<Every<1>>{.path = csv}, fr::PrometheusEndpoint<Every<1>>{.port = 0}, killer,
               fr::Log<Every<1>>{.path = folder / "metrics.jsonl"},
               fr::Csv<Every<1>>{.path = folder / "metrics.csv"},
               fr::TensorBoard<Every<1>, fr::WeightHistograms<Every<5>>>{.path = folder / "board"},
               fr::MlperfLog<Every<1>>{.path = folder / "mlperf.log"},
               fr::Prometheus<Every<1>>{.file = folder / "metrics.prom"});
}

/// What the good sinks have, without times and the memory of the process.
std::vector<std::string> content(std::filesystem::path const& folder) {
  std::vector<std::string> all;
  for (std::string const& line : lines_of(text_of(folder / "metrics.jsonl"))) {
    auto event = nlohmann::json::parse(line);
    event.erase("seconds");
    event.erase("memory_bytes");
    all.push_back("Log " + event.dump());
  }
  for (std::string row : lines_of(text_of(folder / "metrics.csv"))) {
    if (row.find(",memory_bytes,") != std::string::npos) continue;
    std::size_t from = 0;
    for (int cell = 0; cell < 4; ++cell) from = row.find(',', from) + 1;
    row.erase(from, row.find(',', from) - from);
    all.push_back("Csv " + row);
  }
  for (std::string const& line : lines_of(text_of(folder / "mlperf.log"))) {
    auto event = nlohmann::json::parse(line.substr(9));
    event.erase("time_ms");
    if (event.at("key") == "tracked_stats") event.at("value").erase("memory_bytes");
    all.push_back("MlperfLog " + event.dump());
  }
  for (std::string const& line : lines_of(text_of(folder / "metrics.prom"))) {
    auto const of = [&](char const* name) { return line.starts_with(name); };
    if (of("frugal_memory_bytes") || of("frugal_training_seconds_total") ||
        of("frugal_run_training_seconds") || of("frugal_last_update_timestamp_seconds")) {
      continue;
    }
    all.push_back("Prometheus " + line);
  }
  for (auto const& each : events_of_folder(folder / "board").alive) {
    if (each.tag.ends_with("/memory_bytes")) continue;
    all.push_back("TensorBoard " + each.tag + "@" + std::to_string(each.step) + "=" + each.value);
  }
  return all;
}

TEST_CASE(
    "a webhook that refuses, a full disk and an endpoint that dies at once change no weight and no "
    "other sink") {
  TemporaryFolder const folder;
  LoopbackServer takes([](HttpRequest const&) { return answer(200, ""); });
  LoopbackServer refuses([](HttpRequest const&) { return answer(403, ""); });
  Ended const plain = train([](auto const&) {}, Hourly{});
  Ended const good = train_all(folder / "good", takes.base(), folder / "spare.csv", 0);
  Ended const bad = train_all(folder / "bad", refuses.base(), "/dev/full", 10);
  CHECK(good.report.steps == 22);
  CHECK(same_bits(good.weights, plain.weights));
  CHECK(same_bits(bad.weights, plain.weights));
  CHECK(bad.report.steps == 22);

  auto const wanted = content(folder / "good");
  auto const found = content(folder / "bad");
  for (char const* const sink : {"Log ", "Csv ", "MlperfLog ", "Prometheus ", "TensorBoard "}) {
    CAPTURE(sink);
    CHECK(std::count_if(wanted.begin(), wanted.end(),
                        [&](std::string const& line) { return line.starts_with(sink); }) > 22);
  }
  CHECK(found == wanted);
  CHECK_FALSE(takes.requests().empty());
  CHECK_FALSE(refuses.requests().empty());

  // Each failure is one line more.
  std::vector<std::string> more = bad.report.warnings;
  std::erase_if(more, [&](std::string const& line) {
    auto const& known = good.report.warnings;
    return std::find(known.begin(), known.end(), line) != known.end();
  });
  REQUIRE(more.size() == 3);
  CHECK(more[0].starts_with("Csv could not write at step 0 (/dev/full: "));
  CHECK(more[1].starts_with("PrometheusEndpoint could not write at step 11 ("));
  CHECK(more[2].find("the webhook at 127.0.0.1") != std::string::npos);
}

/// A sink whose last flush fails: when the fit is over, and its run is gone.
struct FailsAtClose {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "failures.FailsAtClose";
  };
  using listens = fr::detail::sink_listens;

  struct Sink {
    explicit Sink(FailsAtClose const&) {}
    void open(fr::FitBegin&) {}
    void write(fr::MetricRecord const&) {}
    void close() { throw std::runtime_error("no more room"); }
  };

  Every<1> every{};
  fr::Outcome<fr::SinkOutcome> outcome{};
  using State = fr::detail::SinkState<Every<1>, Sink>;
};

TEST_CASE(
    "a sink that fails when the fit is over has that in its outcome, and the run is not used") {
  auto const module = std::make_shared<Mlp>();
  fr::Trainer trainer{module, fr::CrossEntropy{}, fr::Settings{.epochs = 1},
                      fr::Optimize<fr::AdamW>{}, FailsAtClose{}};
  fr::Report const report = trainer.fit(fr::TensorDataset(samples(8), {.batch = 4}));
  CHECK(report.warnings.empty());
  fr::SinkOutcome const& found = *trainer.policy<FailsAtClose::kind>().outcome.get();
  CHECK(found.lost == 1);
  CHECK(found.first_failure == "no more room");
  CHECK(found.written == 5);  // begin, two steps, the epoch, the end
}

}  // namespace frugal_test::policy_sink_failures

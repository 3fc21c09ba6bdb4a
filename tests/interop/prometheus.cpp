// SPDX-License-Identifier: Apache-2.0
// needs: prometheus
// What prometheus.py asks of frugal: a run that writes the file of Prometheus to the path that is
// its argument, and serves the same values over HTTP. It prints the endpoint's port before the last
// step and waits for a line of input.
#include <frugal/frugal.hpp>
#include <frugal/report.hpp>
#include <frugal/report/prometheus.hpp>
#include <frugal/report/prometheus_endpoint.hpp>

#include <cstdint>
#include <functional>
#include <iostream>
#include <limits>
#include <string>
#include <string_view>

namespace fr = frugal;

namespace {

/// Sets gauges of many kinds, and waits after a step.
struct Waits {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "interop.Waits";
  };
  using listens = fr::list<fr::on::step>;
  using before = fr::list<fr::kinds::prometheus, fr::kinds::prometheus_endpoint>;
  std::uint64_t at = 0;
  std::function<void()> call{};

  struct State {
    using transient = void;
    explicit State(Waits const& settings) : at_(settings.at), call_(settings.call) {}
    void on_step(fr::Step& phase) {
      phase.set_gauge("hours", 0.5);
      phase.set_gauge("dollars", 1.25);
      phase.set_gauge("kilowatt_hours", 0.1);
      phase.set_gauge("kg_co2", 0.02);
      phase.set_gauge("a name, of the User: \"own\"\n", 1);
      phase.set_gauge("errors_total", 2);
      phase.set_gauge("not a number", std::numeric_limits<double>::quiet_NaN());
      phase.set_gauge("infinite", -std::numeric_limits<double>::infinity());
      phase.record({"resume", {{"seconds_lost", 1.5}}});
      if (phase.counters().step == at_) call_();
    }
    std::uint64_t at_;
    std::function<void()> call_;
  };
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  fr::TensorDataset train(torch::randn({64, 8}), torch::randint(0, 3, {64}), {.batch = 8});
  fr::TensorDataset valid(torch::randn({32, 8}), torch::randint(0, 3, {32}), {.batch = 8});
  fr::PrometheusLabels const labels{{"model", "a \"quoted\" \\ job\n"}, {"bytes", "\xff"}};
  std::function<std::uint16_t()> port;
  fr::Trainer trainer{torch::nn::Linear(8, 3),
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 2},
                      fr::Optimize<fr::AdamW>{},
                      fr::Validate<fr::Accuracy>{},
                      fr::Throughput<fr::Every<2>>{},
                      fr::Prometheus<fr::Every<1>>{.file = argv[1], .labels = labels},
                      fr::PrometheusEndpoint<fr::Every<1>>{.port = 0, .labels = labels},
                      Waits{.at = 16, .call = [&] {
                              std::cout << port() << std::endl;
                              std::string line;
                              std::getline(std::cin, line);
                            }}};
  port = [&] { return *trainer.policy<fr::kinds::prometheus_endpoint>().listening.get(); };
  fr::Report const report = trainer.fit(train, valid);
  for (std::string const& each : report.warnings) std::cerr << each << '\n';
  return report.steps == 16 ? 0 : 1;
}

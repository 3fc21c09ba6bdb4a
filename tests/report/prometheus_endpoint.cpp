// SPDX-License-Identifier: Apache-2.0
// needs: prometheus
#include <doctest/doctest.h>

#include <frugal/report/prometheus.hpp>
#include <frugal/report/prometheus_endpoint.hpp>

#include "support/files.hpp"
#include "support/locales.hpp"
#include "support/scripted.hpp"
#include "support/sockets.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace frugal_test::policy_prometheus_endpoint {

using namespace frugal_test::support;
using frugal::Every;
using frugal::PrometheusEndpoint;

template <class... Ps>
auto trainer_of(frugal::Settings settings, Ps const&... policies) {
  settings.epochs = 2;
  settings.seed = 5;
  return frugal::Trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, settings,
                         frugal::Optimize<frugal::SGD>{}, policies...};
}
auto train() { return frugal::TensorDataset(samples(18), {.batch = 4}); }

/// Calls a function after each step.
struct Each {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.Each";
  };
  using listens = frugal::list<frugal::on::step>;
  using after = frugal::list<frugal::kinds::prometheus_endpoint>;
  std::function<void(std::uint64_t)> call;
  struct State {
    using transient = void;
    explicit State(Each const& settings) : call_(settings.call) {}
    void on_step(frugal::Step& phase) { call_(phase.counters().step); }
    std::function<void(std::uint64_t)> call_;
  };
};

/// The port of the running fit, as the trainer knows it.
template <class Trainer>
std::uint16_t port_of(Trainer& trainer) {
  auto const* const port =
      trainer.template policy<frugal::kinds::prometheus_endpoint>().listening.get();
  return port == nullptr ? 0 : *port;
}

TEST_CASE("a scrape during training has the values of the last record") {
  std::string answer;
  std::function<std::uint16_t()> port;
  auto trainer =
      trainer_of({}, PrometheusEndpoint<Every<2>>{.port = 0, .labels = {{"model", "a\"b"}}},
                 Each{.call = [&](std::uint64_t step) {
                   if (step == 5) answer = got(port());
                 }});
  port = [&] { return port_of(trainer); };
  static_cast<void>(trainer.fit(train()));
  CHECK(answer.starts_with("HTTP/1.1 200"));
  CHECK(answer.find("# TYPE frugal_steps_total counter") != std::string::npos);
  // Step 5 ends the epoch; the record of step 4 is the last so far.
  CHECK(answer.find("frugal_steps_total{model=\"a\\\"b\"} 4") != std::string::npos);
  CHECK(answer.find("frugal_running{model=\"a\\\"b\"} 1") != std::string::npos);
  CHECK(got(port_of(trainer)).empty());  // nobody listens after the fit
}

TEST_CASE("scrapes at every moment, and clients that leave, change no weight") {
  auto plain = trainer_of({});
  static_cast<void>(plain.fit(train()));
  std::atomic<std::uint16_t> port{0};
  std::atomic<bool> done{false};
  std::atomic<int> answers{0};
  std::function<std::uint16_t()> listening;
  auto watched =
      trainer_of({}, PrometheusEndpoint<Every<1>>{.port = 0}, Each{.call = [&](std::uint64_t step) {
                   port = listening();
                   while (step == 5 && answers == 0) std::this_thread::yield();
                 }});
  listening = [&] { return port_of(watched); };
  std::thread scraper([&] {
    while (!done) {
      if (port == 0) {
        std::this_thread::yield();
        continue;
      }
      if (got(port).starts_with("HTTP/1.1 200")) ++answers;
      // A client that sends half of a request, and one that reads nothing.
      for (std::string_view const part : {"GET /met", "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"}) {
        int const socket = connected(port);
        if (socket < 0) continue;
        static_cast<void>(::send(socket, part.data(), part.size(), MSG_NOSIGNAL));
        linger const reset{.l_onoff = 1, .l_linger = 0};
        ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        ::close(socket);
      }
    }
  });
  auto const report = watched.fit(train());
  done = true;
  scraper.join();
  CHECK(answers > 0);
  CHECK(report.warnings.empty());
  CHECK(report.steps == 10);
  CHECK(same_bits(tensors_of(*plain.module()), tensors_of(*watched.module())));
}

/// Half-way, the listening socket is shut from outside: nobody is answered any more.
TEST_CASE(
    "an endpoint that dies is reported once and counted, and no weight or other sink changes") {
  auto plain = trainer_of({});
  static_cast<void>(plain.fit(train()));
  TemporaryFolder const folder;
  std::function<std::uint16_t()> port;
  auto const kill = [&](std::uint64_t step) {
    if (step != 3) return;
    shut_listener(port());
    CHECK(got(port()).empty());
  };
  auto watched = trainer_of({}, PrometheusEndpoint<Every<1>>{.port = 0}, Each{.call = kill},
                            frugal::Prometheus<Every<1>>{.file = folder / "a.prom"});
  port = [&] { return port_of(watched); };
  auto const report = watched.fit(train());
  CHECK(report.steps == 10);
  CHECK(same_bits(tensors_of(*plain.module()), tensors_of(*watched.module())));
  CHECK(text_of(folder / "a.prom").find("frugal_steps_total 10\n") != std::string::npos);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].starts_with(
      "PrometheusEndpoint could not write at step 4 (nobody listens"));
  auto const* const outcome =
      watched.template policy<frugal::kinds::prometheus_endpoint>().outcome.get();
  REQUIRE(outcome != nullptr);
  CHECK(outcome->written == 4);  // begin, and steps 1 to 3
  CHECK(outcome->lost == 10);    // steps 4 to 10, two epochs, end
}

TEST_CASE("looking whether the endpoint listens is no scrape") {
  std::string answer;
  std::function<std::uint16_t()> port;
  auto trainer = trainer_of({}, PrometheusEndpoint<Every<1>>{.address = "0.0.0.0", .port = 0},
                            Each{.call = [&](std::uint64_t step) {
                              if (step == 5) answer = got(port());
                            }});
  port = [&] { return port_of(trainer); };
  CHECK(trainer.fit(train()).warnings.empty());
  CHECK(answer.find("exposer_scrapes_total 0\n") != std::string::npos);
}

TEST_CASE("a scrape has the version, a label of the user's only once, and numbers of no locale") {
  GroupedLocale const grouped;
  CommaLocale const comma;
  std::string answer;
  std::function<std::uint16_t()> port;
  auto trainer =
      trainer_of({}, PrometheusEndpoint<Every<1>>{.port = 0, .labels = {{"version", "mine"}}},
                 Each{.call = [&](std::uint64_t step) {
                   if (step == 5) answer = got(port());
                 }});
  port = [&] { return port_of(trainer); };
  CHECK(trainer.fit(train()).warnings.empty());
  CHECK(answer.find("frugal_build_info{version=\"" + std::string(frugal::version) + "\"} 1\n") !=
        std::string::npos);
  CHECK(answer.find("frugal_steps_total{version=\"mine\"} 5\n") != std::string::npos);
  CHECK(answer.find("frugal_learning_rate{version=\"mine\"} 0.001\n") != std::string::npos);
}

TEST_CASE("a port in use is refused at the begin, with what to do") {
  std::function<std::uint16_t()> port;
  std::string why;
  auto const second = [&](std::uint64_t step) {
    if (step != 1) return;
    auto other = trainer_of({}, PrometheusEndpoint<>{.port = port()});
    try {
      static_cast<void>(other.fit(train()));
    } catch (frugal::SettingsError const& error) {
      why = error.what();
    }
  };
  auto first = trainer_of({}, PrometheusEndpoint<>{.port = 0}, Each{.call = second});
  port = [&] { return port_of(first); };
  static_cast<void>(first.fit(train()));
  CHECK(why.find("the endpoint of Prometheus cannot listen (127.0.0.1:") != std::string::npos);
  CHECK(why.find("port 0 takes any that is free") != std::string::npos);
}

TEST_CASE("an address that is none of this machine's, and an invalid label, are refused") {
  auto const refused = [](PrometheusEndpoint<> const& policy) {
    auto trainer = trainer_of({}, policy);
    CHECK_THROWS_AS(static_cast<void>(trainer.fit(train())), frugal::SettingsError);
  };
  refused({.address = "192.0.2.1", .port = 0});
  refused({.address = "no address", .port = 0});
  refused({.port = 0, .labels = {{"a-b", "x"}}});
  refused({.port = 0, .labels = {{"quantile", "x"}}});
}

}  // namespace frugal_test::policy_prometheus_endpoint

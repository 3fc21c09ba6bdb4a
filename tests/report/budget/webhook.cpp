// SPDX-License-Identifier: Apache-2.0
// needs: notices
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>
#include <frugal/report/notify/webhook.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/loopback_server.hpp"
#include "support/running.hpp"

#include <chrono>
#include <cstdint>
#include <string>

#include <unistd.h>

namespace frugal_test::policy_budget_webhook {

using namespace support;
using namespace support::dying_runs;
using namespace std::chrono_literals;
using frugal::Budget;
using frugal::CostMeter;
using frugal::Usd;
using frugal::Webhook;
using Optimizer = frugal::Optimize<frugal::AdamW>;

double now = 0;
double fake_clock() { return now; }

/// An hour passes in each step.
struct Hourly {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "webhook.Hourly";
  };
  using listens = frugal::list<frugal::on::backward>;

  class State {
   public:
    using transient = void;
    explicit State(Hourly const&) {}
    void on_backward(frugal::Backward const&) { now += 3600; }
  };
};

/// 33 steps at a dollar, with a budget of 20.
Outcome fit(std::filesystem::path const& folder, Webhook webhook) {
  CostMeter meter{.price = frugal::plan::PricePerDevice(1), .clock = &fake_clock};
  meter.energy.processors = false;
  webhook.delivery.first_wait = 1ms;
  return run({.folder = folder}, Optimizer{}, meter, Hourly{}, frugal::Log<frugal::Every<1>>{},
             Budget<Usd<20>, Webhook>{.webhook = std::move(webhook)});
}

std::size_t lines_with(std::filesystem::path const& file, std::string const& words) {
  std::size_t count = 0;
  for (std::string const& line : lines_of(text_of(file))) {
    count += line.find(words) != std::string::npos ? std::size_t{1} : std::size_t{0};
  }
  return count;
}

TEST_CASE("every warning is posted once, and the log has it too") {
  TemporaryFolder const folder;
  LoopbackServer server([](HttpRequest const&) { return answer(200, ""); });
  Webhook webhook{.url = server.base()};
  webhook.delivery.at_end = 600s;
  auto const report = fit(folder.path(), webhook).report;
  auto const requests = server.requests();
  REQUIRE(requests.size() == 4);  // the projection and three levels
  CHECK(requests[0].body.find(
            R"("text":"Budget: 50% of 20 USD is reached: 10 USD spent","level":0.5)") !=
        std::string::npos);
  CHECK(requests[1].body.find(R"("action":"projected")") != std::string::npos);
  CHECK(lines_with(folder / "metrics.jsonl", R"("event":"budget")") == 4);
  CHECK(lines_with(folder / "metrics.jsonl", R"("event":"cost")") == 1);
  CHECK(lines_with(folder / "metrics.jsonl", R"("event":"price")") == 1);
  CHECK(report.warnings.size() == 4);
}

TEST_CASE("an endpoint that is gone, refuses or hangs is reported once, and changes no bit") {
  TemporaryFolder const folder;
  auto const plain = run({}, Optimizer{});
  int port = 0;
  int const nobody = LoopbackServer::bound(port);
  LoopbackServer refuses([](HttpRequest const&) { return answer(404, ""); });
  LoopbackServer hangs([](HttpRequest const&) { return hang(); });
  int number = 0;
  for (std::string const& url :
       {"http://127.0.0.1:" + std::to_string(port), refuses.base(), hangs.base()}) {
    std::filesystem::path const own = folder / std::to_string(number++);
    Webhook webhook{.url = url + "/secret"};
    webhook.delivery.at_end = url == hangs.base() ? 1ms : 600000ms;
    auto const outcome = fit(own, webhook);
    CHECK(outcome.report.steps == 33);
    CHECK(same_bits(outcome.tensors, plain.tensors));
    CHECK(outcome.losses == plain.losses);
    std::size_t reports = 0;
    for (std::string const& line : outcome.report.warnings) {
      if (line.find("the webhook at 127.0.0.1") == std::string::npos) continue;
      CHECK(line.find("secret") == std::string::npos);
      reports +=
          line.find("missed 4 of 4 alerts") != std::string::npos ? std::size_t{1} : std::size_t{0};
    }
    CHECK(reports == 1);
    // The log is whole.
    CHECK(lines_with(own / "metrics.jsonl", R"("event":"step")") == 33);
    CHECK(lines_with(own / "metrics.jsonl", R"("event":"budget")") == 4);
  }
  ::close(nobody);
}

}  // namespace frugal_test::policy_budget_webhook

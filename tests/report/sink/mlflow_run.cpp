// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/sink/mlflow_run.hpp>

#include "support/fake_mlflow.hpp"

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

namespace frugal_test::sink_mlflow_run {

using namespace std::chrono_literals;
using frugal::MlflowSent;
using frugal::detail::MlflowAnswer;
using frugal::detail::MlflowPlan;
using frugal::detail::MlflowPoint;
using frugal::detail::MlflowRun;
using support::FakeMlflow;

MlflowPlan plan_of(std::string const& mark = "m") {
  return {
      .experiment = "demo", .mark = mark, .first_wait = 0ms, .longest_wait = 0ms, .at_end = 60s};
}

MlflowRun::Call calls(FakeMlflow& server) {
  return [&server](std::string const&, std::string const& path, std::string const& body,
                   std::stop_token const&) {
    FakeMlflow::Answer const answer = server(path, body);
    return MlflowAnswer{.status = answer.status, .body = answer.body};
  };
}

std::vector<MlflowPoint> points(std::uint64_t from, std::uint64_t to, double value = 0.5) {
  std::vector<MlflowPoint> all;
  for (std::uint64_t step = from; step <= to; ++step)
    all.push_back({"step/loss", value, 100, step});
  return all;
}

TEST_CASE("a name that MLflow refuses becomes one that it takes, and no two become one") {
  using frugal::detail::mlflow_name;
  CHECK(mlflow_name("step/loss") == "step/loss");
  CHECK(mlflow_name("top-5 acc._") == "top-5 acc._");
  // No path in its shortest form, or a character that an MLflow may refuse.
  for (std::string const name :
       {"a@b", "caf\u00e9", "a//b", "/a", "a/", "../a", "a/../b", "", "."}) {
    CAPTURE(name);
    std::string const made = mlflow_name(name);
    CHECK(made != name);
    CHECK(made.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos);
  }
  CHECK(mlflow_name("a@b") != mlflow_name("a%b"));
  std::string const longer(400, 'a');
  CHECK(mlflow_name(longer).size() == 250);
  CHECK(mlflow_name(longer) != mlflow_name(longer + 'a'));
}

TEST_CASE("a long text ends in dots, and never within a character") {
  using frugal::detail::mlflow_text;
  CHECK(mlflow_text("abcdef", 6) == "abcdef");
  CHECK(mlflow_text("abcdefg", 6) == "abc...");
  CHECK(mlflow_text("ab\u20acdefg", 6) == "ab...");
}

TEST_CASE("points in a checkpoint are those that were put there") {
  double const infinite = std::numeric_limits<double>::infinity();
  std::vector<MlflowPoint> const all{{"a b/c", 0.1, 5, 7}, {"x", -infinite, -1, 0}};
  CHECK((frugal::detail::points_of_text(frugal::detail::text_of_points(all)) == all));
  auto const nan =
      frugal::detail::points_of_text(frugal::detail::text_of_points({{"x", std::nan(""), 1, 2}}));
  REQUIRE(nan.size() == 1);
  CHECK(std::isnan(nan[0].value));
  CHECK(frugal::detail::points_of_text("5 x 1 a\n5 6\n5 7 1.5 a\n").size() == 1);
}

TEST_CASE("a run has its parameters, values and status, in requests that MLflow takes") {
  FakeMlflow server;
  MlflowPlan plan = plan_of();
  plan.run_name = "first";
  plan.tags = {{"team", "vision"}};
  for (int i = 0; i < 250; ++i) plan.params.emplace_back("p" + std::to_string(i), "1");
  plan.params.emplace_back("long", std::string(9000, 'x'));
  {
    MlflowRun run(calls(server), plan);
    CHECK(run.post(points(1, 2500)));
    double const infinite = std::numeric_limits<double>::infinity();
    CHECK(
        run.post({{"bad", std::nan(""), 1, 1}, {"bad", infinite, 1, 2}, {"bad", -infinite, 1, 3}}));
    run.tag("note", "said");
    MlflowSent const sent = run.finish("FINISHED");
    CHECK(sent.run_id == "0");
    CHECK(sent.points == 2503);
    CHECK(sent.waiting + sent.dropped == 0);
    CHECK(run.news().empty());
  }
  REQUIRE(server.runs.size() == 1);
  FakeMlflow::Run const& run = server.runs[0];
  CHECK(run.name == "first");
  CHECK(run.status == "FINISHED");
  CHECK(run.tags.at("team") == "vision");
  CHECK(run.tags.at("note") == "said");
  CHECK(run.params.size() == 251);
  CHECK(run.params.at("long").get<std::string>().size() == 6000);
  CHECK(run.steps("step/loss").size() == 2500);
  CHECK(run.steps("step/loss").front() == 1);
  CHECK(run.steps("step/loss").back() == 2500);
  CHECK(run.history("bad") ==
        std::vector<std::string>{R"(1:"NaN")", R"(2:"Infinity")", R"(3:"-Infinity")"});
}

TEST_CASE("a server that is away for a while gets everything, and that is said once") {
  FakeMlflow server;
  int asked = 0;
  MlflowRun run(
      [&, call = calls(server)](auto const&... request) {
        // Answers to the creation and to a batch are lost: the server has them.
        ++asked;
        MlflowAnswer const answer = call(request...);
        if (asked % 3 == 0) return answer;
        return asked % 3 == 1 ? MlflowAnswer{.failure = "no route"} : MlflowAnswer{.status = 503};
      },
      plan_of());
  CHECK(run.post(points(1, 3)));
  MlflowSent const sent = run.finish("FINISHED");
  CHECK(sent.waiting + sent.dropped == 0);
  CHECK(sent.points == 3);
  CHECK(sent.first_failure == "no route");
  auto const news = run.news();
  REQUIRE(news.size() == 1);
  CHECK(news[0].find("cannot be reached (no route)") != std::string::npos);
  REQUIRE(server.runs.size() == 1);  // the second attempt found the run of the first
  CHECK(server.runs[0].status == "FINISHED");
}

TEST_CASE("values without room are dropped, counted, and that is said once") {
  std::mutex gate;
  FakeMlflow server;
  std::unique_lock closed(gate);
  MlflowPlan plan = plan_of();
  plan.most_waiting = 10;
  MlflowRun run(
      [&, call = calls(server)](auto const&... request) {
        std::scoped_lock const lock(gate);
        return call(request...);
      },
      plan);
  CHECK(run.post(points(1, 8)));
  CHECK_FALSE(run.post(points(9, 12)));
  CHECK_FALSE(run.post(points(13, 16)));
  CHECK(run.post(points(17, 18)));
  closed.unlock();
  MlflowSent const sent = run.finish("FINISHED");
  CHECK(sent.points == 10);
  CHECK(sent.dropped == 8);
  auto const news = run.news();
  REQUIRE(news.size() == 1);
  CHECK(news[0].find("Mlflow::most_waiting") != std::string::npos);
}

TEST_CASE("a server that refuses the run is not asked again, and says why") {
  int asked = 0;
  MlflowRun run(
      [&](auto const&...) {
        ++asked;
        return MlflowAnswer{.status = 403, .body = R"({"message":"Permission\ndenied"})"};
      },
      plan_of());
  static_cast<void>(run.post(points(1, 3)));  // refused, if the answer is there already
  MlflowSent const sent = run.finish("FINISHED");
  CHECK(asked == 1);
  CHECK(sent.dropped == 3);
  auto const news = run.news();
  REQUIRE(news.size() == 1);
  CHECK(news[0].find("refuses (HTTP status 403: Permission denied)") != std::string::npos);

  MlflowRun other([](auto const&...) { return MlflowAnswer{.status = 200, .body = "<html>"}; },
                  plan_of());
  CHECK(other.finish("FINISHED").first_failure.find("no MLflow") != std::string::npos);
}

TEST_CASE("a resumed run goes on in the same run, and sends no value twice") {
  FakeMlflow server;
  MlflowPlan first = plan_of("same");
  first.params = {{"lr", "0.1"}};
  MlflowRun before(calls(server), first);
  CHECK(before.post(points(1, 6)));
  static_cast<void>(before.finish("FAILED"));  // the checkpoint is of step 4

  MlflowPlan second = plan_of("same");
  second.resumed = true;
  second.step = 4;
  second.params = {{"lr", "0.2"}, {"device", "cpu"}};
  second.saved = points(3, 4);  // the server has them: the answer came after the checkpoint
  MlflowRun after(calls(server), second);
  CHECK(after.post(points(5, 8)));
  static_cast<void>(after.finish("FINISHED"));
  REQUIRE(server.runs.size() == 1);
  FakeMlflow::Run const& run = server.runs[0];
  CHECK(run.steps("step/loss") == std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(run.status == "FINISHED");
  CHECK(run.params.at("lr") == "0.1");
  CHECK(run.params.at("device") == "cpu");
  CHECK(run.tags.at("resumed.lr") == "0.2");
}

TEST_CASE("what was sent before a Rollback is no repetition of what the run then trains") {
  FakeMlflow server;
  MlflowRun before(calls(server), plan_of("same"));
  CHECK(before.post(points(1, 6)));
  static_cast<void>(before.finish("FAILED"));
  MlflowPlan second = plan_of("same");
  second.resumed = true;
  second.step = 4;
  second.since_ms = 101;
  MlflowRun after(calls(server), second);
  CHECK(after.post(points(5, 6, 0.25)));
  static_cast<void>(after.finish("FINISHED"));
  CHECK(server.runs[0].history("step/loss").back() == "6:0.25");
}

TEST_CASE(
    "a server that hangs is waited for no longer than the end allows, and what waits is kept") {
  MlflowPlan plan = plan_of();
  plan.at_end = 1ms;
  MlflowRun run(
      [](auto const&, auto const&, auto const&, std::stop_token const& stop) {
        std::mutex mutex;
        std::condition_variable_any stopped;
        std::unique_lock lock(mutex);
        stopped.wait(lock, stop, [] { return false; });
        return MlflowAnswer{.failure = "stopped"};
      },
      plan);
  CHECK(run.post(points(1, 3)));
  CHECK((run.waiting() == points(1, 3)));
  CHECK(run.finish("FINISHED").waiting == 3);
}

}  // namespace frugal_test::sink_mlflow_run

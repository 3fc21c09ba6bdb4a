// SPDX-License-Identifier: Apache-2.0
// needs: notices
#include <doctest/doctest.h>

#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/report/log.hpp>
#include <frugal/report/mlflow.hpp>

#include "support/fake_mlflow.hpp"
#include "support/files.hpp"
#include "support/loopback_server.hpp"
#include "support/scripted.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

namespace frugal_test::policy_mlflow {

using namespace support;
using namespace std::chrono_literals;
using frugal::Every;
using frugal::Mlflow;
namespace fr = frugal;
using Server = FakeMlflowServer;

/// The 10 steps of two epochs.
template <class... Ps>
auto trainer_of(fr::Settings settings, Ps const&... policies) {
  settings.epochs = 2;
  settings.seed = 5;
  return fr::Trainer{std::make_shared<Mlp>(), fr::CrossEntropy{}, settings, fr::Optimize<fr::SGD>{},
                     policies...};
}
auto train() { return fr::TensorDataset(samples(18), {.batch = 4}); }
auto valid() { return fr::TensorDataset(samples(9, 92), {.batch = 4}); }

Mlflow<Every<1>> mlflow_at(std::string const& uri) {
  Mlflow<Every<1>> policy{.uri = uri, .experiment = "demo"};
  policy.at_end = 60s;
  return policy;
}

std::vector<std::uint64_t> one_to(std::uint64_t last) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t step = 1; step <= last; ++step) all.push_back(step);
  return all;
}

TEST_CASE(
    "a run at the server has the recipe, every value and the status, and trains the same bits") {
  auto plain = trainer_of({});
  static_cast<void>(plain.fit(train(), valid()));
  Server server;
  Mlflow<Every<1>> policy = mlflow_at(server.http.base() + "/");
  policy.login.token = "secret";
  policy.tags = {{"team", "vision"}};
  auto trainer = trainer_of({.name = "first"}, policy);
  auto const report = trainer.fit(train(), valid());
  CHECK(same_bits(tensors_of(*plain.module()), tensors_of(*trainer.module())));
  CHECK(report.warnings.empty());
  REQUIRE(server.mlflow.runs.size() == 1);
  FakeMlflow::Run const& run = server.mlflow.runs[0];
  CHECK(run.name == "first");
  CHECK(run.status == "FINISHED");
  CHECK(run.tags.at("team") == "vision");
  CHECK(run.tags.at("frugal.version") == std::string(fr::version));
  CHECK(run.params.at("seed") == "5");
  CHECK(run.params.at("device") == "cpu");
  CHECK(run.params.at("recipe").get<std::string>().find("Optimize<SGD>") != std::string::npos);
  CHECK(run.steps("step/loss") == one_to(10));
  CHECK(run.steps("validation/loss") == std::vector<std::uint64_t>{5, 10});
  CHECK(run.steps("epoch/loss") == std::vector<std::uint64_t>{5, 10});
  auto const sent = trainer.policy<fr::kinds::mlflow>().sent.get();
  REQUIRE(sent != nullptr);
  CHECK(sent->points == run.points.size());
  CHECK(sent->waiting + sent->dropped == 0);
  for (HttpRequest const& each : server.http.requests())
    CHECK(each.header("authorization") == "Bearer secret");
}

TEST_CASE("address and login come from MLflow's variables, and a password comes before a token") {
  Server server;
  ::setenv("MLFLOW_TRACKING_URI", server.http.base().c_str(), 1);
  ::setenv("MLFLOW_TRACKING_USERNAME", "ann", 1);
  ::setenv("MLFLOW_TRACKING_PASSWORD", "p:w", 1);
  ::setenv("MLFLOW_TRACKING_TOKEN", "unused", 1);
  static_cast<void>(trainer_of({}, mlflow_at("")).fit(train(), valid()));
  for (char const* const name : {"URI", "USERNAME", "PASSWORD", "TOKEN"})
    ::unsetenv((std::string("MLFLOW_TRACKING_") + name).c_str());
  REQUIRE_FALSE(server.http.requests().empty());
  // ann:p:w in Base64.
  CHECK(server.http.requests()[0].header("authorization") == "Basic YW5uOnA6dw==");
}

TEST_CASE(
    "without a server the run goes on, its log is whole, and its report says what is missing") {
  TemporaryFolder const folder;
  int port = 0;
  int const nobody = LoopbackServer::bound(port);
  Mlflow<Every<1>> policy =
      mlflow_at("http://ann:secret@127.0.0.1:" + std::to_string(port) + "/path");
  policy.at_end = 1ms;
  auto trainer = trainer_of({.run_dir = folder.path()}, policy, fr::Log<Every<1>>{});
  auto const report = trainer.fit(train(), valid());
  ::close(nobody);
  CHECK(report.steps == 10);
  REQUIRE_FALSE(report.warnings.empty());
  for (std::string const& each : report.warnings) {
    CHECK(each.starts_with("Mlflow, http://127.0.0.1:" + std::to_string(port) + ": "));
    CHECK(each.find("secret") == std::string::npos);
  }
  CHECK(report.warnings.back().find("values are not sent (") != std::string::npos);
  CHECK(trainer.policy<fr::kinds::mlflow>().sent.get()->waiting > 10);
  std::string const log = text_of(folder / "metrics.jsonl");
  CHECK(log.find(R"("event":"step","step":10)") != std::string::npos);
}

struct Dies {
  std::uint64_t at;
  std::uint64_t* batches;
  template <class Module>
  fr::Loss operator()(Module& module, fr::Batch const& batch) const {
    if (at::GradMode::is_enabled() && ++*batches == at) throw std::runtime_error("gone");
    return fr::CrossEntropy{}(module, batch);
  }
};

TEST_CASE("a run that fails is FAILED, resumes in the same run, and a fork of it is another run") {
  TemporaryFolder const folder;
  Server server;
  auto const fit = [&](std::string const& name, std::uint64_t dies_at, std::string const& from) {
    std::uint64_t batches = 0;
    fr::Checkpoint<Every<4>> const checkpoint{.from = from.empty() ? "" : folder / from};
    fr::Trainer trainer{std::make_shared<Mlp>(),
                        Dies{dies_at, &batches},
                        fr::Settings{.run_dir = folder / name, .epochs = 2, .seed = 5},
                        fr::Optimize<fr::SGD>{},
                        checkpoint,
                        mlflow_at(server.http.base())};
    static_cast<void>(trainer.fit(train(), valid()));
  };
  CHECK_THROWS_WITH(fit("a", 8, ""), doctest::Contains("gone"));
  REQUIRE(server.mlflow.runs.size() == 1);
  CHECK(server.mlflow.runs[0].status == "FAILED");
  CHECK(server.mlflow.runs[0].steps("step/loss") == one_to(7));

  fit("b", 0, "a");
  REQUIRE(server.mlflow.runs.size() == 2);
  CHECK(server.mlflow.runs[1].name == "b");
  CHECK(server.mlflow.runs[1].steps("step/loss") == std::vector<std::uint64_t>{5, 6, 7, 8, 9, 10});
  CHECK(server.mlflow.runs[0].status == "FAILED");

  fit("a", 0, "");
  REQUIRE(server.mlflow.runs.size() == 2);
  FakeMlflow::Run const& run = server.mlflow.runs[0];
  CHECK(run.status == "FINISHED");
  CHECK(run.steps("step/loss") == one_to(10));
  CHECK(run.steps("validation/loss") == std::vector<std::uint64_t>{5, 10});
}

TEST_CASE("settings with which nothing could be sent are errors before the first step") {
  auto const refused = [](Mlflow<Every<1>> const& policy, std::string const& why) {
    CHECK_THROWS_WITH_AS(static_cast<void>(trainer_of({}, policy).fit(train(), valid())),
                         doctest::Contains(why.c_str()), fr::SettingsError);
  };
  ::unsetenv("MLFLOW_TRACKING_URI");
  refused(mlflow_at(""), "neither it nor MLFLOW_TRACKING_URI is set");
  refused(mlflow_at("sqlite:///mlflow.db"), "http:// or https://");
  Mlflow<Every<1>> policy = mlflow_at("http://localhost");
  policy.timeout = 0ms;
  refused(policy, "timeout");
  policy.timeout = 1s;
  policy.login.token = "a\r\nb";
  refused(policy, "line breaks");
}

}  // namespace frugal_test::policy_mlflow

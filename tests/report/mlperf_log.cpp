// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/report/mlperf_log.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/scripted.hpp"

#include <string>
#include <vector>

namespace frugal_test::policy_mlperf_log {

using namespace frugal_test::support;
using namespace frugal_test::support::dying_runs;
using frugal::Every;
using frugal::MlperfLog;
namespace fr = frugal;

std::vector<Json> events_in(std::filesystem::path const& path) {
  std::vector<Json> all;
  for (std::string const& line : lines_of(text_of(path))) {
    REQUIRE(line.starts_with(":::MLLOG "));
    all.push_back(Json::parse(line.substr(9)));
  }
  return all;
}

std::vector<std::string> keys(std::vector<Json> const& events) {
  std::vector<std::string> all;
  for (Json const& each : events) all.push_back(each.at("key"));
  return all;
}

template <class... Ps>
auto trainer_of(fr::Settings settings, Ps const&... policies) {
  settings.epochs = 2;
  settings.seed = 5;
  return fr::Trainer{std::make_shared<Mlp>(), fr::CrossEntropy{}, settings, fr::Optimize<fr::SGD>{},
                     policies...};
}
auto train() { return fr::TensorDataset(samples(18), {.batch = 4}); }
auto valid() { return fr::TensorDataset(samples(9, 92), {.batch = 4}); }

TEST_CASE("a log has the keys of MLPerf in the order of the run") {
  TemporaryFolder const folder;
  auto trainer = trainer_of(
      {.run_dir = folder.path()},
      MlperfLog<Every<5>>{.values = {{"submission_org", std::string("us")}}, .metric = "loss"});
  auto const report = trainer.fit(train(), valid());
  auto const events = events_in(folder / "mlperf.log");
  CHECK(keys(events) == std::vector<std::string>{
                            "init_start", "submission_org", "seed", "init_stop", "run_start",
                            "epoch_start", "tracked_stats", "epoch_stop", "eval_start",
                            "eval_accuracy", "eval_stop", "epoch_start", "tracked_stats",
                            "epoch_stop", "eval_start", "eval_accuracy", "eval_stop", "run_stop"});
  CHECK(events[1].at("value") == "us");
  CHECK(events[2].at("value") == 5);
  CHECK(events[4].at("event_type") == "INTERVAL_START");
  CHECK(events[5].at("metadata").at("epoch_num") == 1);
  CHECK(events[6].at("value").at("lr_factor") == 1);
  CHECK(events[6].at("value").at("learning_rate") == 1e-3);
  CHECK(events[6].at("metadata").at("step") == 5);
  CHECK(events[7].at("metadata").at("epoch_num") == 1);
  CHECK(events[9].at("value").get<double>() == report.validations[0].metrics["loss"]);
  CHECK(events[9].at("metadata").at("epoch_num") == 1);
  CHECK(events[17].at("metadata").at("status") == "success");
  double before = 0;
  for (Json const& each : events) {
    CHECK(each.at("time_ms").get<double>() >= before);
    before = each.at("time_ms");
  }
}

TEST_CASE("a run that misses its target is aborted, in the words of MLPerf") {
  for (double const target : {-1.0, 1e9}) {
    TemporaryFolder const folder;
    auto trainer =
        trainer_of({.run_dir = folder.path()},
                   MlperfLog<>{.metric = "loss", .target = target, .target_is_below = true});
    static_cast<void>(trainer.fit(train(), valid()));
    CHECK(events_in(folder / "mlperf.log").back().at("metadata").at("status") ==
          (target > 0 ? "success" : "aborted"));
  }
}

TEST_CASE("a run that dies and resumes has the lines of one that does not") {
  TemporaryFolder const folder;
  auto const lines_with = [&](std::string const& name, std::vector<std::uint64_t> const& deaths) {
    run_to_the_end({.folder = folder / name}, deaths, fr::Optimize<fr::SGD>{},
                   MlperfLog<Every<2>>{}, fr::Checkpoint<Every<4>>{});
    auto events = events_in(folder / name / "mlperf.log");
    for (Json& each : events) {
      each.erase("time_ms");
      if (each.at("key") == "tracked_stats") each.at("value").erase("memory_bytes");
    }
    return events;
  };
  auto const whole = lines_with("whole", {});
  CHECK(whole.size() > 20);
  CHECK(lines_with("killed", {7, 11}) == whole);
}

TEST_CASE("a resumed run without its log reports that, and begins another") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 15};
  auto const start = [&] {
    return run(job, fr::Optimize<fr::SGD>{}, MlperfLog<Every<2>>{}, fr::Checkpoint<Every<4>>{});
  };
  CHECK(start().died);
  std::filesystem::remove(folder / "mlperf.log");
  job.dies_at = 0;
  CHECK(advises(start().report, (folder / "mlperf.log").string() + " lacks "));
  CHECK(keys(events_in(folder / "mlperf.log")).front() == "init_start");
}

TEST_CASE("a full disk is reported once, and a target that is not finite is refused") {
  auto full = trainer_of({}, MlperfLog<Every<1>>{.path = "/dev/full"});
  auto const report = full.fit(train(), valid());
  CHECK(report.warnings.size() == 1);
  CHECK(full.template policy<fr::kinds::mlperf_log>().outcome.get()->lost == 18);
  auto trainer = trainer_of({}, MlperfLog<>{.path = "/dev/null", .target = std::nan("")});
  CHECK_THROWS_WITH_AS(static_cast<void>(trainer.fit(train())),
                       doctest::Contains("MlperfLog::target"), fr::SettingsError);
}

}  // namespace frugal_test::policy_mlperf_log

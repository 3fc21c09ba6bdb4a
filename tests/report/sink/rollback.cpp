// SPDX-License-Identifier: Apache-2.0
// needs: tensorboard
// Every sink after a Rollback has what a run without the bad window has.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>
#include <frugal/report/tensorboard.hpp>

#include "support/event_file.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace frugal_test::policy_sink_rollback {

using namespace support;
using frugal::Every;
namespace fr = frugal;

/// Two epochs in windows of 4 samples, the ninth of each epoch bad; the state of step 6 is kept
/// between the records of steps 4 and 8.
template <class... Ps>
fr::Report train(fr::Batch const& data, std::filesystem::path const& folder,
                 Ps const&... policies) {
  fr::Trainer trainer{std::make_shared<Mlp>(),
                      fr::CrossEntropy{},
                      fr::Settings{.run_dir = folder, .epochs = 2},
                      fr::Optimize<fr::AdamW>{},
                      fr::Rollback<Every<3>>{.slow_down = 1},
                      policies...};
  fr::TensorDataset source(data, {.batch = 4, .shuffle = false});
  auto report = trainer.fit(source);
  CHECK(report.steps == 20);
  return report;
}

fr::Batch spoilt() {
  fr::Batch all = samples(44);
  all.data = all.data.clone();
  all.data.narrow(0, 32, 4).fill_(std::numeric_limits<float>::quiet_NaN());
  return all;
}
fr::Batch clean() {
  fr::Batch const all = samples(44);
  auto const cut = [](at::Tensor const& tensor) {
    return at::cat({tensor.narrow(0, 0, 32), tensor.narrow(0, 36, 8)});
  };
  return {cut(all.data), cut(all.target)};
}

/// The lines of a file in both runs. `own`: what is left of a line; empty: nothing is.
template <class Policy, class Own>
void same_lines(Policy const& policy, std::string const& name, Own&& own) {
  TemporaryFolder const folder;
  CHECK(train(clean(), folder / "clean", policy).warnings.empty());
  CHECK(train(spoilt(), folder / "bad", policy).warnings.size() == 2);
  auto const left = [&](std::string const& run) {
    std::vector<std::string> lines;
    for (std::string const& line : lines_of(text_of(folder / run / name))) {
      if (std::string rest = own(line); !rest.empty()) lines.push_back(std::move(rest));
    }
    return lines;
  };
  auto const wanted = left("clean");
  CHECK(wanted.size() > 10);
  CHECK(left("bad") == wanted);
}

TEST_CASE("the rows of Csv are those of a run without the bad windows, each once") {
  same_lines(fr::Csv<Every<4>>{}, "metrics.csv", [](std::string const& row) {
    // event,step,epoch,samples,seconds,name,value: the time differs, and the samples passed over.
    std::vector<std::string> cells{""};
    for (char const c : row) {
      if (c == ',') {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
    REQUIRE(cells.size() == 7);
    if (cells[0] == "rollback" || cells[5] == "memory_bytes") return std::string();
    return cells[0] + "," + cells[1] + "," + cells[2] + "," + cells[5] + "," + cells[6];
  });
}

TEST_CASE("the lines of MlperfLog are those of a run without the bad windows, each once") {
  same_lines(fr::MlperfLog<Every<4>>{}, "mlperf.log", [](std::string const& line) {
    auto event = nlohmann::json::parse(line.substr(9));
    event.erase("time_ms");
    event.at("metadata").erase("samples_count");
    if (event.at("key") == "tracked_stats") event.at("value").erase("memory_bytes");
    return event.dump();
  });
}

/// Killed after the first return, while the last checkpoint is of the branch that it has removed.
template <class Policy, class Own>
void same_lines_after_a_kill(Policy const& policy, std::string const& name, Own&& own) {
  struct Gone {};
  TemporaryFolder const folder;
  auto const start = [&](std::string const& run, int dies_at) {
    int batches = 0;
    auto const objective = [&](std::shared_ptr<Mlp>& module, fr::Batch const& batch) {
      if (++batches == dies_at) throw Gone{};
      return fr::CrossEntropy{}(module, batch);
    };
    fr::Trainer trainer{std::make_shared<Mlp>(),
                        objective,
                        fr::Settings{.run_dir = folder / run},
                        fr::Optimize<fr::AdamW>{},
                        fr::Rollback<Every<100>>{.slow_down = 1},
                        fr::Checkpoint<Every<4>>{},
                        policy};
    try {
      auto const report = trainer.fit(fr::TensorDataset(spoilt(), {.batch = 4, .shuffle = false}));
      CHECK(report.warnings.size() == 1);  // of the bad window alone
    } catch (Gone const&) {
    }
  };
  auto const left = [&](std::string const& run) {
    std::vector<std::string> lines;
    for (std::string const& line : lines_of(text_of(folder / run / name))) {
      if (std::string rest = own(line); !rest.empty()) lines.push_back(std::move(rest));
    }
    return lines;
  };
  start("whole", 0);
  // A save at step 8, the bad window at batch 9, and two steps of the new branch.
  start("killed", 12);
  start("killed", 0);
  CHECK(left("whole").size() > 10);
  CHECK(left("killed") == left("whole"));
}

TEST_CASE("a kill between a rollback and the next save leaves no row of Csv out or twice") {
  same_lines_after_a_kill(fr::Csv<Every<1>>{}, "metrics.csv", [](std::string const& row) {
    if (row.starts_with("resume,") || row.find(",memory_bytes,") != std::string::npos) {
      return std::string();
    }
    std::size_t const third = row.find(',', row.find(',', row.find(',') + 1) + 1);
    std::size_t const fifth = row.find(',', row.find(',', third + 1) + 1);
    return row.substr(0, third) + row.substr(fifth);
  });
}

TEST_CASE("a kill between a rollback and the next save leaves no line of MlperfLog out or twice") {
  same_lines_after_a_kill(fr::MlperfLog<Every<1>>{}, "mlperf.log", [](std::string const& line) {
    auto event = nlohmann::json::parse(line.substr(9));
    event.erase("time_ms");
    if (event.at("key") == "tracked_stats") event.at("value").erase("memory_bytes");
    return event.dump();
  });
}

TEST_CASE("the metrics of Prometheus are those of a run without the bad windows, and count it") {
  std::string counted;
  same_lines(fr::Prometheus<Every<4>>{.labels = {{"run", "x"}}}, "metrics.prom",
             [&](std::string const& line) {
               if (line.starts_with("frugal_events_total")) counted = line;
               // A counter has the steps that the return repeats, too.
               for (char const* const other : {"_total", "memory_bytes", "run_samples",
                                               "run_training_seconds", "last_update"}) {
                 if (line.find(other) != std::string::npos) return std::string();
               }
               return line;
             });
  CHECK(counted == "frugal_events_total{event=\"rollback\",run=\"x\"} 2");
}

TEST_CASE("TensorBoard loses nothing between the last record and the kept state") {
  TemporaryFolder const folder;
  fr::TensorBoardWriter const writer;
  Spy const user{.each_step = [&](fr::Counters const& now) {
    writer.scalar("mine", now.step, static_cast<double>(now.step));
  }};
  using Board =
      fr::TensorBoard<Every<4>, fr::WeightHistograms<Every<1>>, fr::GradientHistograms<Every<1>>>;
  auto const found_in = [&](fr::Batch const& data, std::string const& name) {
    train(data, folder / name, Board{.writer = writer}, user);
    return events_in(writer.path());
  };
  EventsFound const wanted = found_in(clean(), "clean");
  EventsFound const found = found_in(spoilt(), "bad");
  CHECK(found.restarts.size() == 2);
  CHECK(found.restarts[0] == 7);
  for (std::string const tag :
       {"step/loss", "epoch/loss", "weights/first.weight", "gradients/first.weight", "mine"}) {
    CAPTURE(tag);
    CHECK(found.steps_of(tag) == wanted.steps_of(tag));
  }
  auto const values_of = [](EventsFound const& all) {
    std::vector<std::string> values;
    for (auto const& each : all.alive) {
      if (each.tag.ends_with("memory_bytes") || each.tag.starts_with("rollback/")) continue;
      values.push_back(each.tag + "@" + std::to_string(each.step) + "=" + each.value);
    }
    std::sort(values.begin(), values.end());
    return values;
  };
  CHECK(values_of(found) == values_of(wanted));
}

}  // namespace frugal_test::policy_sink_rollback

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/report/csv.hpp>
#include <frugal/report/log.hpp>
#include <frugal/report/on_metrics.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/scripted.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace frugal_test::policy_csv {

using namespace frugal_test::support;
using namespace frugal_test::support::dying_runs;
using frugal::Csv;
using frugal::Every;
namespace fr = frugal;

/// Cells of a file without quoted ones.
std::vector<std::vector<std::string>> cells_in(std::filesystem::path const& path) {
  std::vector<std::vector<std::string>> rows;
  for (std::string line : lines_of(text_of(path))) {
    REQUIRE(line.ends_with('\r'));
    line.pop_back();
    rows.emplace_back(1);
    for (char const c : line) {
      if (c == ',') {
        rows.back().emplace_back();
      } else {
        rows.back().back() += c;
      }
    }
  }
  return rows;
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

TEST_CASE("a CSV file has one header, and a row for each value of each record") {
  TemporaryFolder const folder;
  Seen seen;
  auto trainer = trainer_of({.run_dir = folder.path()}, Csv<Every<5>>{}, Spy{.seen = &seen});
  static_cast<void>(trainer.fit(train(), valid()));
  auto const rows = cells_in(folder / "metrics.csv");
  REQUIRE(rows.size() > 10);
  CHECK(rows[0] ==
        std::vector<std::string>{"event", "step", "epoch", "samples", "seconds", "name", "value"});
  CHECK(rows[1][0] == "begin");
  CHECK(rows[1][5] == "parameters");
  CHECK(rows[1][6] == "83");
  CHECK(rows[3][0] == "step");
  CHECK(rows[3][1] == "5");
  CHECK(rows[3][3] == "18");
  CHECK(rows[3][5] == "loss");
  CHECK(std::stod(rows[3][6]) == seen.losses[4]);
  CHECK(rows[5][5] == "learning_rate");
  CHECK(rows[5][6] == "0.001");
  CHECK(rows[6][5] == "memory_bytes");
  CHECK(rows.back()[0] == "end");
  for (auto const& row : rows) CHECK(row.size() == 7);
}

TEST_CASE("a run that dies and resumes has the rows of one that does not") {
  TemporaryFolder const folder;
  auto const rows_of = [&](std::string const& name, std::vector<std::uint64_t> const& deaths) {
    run_to_the_end({.folder = folder / name}, deaths, fr::Optimize<fr::SGD>{}, Csv<Every<2>>{},
                   fr::Checkpoint<Every<4>>{});
    auto rows = cells_in(folder / name / "metrics.csv");
    std::erase_if(rows,
                  [](auto const& row) { return row[0] == "resume" || row[5] == "memory_bytes"; });
    for (auto& row : rows) row[4].clear();
    return rows;
  };
  auto const whole = rows_of("whole", {});
  CHECK(whole.size() > 20);
  CHECK(rows_of("killed", {7, 11}) == whole);
}

TEST_CASE("a resumed run whose file lacks rows reports that once, and continues") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .dies_at = 15};
  auto const start = [&] {
    return run(job, fr::Optimize<fr::SGD>{}, Csv<Every<2>>{}, fr::Checkpoint<Every<4>>{});
  };
  CHECK(start().died);
  auto const size = std::filesystem::file_size(folder / "metrics.csv");
  std::filesystem::resize_file(folder / "metrics.csv", 100);
  job.dies_at = 0;
  auto const report = start().report;
  CHECK(advises(report, (folder / "metrics.csv").string() + " lacks "));
  CHECK(advises(report, "its lines from then are missing"));
  CHECK(std::filesystem::file_size(folder / "metrics.csv") > size);
  // If all of it is there, nothing else is said.
  job.epochs = 4;
  CHECK(start().report.warnings == report.warnings);
}

/// Keeps what a checkpoint of step 0 would hold.
struct Early {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "csv.Early";
  };
  using listens = fr::list<fr::on::ready>;
  Frozen* into = nullptr;
  struct State {
    using transient = void;
    explicit State(Early const& settings) : into(settings.into) {}
    void on_ready(fr::Ready& phase) {
      if (phase.counters().step == 0 && into != nullptr) *into = freeze(phase);
    }
    Frozen* into;
  };
};

TEST_CASE("a run that is resumed from a checkpoint of step 0 begins once") {
  TemporaryFolder const folder;
  Frozen begun;
  auto first = trainer_of({.run_dir = folder.path()}, Csv<Every<2>>{}, Early{.into = &begun},
                          Resume{.stop_at = 3});
  static_cast<void>(first.fit(train(), valid()));
  auto second =
      trainer_of({.run_dir = folder.path()}, Csv<Every<2>>{}, Early{}, Resume{.from = &begun});
  static_cast<void>(second.fit(train(), valid()));
  auto const rows = cells_in(folder / "metrics.csv");
  auto const count = [&](std::string const& event, std::string const& name) {
    return std::count_if(rows.begin(), rows.end(),
                         [&](auto const& row) { return row[0] == event && row[5] == name; });
  };
  CHECK(count("begin", "parameters") == 1);
  CHECK(count("step", "loss") == 5);
}

TEST_CASE(
    "a full disk, a removed folder and a throwing callable change no weight and no other sink") {
  TemporaryFolder const folder;
  auto plain = trainer_of({});
  static_cast<void>(plain.fit(train(), valid()));

  using Call = std::function<void(fr::MetricRecord const&)>;
  std::size_t records = 0;
  Call const throws = [](fr::MetricRecord const&) { throw std::runtime_error("gone"); };
  Call const counts = [&](fr::MetricRecord const&) { ++records; };
  Spy const remover{.each_step = [&](fr::Counters const& now) {
    if (now.step == 3) std::filesystem::remove_all(folder / "away");
  }};
  auto watched = trainer_of(
      {}, Csv<Every<1>>{.path = "/dev/full"}, Csv<Every<1>>{.path = folder / "away/metrics.csv"},
      fr::OnMetrics<Call, Every<1>>{.call = throws}, remover,
      Csv<Every<1>>{.path = folder / "good.csv"}, fr::Log<Every<1>>{.path = folder / "good.jsonl"},
      fr::OnMetrics<Call, Every<1>>{.call = counts});
  auto const report = watched.fit(train(), valid());
  CHECK(report.steps == 10);
  CHECK(same_bits(tensors_of(*plain.module()), tensors_of(*watched.module())));
  CHECK(records == 16);
  CHECK(lines_of(text_of(folder / "good.jsonl")).size() == 16);
  auto const rows = cells_in(folder / "good.csv");
  CHECK(std::count_if(rows.begin(), rows.end(),
                      [](auto const& row) { return row[5] == "lr_factor"; }) == 10);
  CHECK_FALSE(std::filesystem::exists(folder / "away"));
  // One of each that failed.
  REQUIRE(report.warnings.size() == 3);
  CHECK(report.warnings[0].find("Csv could not write at step 0 (/dev/full: ") == 0);
  CHECK(report.warnings[1].find("OnMetrics could not write at step 0 (gone)") == 0);
  CHECK(report.warnings[2].find("Csv could not write at step 4 (" + (folder / "away").string()) ==
        0);
}

TEST_CASE("what was lost is counted, and a folder that is there again is written to") {
  TemporaryFolder const folder;
  Spy const remover{.each_step = [&](fr::Counters const& now) {
    if (now.step == 3) std::filesystem::remove_all(folder / "away");
    if (now.step == 6) std::filesystem::create_directory(folder / "away");
  }};
  auto trainer = trainer_of({}, Csv<Every<1>>{.path = folder / "away/metrics.csv"}, remover);
  static_cast<void>(trainer.fit(train(), valid()));
  auto const* const outcome = trainer.template policy<fr::kinds::csv>().outcome.get();
  REQUIRE(outcome != nullptr);
  CHECK(outcome->lost == 5);  // steps 4, 5 and 6, an epoch and its validation
  CHECK(outcome->written == 11);
  CHECK(outcome->first_failure.find((folder / "away").string()) == 0);
  auto const rows = cells_in(folder / "away/metrics.csv");
  REQUIRE(rows.size() > 2);
  CHECK(rows[0][0] == "event");
  CHECK(rows[1][1] == "7");
}

TEST_CASE("between times of the cadence a sink dispatches no operator") {
  TemporaryFolder const folder;
  auto const operators = [&](auto const&... policies) {
    auto trainer = trainer_of({.run_dir = folder.path()}, policies...);
    return operators_of([&] { static_cast<void>(trainer.fit(train())); });
  };
  CHECK(operators(Csv<Every<1000>>{}) == operators());
}

TEST_CASE("a CSV file without a place is refused, and so is one that cannot be opened") {
  TemporaryFolder const folder;
  auto nowhere = trainer_of({}, Csv<>{});
  CHECK_THROWS_WITH_AS(static_cast<void>(nowhere.fit(train())), doctest::Contains("Csv::path"),
                       fr::SettingsError);
  std::ofstream(folder / "file") << "in the way";
  auto blocked = trainer_of({.run_dir = folder / "file"}, Csv<>{});
  CHECK_THROWS_WITH_AS(static_cast<void>(blocked.fit(train())),
                       doctest::Contains("is not a folder"), fr::DataError);
}

}  // namespace frugal_test::policy_csv

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/recorder.hpp"
#include "support/reference.hpp"

#include <string>
#include <vector>

namespace frugal_test::policy_log_scalars {

using namespace frugal_test::support;
using namespace frugal_test::support::dying_runs;
namespace fr = frugal;

/// Reports the largest logit of a batch, and how many samples it has.
struct Reporting {
  std::uint64_t dies_at = 0;  ///< batches of training; 0: never
  std::uint64_t* count = nullptr;

  fr::Loss operator()(std::shared_ptr<Mlp>& module, fr::Batch const& batch) const {
    fr::Loss loss = fr::CrossEntropy{}(module, batch);
    if (module->is_training() && count != nullptr && ++*count == dies_at) throw Gone{};
    loss.scalars = {{"largest", loss.output.max()}, {"rows", loss.output.size(0)}};
    return loss;
  }
};

/// A log's lines without the wall time.
std::vector<Json> lines_in(std::filesystem::path const& path) {
  std::vector<Json> all;
  for (std::string const& line : lines_of(text_of(path))) {
    Json parsed = Json::parse(line);
    if (parsed.at("event") == "resume") continue;
    parsed.erase("seconds");
    parsed.erase("memory_bytes");
    all.push_back(parsed);
  }
  return all;
}

TEST_CASE("a line has the means since the line before, by the weight of the losses") {
  TemporaryFolder const folder;
  run_with(Job{.folder = folder / "run", .epochs = 1}, Reporting{}, fr::Optimize<fr::SGD>{},
           fr::Log<fr::Every<4>>{});
  // 11 batches of 4 samples, the last of 3.
  auto const lines = lines_in(folder / "run/metrics.jsonl");
  REQUIRE(lines.size() == 6);
  CHECK(lines[1].at("rows") == 4);
  CHECK(lines[1].at("largest").is_number());
  CHECK(lines[3].at("event") == "epoch");
  CHECK(lines[3].at("rows").get<double>() == doctest::Approx((10 * 16 + 9) / 43.0));
  // A validation has its own: 15 samples in batches of 4.
  CHECK(lines[4].at("event") == "validation");
  CHECK(lines[4].at("rows").get<double>() == doctest::Approx((3 * 16 + 9) / 15.0));
}

TEST_CASE("a run that dies and resumes logs the same scalars") {
  TemporaryFolder const folder;
  auto const log_of = [&](std::string const& name, std::vector<std::uint64_t> const& deaths) {
    Job const job{.folder = folder / name};
    for (std::uint64_t const death : deaths) {
      std::uint64_t count = 0;
      CHECK(run_with(job, Reporting{death, &count}, fr::Optimize<fr::SGD>{},
                     fr::Log<fr::Every<4>>{}, fr::Checkpoint<fr::Every<3>>{})
                .died);
    }
    run_with(job, Reporting{}, fr::Optimize<fr::SGD>{}, fr::Log<fr::Every<4>>{},
             fr::Checkpoint<fr::Every<3>>{});
    return lines_in(folder / name / "metrics.jsonl");
  };
  CHECK((log_of("killed", {6, 13}) == log_of("whole", {})));
}

TEST_CASE("windows of several micro-batches and steps that are replayed report the same") {
  TemporaryFolder const folder;
  auto const log_of = [&](std::string const& name, auto const&... policies) {
    run_with(Job{.folder = folder / name, .epochs = 2, .shape = {}}, Reporting{},
             fr::Optimize<fr::SGD>{}, fr::Log<fr::Every<2>>{}, fr::Accumulate<2>{}, policies...);
    return lines_in(folder / name / "metrics.jsonl");
  };
  RecorderLog log;
  auto const eager = log_of("eager");
  auto const replayed = log_of(
      "replayed", fr::CudaGraph<fr::WholeStep, Recorder>{.warm_up = 1, .backend = {.log = &log}});
  REQUIRE(eager.size() == replayed.size());
  for (std::size_t i = 0; i < eager.size(); ++i) {
    if (!eager[i].contains("largest")) continue;
    CHECK(replayed[i].at("largest").get<double>() ==
          doctest::Approx(eager[i].at("largest").get<double>()).epsilon(1e-6));
  }
  CHECK(eager[1].contains("largest"));
}

TEST_CASE("Progress shows them, and a scalar that is not a number ends the run with its name") {
  TemporaryFolder const folder;
  std::FILE* const out = std::fopen((folder / "out").c_str(), "w");
  run_with(Job{.folder = folder / "run", .epochs = 1}, Reporting{}, fr::Optimize<fr::SGD>{},
           fr::Progress<>{.out = out, .plain = true, .line_seconds = 0});
  std::fclose(out);
  CHECK(text_of(folder / "out").find("  rows 4  ") != std::string::npos);

  auto const wrong = [](std::shared_ptr<Mlp>& module, fr::Batch const& batch) {
    fr::Loss loss = fr::CrossEntropy{}(module, batch);
    loss.scalars = {{"logits", loss.output}};
    return loss;
  };
  CHECK_THROWS_WITH_AS(run_with(Job{.folder = folder / "wrong"}, wrong, fr::Optimize<fr::SGD>{}),
                       doctest::Contains("the scalar 'logits' is not a single number but [4, 3]"),
                       fr::ShapeError);
}

}  // namespace frugal_test::policy_log_scalars

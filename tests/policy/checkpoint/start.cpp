// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/checkpoints.hpp"
#include "support/dying_runs.hpp"
#include "support/files.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace frugal_test::policy_checkpoint_start {

using namespace support;
using namespace support::dying_runs;
using frugal::Every;
using frugal::OnNewer;
using Optimizer = frugal::Optimize<frugal::AdamW>;
using Saves = frugal::Checkpoint<Every<4>, frugal::Keep<20>>;

/// Every file of a folder, with its contents.
std::map<std::string, std::string> all_of(std::filesystem::path const& folder) {
  std::map<std::string, std::string> found;
  for (auto const& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) found[entry.path().string()] = text_of(entry.path());
  }
  return found;
}

std::filesystem::path step_of(std::filesystem::path const& run, std::string const& step) {
  return run / "checkpoints" / ("step-000000" + step);
}

TEST_CASE("a fork ends with the bits of the run that it left, and does not change it") {
  TemporaryFolder const folder;
  Outcome const whole = run({.folder = folder / "whole"}, Optimizer{}, Saves{});
  auto const before = all_of(folder / "whole");
  for (auto const& from : {step_of(folder / "whole", "16"), step_of(folder / "whole", "00"),
                           step_of(folder / "whole", "16") / ""}) {
    CAPTURE(from);
    Job const job{.folder = folder / "fork"};
    Outcome const fork = run(job, Optimizer{}, Saves{.from = from});
    REQUIRE(fork.report.resumed);
    CHECK(same_bits(fork.tensors, whole.tensors));
    CHECK(fork.losses.size() == whole.losses.size() - fork.report.resumed->step);
    CHECK(fork.report.resumed->steps_repeated == 0);
    CHECK((all_of(folder / "whole") == before));
    std::filesystem::remove_all(job.folder);
  }
}

TEST_CASE("a fork of a run directory takes its newest whole checkpoint, while that run goes on") {
  TemporaryFolder const folder;
  CHECK(run({.folder = folder / "run", .dies_at = 20}, Optimizer{}, Saves{}).died);
  flip_bit(newest_in(folder / "run") / "state.json", 100);
  frugal::RunDirectory const held(folder / "run");  // locks it, as its trainer does
  Outcome const fork = run({.folder = folder / "fork"}, Optimizer{}, Saves{.from = folder / "run"});
  REQUIRE(fork.report.resumed);
  CHECK(fork.report.resumed->step == 12);
  REQUIRE(fork.report.resumed->damaged.size() == 1);
  CHECK(fork.report.resumed->damaged[0].find("step-00000016") != std::string::npos);
}

TEST_CASE("an interrupted fork continues from its own newest checkpoint") {
  TemporaryFolder const folder;
  Outcome const whole = run({.folder = folder / "whole"}, Optimizer{}, Saves{});
  Saves const saves{.from = step_of(folder / "whole", "08")};
  Job job{.folder = folder / "fork", .dies_at = 2};
  CHECK(run(job, Optimizer{}, saves).died);
  // Killed before its first cadence: its beginning is saved in its own folder.
  CHECK((steps_in(job.folder) == Steps{8}));
  std::filesystem::remove_all(step_of(folder / "whole", "08"));
  job.dies_at = 10;
  CHECK(run(job, Optimizer{}, saves).died);
  job.dies_at = 0;
  Outcome const end = run(job, Optimizer{}, saves);
  REQUIRE(end.report.resumed);
  CHECK(end.report.resumed->step == 16);
  CHECK(same_bits(end.tensors, whole.tensors));
}

TEST_CASE("a fork may have another recipe, as a resume may") {
  TemporaryFolder const folder;
  run({.folder = folder / "whole"}, Optimizer{}, Saves{});
  Saves saves{.from = step_of(folder / "whole", "16")};
  Job const job{.folder = folder / "fork"};
  CHECK_THROWS_AS(run(job, Optimizer{}, frugal::EarlyStop<frugal::Patience<50>>{}, saves),
                  frugal::StateError);
  saves.changed_recipe = frugal::ChangedRecipe::KeepWhatFits;
  Outcome const fork = run(job, Optimizer{}, frugal::EarlyStop<frugal::Patience<50>>{}, saves);
  CHECK(fork.report.steps == 33);
  CHECK(fork.losses.size() == 17);
}

TEST_CASE("an older checkpoint of the run itself is refused, and nothing is lost") {
  TemporaryFolder const folder;
  run({.folder = folder.path()}, Optimizer{}, Saves{});
  auto const before = all_of(folder / "checkpoints");
  CHECK_THROWS_WITH_AS(
      run({.folder = folder.path()}, Optimizer{}, Saves{.from = step_of(folder.path(), "16")}),
      doctest::Contains("5 are newer; the newest is step-00000033"), frugal::StateError);
  CHECK((all_of(folder / "checkpoints") == before));
  Outcome const told =
      run({.folder = folder.path()}, Optimizer{},
          Saves{.from = step_of(folder.path(), "16"), .on_newer = OnNewer::Remove});
  CHECK(advises(told.report, "step-00000016: 5 newer checkpoints were removed"));
  CHECK(told.report.resumed->steps_repeated == 17);
}

TEST_CASE(
    "the newest checkpoint of the run, named as such, is resumed, and so are those after it") {
  TemporaryFolder const folder;
  Job job{.folder = folder.path(), .epochs = 2};
  run(job, Optimizer{}, Saves{.from = folder.path()});
  auto const newest = step_of(folder.path(), "22");
  job = {.folder = folder.path(), .dies_at = 8};
  Outcome const first = run(job, Optimizer{}, Saves{.from = newest});
  CHECK(first.died);
  job.dies_at = 0;
  Outcome const second = run(job, Optimizer{}, Saves{.from = newest});
  REQUIRE(second.report.resumed);
  CHECK(second.report.resumed->step == 28);
  CHECK(second.report.steps == 33);
}

TEST_CASE("told to, the run returns to it once, and restarts continue from there") {
  TemporaryFolder const folder;
  Outcome const whole = run({.folder = folder.path()}, Optimizer{}, Saves{});
  Saves const back{.from = step_of(folder.path(), "16"), .on_newer = OnNewer::Remove};
  Job job{.folder = folder.path(), .dies_at = 2};
  // Killed before it has saved: the next start returns again.
  Outcome const first = run(job, Optimizer{}, back);
  CHECK(first.died);
  CHECK((steps_in(folder.path()) == Steps{0, 4, 8, 12, 16}));
  job.dies_at = 10;
  CHECK(run(job, Optimizer{}, back).died);
  CHECK((steps_in(folder.path()) == Steps{0, 4, 8, 12, 16, 20, 24}));
  // Retention may have deleted it since.
  std::filesystem::remove_all(step_of(folder.path(), "16"));
  job.dies_at = 0;
  Outcome const end = run(job, Optimizer{}, back);
  REQUIRE(end.report.resumed);
  CHECK(end.report.resumed->step == 24);
  CHECK(same_bits(end.tensors, whole.tensors));
}

TEST_CASE("a gold checkpoint stays when the run returns to an older one") {
  TemporaryFolder const folder;
  run({.folder = folder.path()}, Optimizer{}, Saves{});
  write_text(step_of(folder.path(), "24") / "gold", "");
  Saves const back{.from = step_of(folder.path(), "16"), .on_newer = OnNewer::Remove};
  Job const job{.folder = folder.path(), .dies_at = 2};
  CHECK(run(job, Optimizer{}, back).died);
  CHECK((steps_in(folder.path()) == Steps{0, 4, 8, 12, 16, 24}));
  Outcome const again = run(job, Optimizer{}, back);
  CHECK(again.died);
}

TEST_CASE("what cannot be resumed from is an error that says why") {
  TemporaryFolder const folder;
  run({.folder = folder / "whole", .epochs = 1}, Optimizer{}, Saves{});
  auto const newest = newest_in(folder / "whole");
  auto const refusal = [&](std::filesystem::path const& from) -> std::string {
    try {
      run({.folder = folder / "fork"}, Optimizer{}, Saves{.from = from});
    } catch (frugal::Error const& error) {
      return error.what();
    }
    return "nothing was refused";
  };
  CHECK(refusal(newest / "model.safetensors").find("from a file of weights") != std::string::npos);
  CHECK(refusal(folder / "nowhere").find("nowhere") != std::string::npos);
  std::filesystem::create_directories(folder / "empty");
  CHECK(refusal(folder / "empty").find("it has no complete checkpoint") != std::string::npos);
  flip_bit(newest / "optimizer.safetensors", 8000);
  CHECK(refusal(newest).find("a file of a checkpoint is damaged") != std::string::npos);
}

}  // namespace frugal_test::policy_checkpoint_start

// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/core/source/tensor_identity.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>

#include "support/files.hpp"
#include "support/full_disk.hpp"
#include "support/rank_processes.hpp"
#include "support/saved_tensors.hpp"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace frugal_test::cluster_shared_checkpoint {

namespace fr = frugal;
namespace rank_processes = support::rank_processes;
using support::checkpoint_of;
using support::files_in;

using Divided = fr::Shard<fr::States, fr::Grads, fr::Params>;

/// Weights of several blocks of 4,096 elements, the least that is cut.
torch::nn::Sequential network() {
  torch::manual_seed(3);
  return torch::nn::Sequential(torch::nn::Linear(64, 256), torch::nn::BatchNorm1d(256),
                               torch::nn::Tanh(), torch::nn::Linear(256, 256), torch::nn::Tanh(),
                               torch::nn::Linear(256, 192), torch::nn::Linear(192, 5));
}

/// In rank 1 alone: makes its part of the weights infinite after a step, takes its disk away, or has it
/// killed by its next write.
struct Harm {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.Harm";
    static constexpr fr::Stage stage = fr::Stage::measure;
  };
  using listens = fr::list<fr::on::step>;
  using properties = fr::list<fr::property::knows_ranks, fr::property::works_on_parts,
                              fr::property::reads_no_weights>;

  std::string what{};
  std::uint64_t step = 3;

  struct State {
    using transient = void;
    explicit State(Harm const& settings) : what(settings.what), step(settings.step) {}
    void on_step(fr::Step& phase) {
      if (phase.counters().step != step) return disk.reset();
      if (what == "disk") disk = std::make_unique<support::FullDisk>();
      if (what == "killed") {
        disk = std::make_unique<support::FullDisk>();
        std::signal(SIGXFSZ, SIG_DFL);
      }
      if (what != "infinite") return;
      at::NoGradGuard const no_gradients;
      for (at::Tensor const& each : phase.parts()->parameters.tensors) {
        if (each.numel() != 0) each.view(-1)[0] = std::numeric_limits<float>::infinity();
      }
    }
    std::string what;
    std::uint64_t step;
    std::unique_ptr<support::FullDisk> disk{};
  };
};

template <class Replicate, class Checkpoint, class... More>
std::string train(std::filesystem::path const& folder, Replicate const& replicate,
                  Checkpoint const& checkpoint, More const&... more) {
  torch::nn::Sequential net = network();
  fr::TensorDataset train(torch::randn({6 * 16, 64}), torch::randint(0, 5, {6 * 16}), {.batch = 4});
  try {
    fr::Trainer trainer{net,
                        fr::CrossEntropy{},
                        fr::Settings{.run_dir = folder, .epochs = 1},
                        fr::Optimize<fr::AdamW>{.lr = 1e-2},
                        fr::Accumulate<4>{},
                        replicate,
                        checkpoint,
                        more...};
    fr::Report const report = trainer.fit(train);
    std::string text = std::to_string(report.steps) + " steps, exit " +
                       std::to_string(report.exit_code()) + ", " + fr::module_identity(*net);
    for (std::string const& line : report.warnings) text += "; " + line;
    return text;
  } catch (std::exception const& error) {
    return error.what();
  }
}

/// Three tensors that are cut, so that processes take turns in keeping them.
std::string train_grid(std::filesystem::path const& folder, std::string const& name) {
  fr::Grid const grid = fr::Grid::join(fr::World::from_environment(), {.tensor = 2});
  torch::manual_seed(3);
  torch::nn::Sequential net(fr::ColumnLinear(64, 96, grid.tensor), torch::nn::Tanh(),
                            fr::RowLinear(96, 5, grid.tensor));
  fr::TensorDataset train(torch::randn({6 * 16, 64}), torch::randint(0, 5, {6 * 16}), {.batch = 4});
  fr::Checkpoint<fr::Every<3>> going_on{.on_failure = fr::OnFailure::Continue};
  bool const harmed = name == "grid, harmed" && grid.tensor->rank() == 1;
  try {
    fr::Trainer trainer{net,
                        fr::CrossEntropy{},
                        fr::Settings{.run_dir = folder, .epochs = name == "grid, on" ? 2UL : 1UL},
                        fr::Optimize<fr::AdamW>{.lr = 1e-2},
                        fr::Accumulate<4>{},
                        fr::Replicate<fr::Exact>{.with = grid.data},
                        going_on,
                        Harm{.what = harmed ? "disk" : ""}};
    fr::Report const report = trainer.fit(train);
    fr::NamedTensors const whole = fr::whole_state(*net, *grid.tensor);
    frugal::detail::TensorHash hash;
    for (auto const& [tensor, value] : whole) hash.add(value);
    return std::to_string(report.steps) + " steps, " + std::to_string(hash.digest()) + "; " +
           std::to_string(report.warnings.size()) + " warnings";
  } catch (std::exception const& error) {
    return error.what();
  }
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  std::string const name = rank_processes::job();
  std::filesystem::path folder = std::getenv("FRUGAL_TEST_FOLDER");
  bool const second = std::string(std::getenv("RANK")) == "1";
  fr::Checkpoint<fr::Every<3>> const saves{};
  fr::Checkpoint<fr::Every<3>, fr::Async> const threads{};
  fr::Replicate<fr::Exact, Divided> const divided{.bucket_bytes = 8 << 10, .whole_below = 8192};
  if (name == "whole") {
    rank_processes::answer(train(folder, fr::Replicate<fr::Exact>{}, saves));
  } else if (name == "parts") {
    rank_processes::answer(train(folder, divided, saves));
  } else if (name == "threads") {
    rank_processes::answer(train(folder, divided, threads));
  } else if (name == "averages") {
    rank_processes::answer(train(folder, fr::Replicate<fr::Exact, fr::Shard<fr::States>>{}, threads,
                                 fr::Average<fr::Ema<0.9>>{}));
  } else if (name == "whole averages") {
    rank_processes::answer(
        train(folder, fr::Replicate<fr::Exact>{}, saves, fr::Average<fr::Ema<0.9>>{}));
  } else if (name == "elsewhere") {
    rank_processes::answer(train(second ? folder / "of-1" : folder, divided, saves));
  } else if (name == "infinite") {
    rank_processes::answer(train(folder, divided, saves, Harm{.what = second ? "infinite" : ""}));
  } else if (name == "killed") {
    rank_processes::answer(train(folder, divided, saves, Harm{.what = second ? "killed" : ""}));
  } else if (name.starts_with("grid")) {
    rank_processes::answer(train_grid(folder, name));
  } else {
    fr::Checkpoint<fr::Every<3>> going_on{};
    if (name == "disk, going on") going_on.on_failure = fr::OnFailure::Continue;
    rank_processes::answer(train(folder, divided, going_on, Harm{.what = second ? "disk" : ""}));
  }
}

std::vector<std::string> run(std::string const& name, int size,
                             std::filesystem::path const& folder) {
  return rank_processes::run(name, size, {"FRUGAL_TEST_FOLDER=" + folder.string()});
}

std::map<std::string, std::string> tensors_in(std::filesystem::path const& checkpoint,
                                              std::string const& name) {
  auto const saved = fr::read_checkpoint(checkpoint);
  fr::verify(saved);
  return support::tensors_in(saved, name);
}

TEST_CASE("each process writes what it has: together the tensors of one process's checkpoint") {
  support::TemporaryFolder const folder;
  std::string const whole = run("whole", 1, folder / "whole").front();
  CHECK(whole.find("6 steps, exit 0") != std::string::npos);
  std::vector<std::string> answers = run("parts", 4, folder / "parts");
  for (std::string const& each : answers) CHECK(each == whole);
  for (std::string const& each : run("threads", 2, folder / "threads")) CHECK(each == whole);
  for (int const step : {0, 3, 6}) {
    std::filesystem::path const alone = checkpoint_of(folder / "whole", step);
    for (std::string const run : {"parts", "threads"}) {
      std::filesystem::path const parts = checkpoint_of(folder / run, step);
      for (std::string const file : {"model.safetensors", "optimizer.safetensors"}) {
        CAPTURE(file);
        CHECK(tensors_in(parts, file) == tensors_in(alone, file));
      }
    }
  }
  std::set<std::string> const names = files_in(checkpoint_of(folder / "parts", 6));
  for (std::string const each : {"model-00001-of-0000", "optimizer-00001-of-0000"}) {
    CAPTURE(each);
    auto const first = names.lower_bound(each);
    REQUIRE((first != names.end() && first->starts_with(each)));
    int const count = first->at(each.size()) - '0';
    CHECK(count >= 3);
    std::uintmax_t all = 0, most = 0;
    std::string const stem = each.substr(0, each.find('-'));
    for (int file = 1; file <= count; ++file) {
      std::string const name = stem + "-0000" + std::to_string(file) + "-of-0000" +
                               std::to_string(count) + ".safetensors";
      REQUIRE(names.contains(name));
      auto const size = std::filesystem::file_size(checkpoint_of(folder / "parts", 6) / name);
      all += size;
      most = std::max(most, size);
    }
    // The largest tensor alone has 0.55 of the bytes.
    CHECK(most < all * 7 / 10);
    CHECK(names.contains(stem + ".safetensors.index.json"));
    CHECK(!names.contains(stem + ".safetensors"));
  }

  torch::nn::Sequential net = network();
  fr::load_weights(*net, folder / "parts");
  CHECK(whole.find(fr::module_identity(*net)) != std::string::npos);
}

TEST_CASE("what all processes have, such as averages, is written by the first one") {
  support::TemporaryFolder const folder;
  std::string const whole = run("whole averages", 1, folder / "whole").front();
  for (std::string const& each : run("averages", 4, folder / "parts")) CHECK(each == whole);
  std::filesystem::path const parts = checkpoint_of(folder / "parts", 6);
  for (std::string const file : {"model.safetensors", "averaged.safetensors"}) {
    CHECK(tensors_in(parts, file) == tensors_in(checkpoint_of(folder / "whole", 6), file));
  }
  // With Shard<States> each process has all weights and averages, and the first one writes them.
  CHECK(files_in(parts).contains("model.safetensors"));
  CHECK(files_in(parts).contains("averaged.safetensors"));
  CHECK(files_in(parts).contains("optimizer.safetensors.index.json"));
  torch::nn::Sequential one = network(), other = network();
  fr::load_weights(*one, folder / "parts", {.which = fr::Weights::averaged});
  fr::load_weights(*other, folder / "whole", {.which = fr::Weights::averaged});
  CHECK(fr::module_identity(*one) == fr::module_identity(*other));
  fr::load_weights(*other, folder / "whole", {.which = fr::Weights::trained});
  CHECK(fr::module_identity(*one) != fr::module_identity(*other));
}

TEST_CASE("where a process does not see the folder, the first one writes all") {
  support::TemporaryFolder const folder;
  std::string const whole = run("whole", 1, folder / "whole").front();
  std::vector<std::string> const answers = run("elsewhere", 2, folder / "parts");
  CHECK(answers[1] == whole);
  CHECK(answers[0].starts_with(whole));
  CHECK(answers[0].find("the processes do not all see " + (folder / "parts").string()) !=
        std::string::npos);
  std::filesystem::path const parts = checkpoint_of(folder / "parts", 6);
  CHECK(files_in(parts) == files_in(checkpoint_of(folder / "whole", 6)));
  CHECK(tensors_in(parts, "model.safetensors") ==
        tensors_in(checkpoint_of(folder / "whole", 6), "model.safetensors"));
}

TEST_CASE("what one process cannot write is no checkpoint, and the first one says why") {
  support::TemporaryFolder const folder;
  std::vector<std::string> const answers = run("disk", 2, folder / "run");
  CAPTURE(answers[0]);
  CAPTURE(answers[1]);
  CHECK(answers[0].find("a process could not write its part of the checkpoint (rank 1)") !=
        std::string::npos);
  CHECK(answers[0].find("rank-1-") != std::string::npos);
  CHECK(answers[1].find("rank 0") != std::string::npos);
  CHECK((files_in(folder / "run" / "checkpoints") == std::set<std::string>{"step-00000000"}));

  std::vector<std::string> const going_on = run("disk, going on", 2, folder / "on");
  for (std::string const& each : going_on) CHECK(each.find("6 steps, exit 0") != std::string::npos);
  CHECK(going_on[0].find("a checkpoint was not written: ") != std::string::npos);
  CHECK((files_in(folder / "on" / "checkpoints") ==
         std::set<std::string>{"step-00000000", "step-00000006"}));
}

TEST_CASE("a part that is not finite is no checkpoint") {
  support::TemporaryFolder const folder;
  std::vector<std::string> const answers = run("infinite", 2, folder / "run");
  CAPTURE(answers[0]);
  CHECK(answers[0].find("the weights are not finite (tensor '") != std::string::npos);
  CHECK((files_in(folder / "run" / "checkpoints") == std::set<std::string>{"step-00000000"}));
}

TEST_CASE("a process that is killed while it writes is named, also where all wait for its part") {
  support::TemporaryFolder const folder;
  std::vector<std::string> const answers = rank_processes::run(
      "killed", 2, {"FRUGAL_TEST_FOLDER=" + (folder / "run").string()}, /*may_be_silent=*/1);
  CAPTURE(answers[0]);
  CHECK(answers[1].empty());
  CHECK(answers[0].find("the processes could not write a checkpoint together") !=
        std::string::npos);
  CHECK(answers[0].find("rank 1 (") != std::string::npos);
  CHECK(answers[0].find(") has ended; last seen") != std::string::npos);
  // The next start removes what it has left.
  CHECK(run("parts", 4, folder / "run").front() == run("whole", 1, folder / "whole").front());
}

TEST_CASE("in a Grid a save after one that failed has the tensors of its own step") {
  support::TemporaryFolder const folder;
  std::string const whole = run("grid", 2, folder / "whole").front();
  CHECK(whole.find("6 steps, ") != std::string::npos);
  std::vector<std::string> const answers = run("grid, harmed", 2, folder / "run");
  CAPTURE(answers[0]);
  CHECK(answers[0].starts_with(whole.substr(0, whole.find(';'))));
  CHECK(answers[0] != whole);  // the warning of the first process
  CHECK((files_in(folder / "run" / "checkpoints") ==
         std::set<std::string>{"step-00000000", "step-00000006"}));
  for (std::string const file : {"model.safetensors", "optimizer.safetensors"}) {
    CAPTURE(file);
    CHECK(tensors_in(checkpoint_of(folder / "run", 6), file) ==
          tensors_in(checkpoint_of(folder / "whole", 6), file));
  }
  std::string const on = run("grid, on", 2, folder / "whole").front();
  CHECK(on.find("12 steps, ") != std::string::npos);
  // The warning stays.
  CHECK(run("grid, on", 2, folder / "run").front().starts_with(on.substr(0, on.find(';'))));
}

}  // namespace frugal_test::cluster_shared_checkpoint

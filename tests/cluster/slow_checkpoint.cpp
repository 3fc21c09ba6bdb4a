// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>

#include "support/files.hpp"
#include "support/notice.hpp"
#include "support/rank_processes.hpp"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

// Processes that wait for one that is busy with a checkpoint, and one that is taken away after it.
namespace frugal_test::cluster_slow_checkpoint {

namespace fr = frugal;
namespace rank_processes = support::rank_processes;
using namespace std::chrono_literals;

/// Takes its time to be read, or has its process killed after a preemption has saved.
struct Slow {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.Slow";
  };
  using listens = fr::list<fr::on::preempt>;
  using properties = fr::list<fr::property::knows_ranks, fr::property::works_on_parts>;

  bool reads_slowly = false;
  bool dies = false;

  struct State {
    explicit State(Slow const& settings)
        : reads_slowly(settings.reads_slowly), dies(settings.dies) {}
    void on_preempt(fr::Preemption&) const {
      if (dies) std::raise(SIGKILL);
    }
    template <class Archive>
    void persist(Archive& archive) {
      std::uint64_t nothing = 0;
      archive("nothing", nothing);
      if (Archive::loading && reads_slowly) std::this_thread::sleep_for(7s);
    }
    bool reads_slowly, dies;
  };
};

TEST_CASE("a rank of a world" * doctest::skip()) {
  std::string const name = rank_processes::job();
  auto const with = fr::Communicator::join(fr::World::from_environment(),
                                           {.join = 60s, .collective = 5s, .hung = 2s});
  torch::manual_seed(1);
  torch::nn::Linear net(64, 80);
  fr::TensorDataset train(torch::randn({96, 64}), torch::randint(0, 3, {96}), {.batch = 4});
  bool const second = with->rank() == 1;
  std::string said;
  try {
    fr::Trainer trainer{net,
                        fr::CrossEntropy{},
                        fr::Settings{.run_dir = std::getenv("FRUGAL_TEST_FOLDER"), .epochs = 1},
                        fr::Optimize<fr::AdamW>{.lr = 1e-2},
                        fr::Accumulate<4>{},
                        fr::Replicate<fr::Exact, fr::Shard<fr::States>>{.with = with},
                        fr::Checkpoint<fr::Every<2>>{},
                        support::Notice::of_environment(),
                        Slow{.reads_slowly = name == "reads" && with->rank() == 0,
                             .dies = name == "dies" && second}};
    fr::Report const report = trainer.fit(train);
    said = std::to_string(report.steps) + " steps, exit " + std::to_string(report.exit_code()) +
           ", " + fr::module_identity(*net);
  } catch (std::exception const& error) {
    said = error.what();
  }
  rank_processes::answer(said);
}

std::vector<std::string> run(std::string const& name, std::filesystem::path const& folder, int size,
                             int notice = 0) {
  return rank_processes::run(
      name, size,
      support::Notice::environment(0, notice, {"FRUGAL_TEST_FOLDER=" + folder.string()}),
      name == "dies" ? 1 : -1);
}

TEST_CASE(
    "a run goes on from a checkpoint that takes longer to read than an exchange may, and after a "
    "preemption in which a process was taken away") {
  support::TemporaryFolder const folder;
  std::string const whole = run("", folder / "whole", 1).front();
  CHECK(whole.starts_with("RESULT 6 steps, exit 0"));

  // The machine of rank 1 goes as soon as the run is saved, before the others have come to the end.
  std::vector<std::string> const taken = run("dies", folder / "run", 4, 3);
  CHECK(taken[1].empty());
  for (int const rank : {0, 2, 3}) {
    CAPTURE(rank);
    CHECK(taken[static_cast<std::size_t>(rank)].starts_with("RESULT 3 steps, exit 75"));
  }
  for (std::string const& each : run("reads", folder / "run", 2)) CHECK(each == whole);
}

}  // namespace frugal_test::cluster_slow_checkpoint

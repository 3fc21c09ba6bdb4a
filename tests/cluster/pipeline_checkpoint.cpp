// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: pipeline.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>
#include <frugal/policy/checkpoint/resume.hpp>

#include "support/files.hpp"
#include "support/notice.hpp"
#include "support/rank_processes.hpp"
#include "support/saved_tensors.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace frugal_test::cluster_pipeline_checkpoint {

namespace fr = frugal;
namespace rank_processes = support::rank_processes;
using fr::detail::StateFile;
using support::checkpoint_of;
using support::files_in;
using support::tensors_in;

/// Blocks with buffers and dropout, between layers that all processes have.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    for (int i = 0; i < 5; ++i) {
      blocks->push_back(torch::nn::Linear(16, 16));
      blocks->push_back(torch::nn::BatchNorm1d(16));
      blocks->push_back(torch::nn::Dropout(0.2));
    }
  }
  torch::nn::Linear embed{register_module("embed", torch::nn::Linear(8, 16))};
  torch::nn::Sequential blocks{register_module("blocks", torch::nn::Sequential())};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(16, 5))};
  // Called as a scope of Average is.
  torch::Tensor weights{register_buffer("weights", torch::ones({2}))};
  torch::Tensor forward(torch::Tensor const& x) { return head(blocks->forward(embed(x).tanh())); }
};
TORCH_MODULE(Net);

Net network() {
  torch::manual_seed(3);
  return Net();
}

/// Makes the weights of one rank infinite after a step.
struct Harm {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.Harm";
    static constexpr fr::Stage stage = fr::Stage::measure;
  };
  using listens = fr::list<fr::on::step>;
  using properties = fr::list<fr::property::knows_stages>;
  bool here = false;

  struct State {
    using transient = void;
    explicit State(Harm const& settings) : here(settings.here) {}
    void on_step(fr::Step& phase) const {
      if (!here || phase.counters().step != 4) return;
      at::NoGradGuard const no_gradients;
      fr::Parameters const& all = phase.parameters();
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (all.names[i].starts_with("blocks."))
          all.tensors[i].fill_(std::numeric_limits<float>::infinity());
      }
    }
    bool here;
  };
};

/// Saves a tensor of its process's layers under a name of its own.
struct Selfish {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.Selfish";
    static constexpr fr::Stage stage = fr::Stage::measure;
  };
  using listens = fr::list<fr::on::fit_begin>;
  using properties = fr::list<fr::property::knows_stages>;

  struct State {
    explicit State(Selfish const&) {}
    void on_fit_begin(fr::FitBegin& phase) {
      sums = at::zeros({static_cast<std::int64_t>(phase.parameters().size())});
    }
    template <class Archive>
    void persist(Archive& archive) {
      archive("sums", sums);
    }
    at::Tensor sums;
  };
};

/// Saves a list of numbers for each parameter, under its name; and one of the run, in one process.
struct Fair {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.Fair";
    static constexpr fr::Stage stage = fr::Stage::measure;
  };
  using listens = fr::list<fr::on::fit_begin, fr::on::step>;
  using properties = fr::list<fr::property::knows_stages>;

  struct State {
    explicit State(Fair const&) {}
    void on_fit_begin(fr::FitBegin& phase) {
      all = phase.parameters();
      sums.resize(all.size());
    }
    void on_step(fr::Step&) {
      for (std::size_t i = 0; i < all.size(); ++i)
        sums[i].push_back(all.tensors[i].sum().template item<double>());
    }
    template <class Archive>
    void persist(Archive& archive) {
      archive.scope("sums", [&](auto& inner) {
        for (std::size_t i = 0; i < all.size(); ++i) inner(all.names[i], sums[i]);
      });
    }
    fr::Parameters all;
    std::vector<std::vector<double>> sums;
  };
};
struct Once {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.Once";
    static constexpr fr::Stage stage = fr::Stage::measure;
    static constexpr bool once_per_run = true;
  };
  using listens = fr::list<fr::on::step>;

  struct State {
    explicit State(Once const&) {}
    void on_step(fr::Step&) { ++steps; }
    template <class Archive>
    void persist(Archive& archive) {
      archive("steps", steps);
    }
    std::uint64_t steps = 0;
  };
};

template <class... More>
std::string train_with(Net net, std::filesystem::path const& folder, More const&... more) {
  auto const random = at::make_generator<at::CPUGeneratorImpl>(5);
  at::Tensor const x = at::randn({70, 8}, random), y = at::randint(0, 5, {70}, random);
  fr::TensorDataset train(x, y, {.batch = 4}), valid(x, y, {.batch = 16, .shuffle = false});
  try {
    fr::Trainer trainer{
        net,
        fr::CrossEntropy{},
        fr::Settings{.run_dir = folder, .epochs = 3},
        fr::Optimize<fr::AdamW>{.lr = 1e-2},
        fr::Accumulate<8>{},
        fr::ClipNorm<0.5>{},
        fr::Schedule<fr::Warmup<3>, fr::CosineDecay<>>{},
        fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
        fr::Average<fr::Ema<0.9>>{.validate = false, .at_end = fr::Weights::trained},
        fr::EarlyStop<fr::Patience<9>, fr::WatchLoss>{.restore_best = true},
        more...};
    fr::Report const report = trainer.fit(train, valid);
    Net whole = net;
    if (fr::World::from_environment().size > 1) {
      whole = network();
      fr::gather_stages(*net, *whole);
    }
    char numbers[128];
    std::snprintf(numbers, sizeof numbers, "exit %d, %lu steps, loss %a, ", report.exit_code(),
                  static_cast<unsigned long>(report.steps), report.train_loss);
    return numbers + fr::module_identity(*whole);
  } catch (std::exception const& error) {
    return error.what();
  }
}
template <class Schedule, class... More>
std::string train(std::filesystem::path const& folder, More const&... more) {
  return train_with(network(), folder, fr::Pipeline<Schedule>{}, more...);
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  using Plain = fr::OneForwardOneBackward;
  std::string const name = rank_processes::job();
  std::filesystem::path folder = std::getenv("FRUGAL_TEST_FOLDER");
  bool const second = std::string(std::getenv("RANK")) == "1";
  fr::Checkpoint<fr::Every<2>, fr::Keep<9>> const saves{};
  fr::Checkpoint<fr::Every<2>, fr::Keep<9>, fr::Async> const threads{};
  std::string result;
  if (name == "saves") {
    result = train<Plain>(folder, saves, fr::Log<fr::Every<1>>{}, Fair{}, Once{},
                          support::Notice::of_environment());
  } else if (name == "threads") {
    result = train<Plain>(folder, threads);
  } else if (name == "interleaved") {
    result = train<fr::Interleaved<2>>(folder, saves);
  } else if (name == "weights") {
    fr::Checkpoint<fr::Every<2>, fr::Keep<9>> from{};
    from.resume = fr::Resume::Weights;
    from.from = folder / ".." / "other";
    result = train<Plain>(folder, from);
  } else if (name == "harmed") {
    result = train<Plain>(folder, saves, Harm{.here = second});
  } else if (name == "frozen") {
    Net net = network();
    fr::fix_tensor(net->blocks->parameters().front());
    result = train_with(net, folder, fr::Pipeline<Plain>{}, saves);
  } else if (name == "without") {
    result = train_with(network(), folder, saves);
  } else if (name == "selfish") {
    result = train<Plain>(folder, saves, Selfish{});
  } else if (name == "elsewhere") {
    result = train<Plain>(second ? folder / "of-1" : folder, saves);
  }
  rank_processes::answer(result);
}

/// The answer of the first process. The others answer the same, but for the hash of the whole module.
std::string same(std::vector<std::string> const& answers) {
  std::string const& first = answers.front();
  std::string const start = first.substr(0, first.find(", ", first.find("loss")));
  for (std::string const& each : answers) CHECK(each.starts_with(start));
  return first;
}

std::vector<std::string> run(std::string const& name, int size, std::filesystem::path const& folder,
                             int notice_rank = 0, int notice_step = 0) {
  return rank_processes::run(
      name, size,
      support::Notice::environment(notice_rank, notice_step,
                                   {"FRUGAL_TEST_FOLDER=" + folder.string()}));
}

/// Its values, without the log, which has seconds.
std::string text_of(StateFile state) {
  StateFile values;
  values.values = std::move(state.values);
  std::erase_if(values.values,
                [](auto const& each) { return each.first.starts_with("policies/Log/"); });
  return values.text();
}

/// All tensors and values of both to the bit.
void check_same(std::filesystem::path const& one, std::filesystem::path const& other) {
  auto const some = fr::read_checkpoint(one), more = fr::read_checkpoint(other);
  fr::verify(some);
  fr::verify(more);
  for (std::string const file :
       {"model.safetensors", "optimizer.safetensors", "averaged.safetensors"}) {
    CAPTURE(file);
    CHECK(fr::detail::has_tensors(some, file) == fr::detail::has_tensors(more, file));
    if (fr::detail::has_tensors(some, file)) {
      CHECK(tensors_in(some, file) == tensors_in(more, file));
    }
  }
  StateFile const mine = fr::detail::read_state(some), theirs = fr::detail::read_state(more);
  CHECK(text_of(mine) == text_of(theirs));
}

TEST_CASE("each process writes its stages: together the checkpoint of one process") {
  support::TemporaryFolder const folder;
  std::string const alone = run("saves", 1, folder / "alone").front();
  CHECK(alone.find("exit 0, 9 steps") != std::string::npos);
  CHECK(same(run("saves", 4, folder / "stages")) == alone);
  CHECK(same(run("threads", 2, folder / "threads")) == alone);
  for (int const step : {0, 4, 9}) {
    CAPTURE(step);
    check_same(checkpoint_of(folder / "alone", step), checkpoint_of(folder / "stages", step));
  }
  std::set<std::string> const names = files_in(checkpoint_of(folder / "stages", 9));
  for (std::string const stem : {"model", "optimizer", "averaged"}) {
    CHECK(names.contains(stem + "-00004-of-00004.safetensors"));
    CHECK(names.contains(stem + ".safetensors.index.json"));
    CHECK(!names.contains(stem + ".safetensors"));
  }
  // The program of one process reads it.
  Net net = network();
  fr::load_weights(*net, folder / "stages", {.which = fr::Weights::trained});
  Net other = network();
  fr::load_weights(*other, folder / "alone", {.which = fr::Weights::trained});
  CHECK(fr::module_identity(*net) == fr::module_identity(*other));
}

TEST_CASE("preempted by a notice to one of 4 stages, and resumed by 2, by 1 and by 4") {
  support::TemporaryFolder const folder;
  std::string const whole = run("saves", 1, folder / "whole").front();
  std::filesystem::path const going = folder / "run";
  for (std::string const& each : run("saves", 4, going, 3, 3)) {
    CAPTURE(each);
    CHECK(each.find("exit 75, 3 steps") != std::string::npos);
  }
  for (std::string const& each : run("saves", 2, going, 1, 5)) {
    CAPTURE(each);
    CHECK(each.find("exit 75, 5 steps") != std::string::npos);
  }
  std::string const alone = run("saves", 1, going, 0, 8).front();
  CAPTURE(alone);
  CHECK(alone.find("exit 75, 8 steps") != std::string::npos);
  CHECK(same(run("saves", 4, going)) == whole);
  check_same(checkpoint_of(folder / "whole", 9), checkpoint_of(going, 9));
}

TEST_CASE("with two stages a process, and from weights alone") {
  support::TemporaryFolder const folder;
  std::string const alone = run("interleaved", 1, folder / "alone").front();
  CHECK(alone.find("exit 0, 9 steps") != std::string::npos);
  CHECK(same(run("interleaved", 2, folder / "other")) == alone);
  check_same(checkpoint_of(folder / "alone", 9), checkpoint_of(folder / "other", 9));

  // Schedules may change. Without Pipeline other random numbers are drawn.
  CHECK(same(run("threads", 2, folder / "other")) == alone);
  CHECK(run("without", 1, folder / "other").front().find("policies/Pipeline/draws_by_layer") !=
        std::string::npos);

  std::string const begun = run("weights", 1, folder / "one").front();
  CHECK(begun.find("exit 0, 9 steps") != std::string::npos);
  CHECK(begun != alone);
  CHECK(same(run("weights", 4, folder / "four")) == begun);
}

TEST_CASE("a stage that is not finite is no checkpoint") {
  support::TemporaryFolder const folder;
  std::vector<std::string> const answers = run("harmed", 2, folder / "run");
  CAPTURE(answers[0]);
  CAPTURE(answers[1]);
  CHECK(answers[0].find("not finite") != std::string::npos);
  CHECK(answers[1].find("rank 0") != std::string::npos);
  for (std::string const& each : files_in(folder / "run" / "checkpoints"))
    CHECK(each <= "step-00000002");
}

TEST_CASE("a State that does not save by parameter is refused, and its checkpoint is none") {
  support::TemporaryFolder const folder;
  std::vector<std::string> const answers = run("selfish", 4, folder / "run");
  CAPTURE(answers[0]);
  CHECK(answers[0].find("the State of test.Selfish differs between the processes") !=
        std::string::npos);
  CHECK(answers[1].find("rank 0") != std::string::npos);
  CHECK(files_in(folder / "run" / "checkpoints").empty());
}

TEST_CASE("a frozen layer is refused: a checkpoint has the hash of all") {
  support::TemporaryFolder const folder;
  std::string const first = run("frozen", 2, folder / "run").front();
  CAPTURE(first);
  CHECK(first.find("'blocks.0.weight' is fixed") != std::string::npos);
}

TEST_CASE("processes that do not see the folder are refused, all of them") {
  support::TemporaryFolder const folder;
  for (std::string const& each : run("elsewhere", 2, folder / "run")) {
    CAPTURE(each);
    CHECK(each.find("the processes do not all see the run directory") != std::string::npos);
  }
}

}  // namespace frugal_test::cluster_pipeline_checkpoint

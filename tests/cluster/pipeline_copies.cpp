// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: pipeline.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>

#include "support/files.hpp"
#include "support/notice.hpp"
#include "support/rank_processes.hpp"
#include "support/saved_tensors.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::cluster_pipeline_copies {

namespace fr = frugal;
namespace rank_processes = support::rank_processes;

/// Blocks between layers that all processes have. With `tied` these share a weight, and with
/// `batch_norm` the blocks have statistics.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(double dropout, bool batch_norm = false) {
    for (int i = 0; i < 5; ++i) {
      blocks->push_back(torch::nn::Linear(16, 16));
      if (batch_norm) blocks->push_back(torch::nn::BatchNorm1d(16));
      blocks->push_back(torch::nn::Dropout(dropout));
    }
  }
  torch::nn::Linear embed{register_module("embed", torch::nn::Linear(8, 16))};
  torch::nn::Sequential blocks{register_module("blocks", torch::nn::Sequential())};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(16, 8))};
  bool tied = false;
  torch::Tensor forward(torch::Tensor const& x) {
    torch::Tensor const y = blocks->forward(embed(x).tanh()).tanh();
    return tied ? torch::nn::functional::linear(y, embed->weight.t()) : head(y);
  }
};
TORCH_MODULE(Net);

/// Blocks that all use one norm from outside of the list.
struct SharedNormImpl : torch::nn::Module {
  SharedNormImpl() {
    for (int i = 0; i < 4; ++i) blocks->push_back(torch::nn::Linear(8, 8));
  }
  torch::nn::ModuleList blocks{register_module("blocks", torch::nn::ModuleList())};
  torch::nn::LayerNorm norm{
      register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({8})))};
  torch::Tensor forward(torch::Tensor const& x) {
    return fr::each(blocks, x, [this](auto& block, torch::Tensor each) {
      return block->template as<torch::nn::Linear>()->forward(norm(each));
    });
  }
};
TORCH_MODULE(SharedNorm);

/// Has a weight, and does not use it.
struct IdleImpl : torch::nn::Module {
  IdleImpl() { register_module("linear", torch::nn::Linear(16, 16)); }
  torch::Tensor forward(torch::Tensor const& x) { return x.tanh(); }
};
TORCH_MODULE(Idle);

Net network(double dropout = 0.2, bool batch_norm = false) {
  torch::manual_seed(3);
  return Net(dropout, batch_norm);
}
Net tied() {
  Net net = network();
  net->tied = true;
  return net;
}
Net untrained() {
  Net net = network();
  net->blocks->named_parameters()["2.weight"].set_requires_grad(false);
  return net;
}
SharedNorm shared_norm() {
  torch::manual_seed(3);
  return SharedNorm();
}
torch::nn::Sequential with_an_idle_layer() {
  torch::manual_seed(3);
  return torch::nn::Sequential(torch::nn::Linear(8, 16), Idle(), torch::nn::Linear(16, 16),
                               torch::nn::Linear(16, 8));
}

/// Of the optimizer.
std::vector<fr::ParameterGroup> groups;
/// A micro-batch of samples that are not finite, and do not count.
bool masks = false;

/// Windows of 8, 8 and 6 micro-batches, the last of 2 samples: of four copies one has none in the last window.
template <class Make, class... Policies>
std::string train(Make const& make, Policies const&... policies) {
  auto const random = at::make_generator<at::CPUGeneratorImpl>(5);
  at::Tensor const x = at::randn({86, 8}, random), y = at::randint(0, 8, {86}, random);
  fr::TensorDataset valid(x.clone(), y.clone(), {.batch = 16, .shuffle = false});
  if (masks) {
    x.slice(0, 8, 12).fill_(std::numeric_limits<float>::quiet_NaN());
    y.slice(0, 8, 12).fill_(-100);
  }
  fr::TensorDataset train(x, y, {.batch = 4, .shuffle = !masks});
  auto net = make();
  try {
    fr::Trainer trainer{
        net,
        fr::CrossEntropy{},
        fr::Settings{.run_dir = std::getenv("FRUGAL_TEST_FOLDER"), .epochs = 3},
        fr::Optimize<fr::AdamW>{.lr = 1e-2, .groups = groups},
        fr::Accumulate<8>{},
        fr::ClipNorm<0.5>{},
        fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
        fr::EarlyStop<fr::Patience<9>, fr::WatchLoss>{.restore_best = true},
        fr::Average<fr::Ema<0.9>>{.validate = false, .at_end = fr::Weights::trained},
        policies...};
    fr::Report const report = trainer.fit(train, valid);
    std::int64_t elements = 0;
    for (at::Tensor const& each : net->parameters()) elements += each.numel();
    auto whole = net;
    if (fr::detail::LayerList::of(*net).divided()) {
      whole = make();
      fr::gather_stages(*net, *whole);
    }
    char numbers[160];
    std::snprintf(numbers, sizeof numbers, "exit %d, %lu steps, loss %a and %a, ",
                  report.exit_code(), static_cast<unsigned long>(report.steps), report.train_loss,
                  report.validations.empty() ? 0.0 : report.last()["loss"]);
    return numbers + std::to_string(elements) + " here, " + fr::module_identity(*whole);
  } catch (std::exception const& error) {
    return error.what();
  }
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  using Plain = fr::OneForwardOneBackward;
  std::string const name = rank_processes::job();
  fr::World const world = fr::World::from_environment();
  int const stages = std::atoi(std::getenv("FRUGAL_TEST_STAGES"));
  fr::Grid const grid = fr::Grid::join(world, {.stages = stages});
  fr::Pipeline<Plain, fr::Exact> const plain{.with = grid.stages, .copies = grid.data};
  auto const usual = [] { return network(); };
  std::string result;
  masks = name == "masked";
  if (name == "groups") {
    groups = {fr::layer_wise_rate("blocks.{}.", 0.8), fr::no_decay_for_biases_and_norms(),
              fr::group_by_prefix("blocks.8", {.beta1 = 0.5}),
              fr::group_by_prefix("blocks.4", {.schedule = [](std::uint64_t step) {
                                    return 1.0 / (1.0 + static_cast<double>(step));
                                  }})};
  } else if (name == "a group of nothing") {
    groups = {fr::group_by_prefix("blocks.9", {.lr = 1e-3})};
  }
  if (name == "bits" || name == "masked" || name == "a group of nothing") {
    result = train(usual, plain);
  } else if (name == "groups") {
    result = train(untrained, plain);
  } else if (name == "interleaved, fp16") {
    fr::Pipeline<fr::Interleaved<2>, fr::Exact> const two{.with = grid.stages, .copies = grid.data};
    result = train(usual, two, fr::Precision<fr::FP16>{});
  } else if (name == "tied") {
    result = train(tied, plain);
  } else if (name == "idle") {
    result = train(with_an_idle_layer, plain);
  } else if (name == "shared norm") {
    result = train(shared_norm, plain);
  } else if (name == "no dropout") {
    result = train([] { return network(0); }, plain);
  } else if (name == "Replicate" || name == "Replicate over data") {
    result =
        train([] { return network(0); },
              fr::Replicate<fr::Exact>{.with = name == "Replicate" ? grid.everyone : grid.data});
  } else if (name == "saves") {
    result = train(usual, plain, fr::Checkpoint<fr::Every<2>, fr::Keep<9>>{},
                   support::Notice::of_environment());
  } else if (name == "without Exact") {
    result = train(usual, fr::Pipeline<Plain>{.with = grid.stages, .copies = grid.data});
  } else if (name == "without copies") {
    result = train(usual, fr::Pipeline<Plain, fr::Exact>{.with = grid.stages});
  } else if (name == "stages for copies") {
    result = train(usual, fr::Pipeline<Plain, fr::Exact>{.with = grid.data, .copies = grid.stages});
  } else if (name == "statistics") {
    result = train([] { return network(0, true); }, plain);
  } else if (name == "another copy") {
    result = train(
        [&] {
          Net net = network();
          at::NoGradGuard const no_gradients;
          if (grid.data->rank() == 1) net->parameters().front().add_(1e-3);
          return net;
        },
        plain);
  }
  rank_processes::answer(result);
}

std::vector<std::string> run(std::string const& name, int copies, int stages,
                             std::filesystem::path const& folder, int notice_rank = 0,
                             int notice_step = 0) {
  return rank_processes::run(
      name, copies * stages,
      support::Notice::environment(notice_rank, notice_step,
                                   {"FRUGAL_TEST_FOLDER=" + folder.string(),
                                    "FRUGAL_TEST_STAGES=" + std::to_string(stages)}));
}

std::int64_t elements(std::string const& answer) {
  std::size_t const end = answer.find(" here, ");
  REQUIRE(end != std::string::npos);
  return std::stoll(answer.substr(answer.rfind(' ', end - 1) + 1));
}
/// Without the number of its elements.
std::string result(std::string const& answer) {
  std::size_t const end = answer.find(" here, ");
  REQUIRE(end != std::string::npos);
  return answer.substr(0, answer.rfind(' ', end - 1)) + answer.substr(end + 6);
}
/// The first process's. The others have the same steps and losses.
std::string same(std::vector<std::string> const& answers) {
  std::string const first = result(answers.front());
  std::string const numbers = first.substr(0, first.rfind(", "));
  for (std::string const& each : answers) {
    CAPTURE(each);
    CHECK(result(each).starts_with(numbers));
  }
  return first;
}

TEST_CASE("1, 2 and 4 copies of 1, 2 and 4 stages come to the same bits, with dropout") {
  support::TemporaryFolder const folder;
  std::vector<std::string> const alone = run("bits", 1, 1, folder / "run");
  CHECK(alone.front().find("exit 0, 9 steps") != std::string::npos);
  struct Shape {
    int copies, stages;
  };
  for (Shape const shape : {Shape{2, 1}, Shape{4, 1}, Shape{1, 4}, Shape{2, 2}, Shape{4, 2}}) {
    CAPTURE(shape.copies);
    CAPTURE(shape.stages);
    std::vector<std::string> const answers =
        run("bits", shape.copies, shape.stages, folder / "run");
    CHECK(same(answers) == same(alone));
    for (std::string const& each : answers) {
      CHECK((elements(each) < elements(alone.front())) == (shape.stages > 1));
    }
  }
}

TEST_CASE(
    "likewise with two stages a process in FP16, and with a weight on both sides of the list") {
  support::TemporaryFolder const folder;
  CHECK(same(run("interleaved, fp16", 2, 2, folder / "run")) ==
        same(run("interleaved, fp16", 1, 1, folder / "run")));
  // How the two sides are added up depends on whether they are in one process.
  CHECK(same(run("tied", 2, 2, folder / "run")) == same(run("tied", 1, 2, folder / "run")));
}

TEST_CASE("a micro-batch that does not count reaches no stage, whatever is in it") {
  support::TemporaryFolder const folder;
  std::string const alone = same(run("masked", 1, 1, folder / "run"));
  CHECK(alone.find("exit 0, 9 steps") != std::string::npos);
  CHECK(same(run("masked", 2, 2, folder / "run")) == alone);
}

TEST_CASE("a stage without a gradient takes part in the norm") {
  support::TemporaryFolder const folder;
  std::string const alone = same(run("idle", 1, 1, folder / "run"));
  CHECK(alone.find("exit 0, 9 steps") != std::string::npos);
  CHECK(same(run("idle", 2, 4, folder / "run")) == alone);
}

TEST_CASE("groups of parameters are those of the whole module, in each process") {
  support::TemporaryFolder const folder;
  std::string const alone = same(run("groups", 1, 1, folder / "run"));
  CHECK(alone.find("exit 0, 9 steps") != std::string::npos);
  CHECK(alone != same(run("bits", 1, 1, folder / "run")));
  CHECK(same(run("groups", 1, 4, folder / "run")) == alone);
  CHECK(same(run("groups", 2, 2, folder / "run")) == alone);
  for (std::string const& each : run("a group of nothing", 1, 2, folder / "run")) {
    CAPTURE(each);
    CHECK(each.find("parameter group 'blocks.9' selects nothing") != std::string::npos);
    CHECK(each.find("embed.weight embed.bias blocks.0.weight blocks.0.bias blocks.2.weight") !=
          std::string::npos);
  }
}

TEST_CASE("without dropout, the bits of Replicate<Exact>") {
  support::TemporaryFolder const folder;
  std::string const replicated = same(run("Replicate", 2, 1, folder / "run"));
  CHECK(replicated.find("exit 0, 9 steps") != std::string::npos);
  CHECK(same(run("no dropout", 2, 2, folder / "run")) == replicated);
}

TEST_CASE("preempted on 2 copies of 2 stages, and resumed on 1 of 2, 4 of 1 and 2 of 2") {
  support::TemporaryFolder const folder;
  std::string const whole = same(run("saves", 1, 1, folder / "whole"));
  std::filesystem::path const going = folder / "run";
  for (std::string const& each : run("saves", 2, 2, going, 3, 3)) {
    CAPTURE(each);
    CHECK(each.find("exit 75, 3 steps") != std::string::npos);
  }
  CHECK(support::files_in(support::checkpoint_of(going, 3))
            .contains("model-00002-of-00002.safetensors"));
  for (std::string const& each : run("saves", 1, 2, going, 1, 5)) {
    CAPTURE(each);
    CHECK(each.find("exit 75, 5 steps") != std::string::npos);
  }
  for (std::string const& each : run("saves", 4, 1, going, 2, 8)) {
    CAPTURE(each);
    CHECK(each.find("exit 75, 8 steps") != std::string::npos);
  }
  CHECK(same(run("saves", 2, 2, going)) == whole);
  for (std::string const file :
       {"model.safetensors", "optimizer.safetensors", "averaged.safetensors"}) {
    CHECK(support::tensors_in(fr::read_checkpoint(support::checkpoint_of(folder / "whole", 9)),
                              file) ==
          support::tensors_in(fr::read_checkpoint(support::checkpoint_of(going, 9)), file));
  }
}

TEST_CASE("each error is one of all processes, with what to do") {
  support::TemporaryFolder const folder;
  struct Wrong {
    char const* job;
    int copies, stages;
    char const* says;
  };
  for (Wrong const& wrong :
       {Wrong{"shared norm", 1, 4, "a layer in the middle uses 'norm.weight', which is outside"},
        Wrong{"stages for copies", 2, 2, "are not the stages and the data of one Grid"},
        Wrong{"Replicate over data", 2, 2, "`with` has 2 of the run's 4 processes"},
        Wrong{"without Exact", 2, 1, "Write Pipeline<OneForwardOneBackward, Exact>"},
        Wrong{"without copies", 2, 2,
              "the run has 4 processes, and Pipeline's copies x with are 1 x 2"},
        Wrong{"statistics", 2, 1, "the module has BatchNorm, and there are several copies of it"},
        Wrong{"another copy", 2, 2, "the module of rank 2 is "},
        Wrong{"bits", 3, 1, "3 processes cannot share windows of 8 micro-batches"}}) {
    CAPTURE(wrong.job);
    for (std::string const& each : run(wrong.job, wrong.copies, wrong.stages, folder / "run")) {
      CAPTURE(each);
      // Of the norm the stages in the middle know, and the others name one of them.
      bool const named = wrong.job == std::string("shared norm") && each.find("frugal: rank ") == 0;
      CHECK((each.find(wrong.says) != std::string::npos || named));
    }
  }
}

}  // namespace frugal_test::cluster_pipeline_copies

// SPDX-License-Identifier: Apache-2.0
// needs: cluster
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>

#include "support/files.hpp"
#include "support/notice.hpp"
#include "support/rank_processes.hpp"
#include "support/ranks.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::cluster_shard {

namespace fr = frugal;
using namespace fr::literals;
namespace ranks = support::ranks;
namespace rank_processes = support::rank_processes;
using rank_processes::run;

/// A window without finite gradients, then one in which a layer has none: nothing of the first must be
/// left in its part.
struct OddImpl : torch::nn::Module {
  torch::nn::Linear odd{register_module("odd", torch::nn::Linear(8, 8))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(8, 3))};
  int micro_batches = 0;
  int window = 1;  ///< micro-batches of this process in a window
  torch::Tensor forward(torch::Tensor const& x) {
    int const now = micro_batches++ / window;
    torch::Tensor hidden = now == 2 ? x : odd(x);
    // Infinite gradients of a finite loss.
    if (now == 1) hidden = hidden + (hidden * 0).sqrt() * 0;
    return out(hidden);
  }
};
TORCH_MODULE(Odd);

std::string train_odd(bool shards) {
  torch::manual_seed(3);
  Odd net;
  net->window = 4 / fr::World::from_environment().size;
  fr::TensorDataset train(torch::randn({4 * 4 * 4, 8}), torch::randint(0, 3, {4 * 4 * 4}),
                          {.batch = 4, .shuffle = false});
  auto const fit = [&](auto const& replicate) {
    fr::Trainer trainer{net,
                        fr::CrossEntropy{},
                        fr::Settings{.epochs = 1},
                        fr::Optimize<fr::SGD>{.lr = 0.1},
                        fr::Accumulate<4>{},
                        fr::SkipNonFinite{},
                        replicate};
    fr::Report const report = trainer.fit(train);
    return std::to_string(report.steps) + " steps, " + std::to_string(report.non_finite_windows) +
           " skipped, " + fr::module_identity(*net);
  };
  return shards ? fit(fr::Replicate<fr::Exact, fr::Shard<fr::States>>{})
                : fit(fr::Replicate<fr::Exact>{});
}

/// Parameters of many sizes: one that several processes share, small ones, one whose memory is in
/// another order, and one that some micro-batches leave out.
struct NetImpl : torch::nn::Module {
  torch::nn::Embedding words{register_module("words", torch::nn::Embedding(500, 48))};
  torch::nn::Conv2d conv{
      register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 32, 3).padding(1)))};
  torch::nn::LayerNorm norm{
      register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({32})))};
  torch::nn::Linear odd{register_module("odd", torch::nn::Linear(32, 32))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(32, 5))};
  torch::nn::Dropout drop{register_module("drop", torch::nn::Dropout(0.2))};

  NetImpl() {
    conv->weight.set_data(conv->weight.detach().contiguous(at::MemoryFormat::ChannelsLast));
  }
  torch::Tensor forward(torch::Tensor const& x) {
    torch::Tensor const pixels = words(x).view({-1, 8, 6, 4});
    torch::Tensor hidden = norm(drop(conv(pixels)).mean({2, 3})).relu();
    if (x.sum().item<std::int64_t>() % 2 == 0) hidden = hidden + odd(hidden).relu();
    return out(hidden);
  }
};
TORCH_MODULE(Net);

struct Data {
  at::Tensor x, y;
};
Data data() {
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(5);
  return {at::randint(0, 500, {3 * 32 + 18, 4}, generator),
          at::randint(0, 5, {3 * 32 + 18}, generator)};
}

/// Elements of all moments that this process has.
struct CountMoments {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.CountMoments";
    static constexpr fr::Stage stage = fr::Stage::leave;
  };
  using listens = fr::list<fr::on::step>;
  static constexpr bool knows_ranks = true;
  std::int64_t* count = nullptr;

  template <class Context>
  struct State {
    using transient = void;
    explicit State(CountMoments const& settings) : count(settings.count) {}
    void on_step(fr::Step<Context>& phase) {
      if (count == nullptr) return;
      fr::ParameterParts const* const parts = phase.parts();
      *count = 0;
      fr::Parameters const& held = parts == nullptr ? phase.parameters() : parts->parameters;
      for (at::Tensor const& each : held.tensors) *count += each.numel();
    }
    std::int64_t* count;
  };
};

template <class Replicate, class... Policies>
std::string train(Replicate const& replicate, std::string const& folder,
                  Policies const&... policies) {
  torch::manual_seed(3);
  Net net;
  Data const all = data();
  std::int64_t moments = 0;
  at::Tensor const before = net->conv->weight;
  fr::TensorDataset train(all.x, all.y, {.batch = 4});
  fr::TensorDataset valid(all.x, all.y, {.batch = 16, .shuffle = false});
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.run_dir = folder, .epochs = 3},
                      fr::Accumulate<8>{},
                      fr::Schedule<fr::Warmup<2>, fr::Cosine>{},
                      fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
                      CountMoments{.count = &moments},
                      replicate,
                      policies...};
  fr::Report const report = trainer.fit(train, valid);
  if (!net->conv->weight.is_contiguous(at::MemoryFormat::ChannelsLast))
    throw std::runtime_error("another memory format");
  if (!net->conv->weight.is_same(before) || net->conv->weight.storage().nbytes() != before.nbytes())
    throw std::runtime_error("the memory is still that of all parameters");
  if (std::getenv("FRUGAL_TEST_COUNT") != nullptr) return std::to_string(moments);
  char numbers[256];
  std::snprintf(numbers, sizeof numbers, "exit %d, %lu steps, loss %a, ", report.exit_code(),
                static_cast<unsigned long>(report.steps), report.train_loss);
  std::string text = numbers;
  for (auto const& [metric, value] : report.validations.empty() ? fr::Metrics{} : report.last()) {
    std::snprintf(numbers, sizeof numbers, "%s %a, ", metric.c_str(), value);
    text += numbers;
  }
  return text + fr::module_identity(*net);
}

fr::Optimize<fr::AdamW> adamw() {
  return {.lr = 1e-2, .groups = {fr::no_decay_for_biases_and_norms()}};
}

template <class Replicate>
std::string job(std::string_view name, Replicate const& replicate) {
  if (name == "adamw") return train(replicate, "", adamw(), fr::ClipNorm<0.5_r>{});
  if (name == "bf16")
    return train(replicate, "", fr::Optimize<fr::SGD>{.lr = 0.05, .momentum = 0.9},
                 fr::ClipNorm<0.5_r>{}, fr::Precision<fr::BF16>{}, fr::Average<fr::Ema<0.9_r>>{},
                 fr::SkipNonFinite{});
  if (name == "fp16")
    return train(replicate, "", fr::Optimize<fr::Adam>{.lr = 1e-2}, fr::ClipValue<0.05_r>{},
                 fr::Precision<fr::FP16>{});
  std::string const folder = std::getenv("FRUGAL_TEST_FOLDER");
  if (name == "timed")  // at times that the first process alone knows
    return train(replicate, folder, adamw(), fr::ClipNorm<0.5_r>{},
                 fr::Checkpoint<fr::Every<fr::Auto>, fr::Async>{},
                 support::Notice::of_environment());
  return train(replicate, folder, adamw(), fr::ClipNorm<0.5_r>{},
               fr::Checkpoint<fr::Every<3>, fr::KeepBest<fr::WatchLoss>>{},
               support::Notice::of_environment());
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  std::string const name = rank_processes::job();
  std::string const way = name.substr(0, name.find(' '));
  std::string const what = name.substr(name.find(' ') + 1);
  if (what == "odd") {
    rank_processes::answer(train_odd(way == "exact"));
  } else if (way == "whole") {
    rank_processes::answer(job(what, fr::Replicate<fr::Exact>{}));
  } else if (way == "exact") {
    rank_processes::answer(job(what, fr::Replicate<fr::Exact, fr::Shard<fr::States>>{}));
  } else if (way == "ring") {
    rank_processes::answer(job(what, fr::Replicate<fr::Ring>{}));
  } else {
    rank_processes::answer(job(what, fr::Replicate<fr::Ring, fr::Shard<fr::States>>{}));
  }
}

TEST_CASE("Exact: 1, 2, 4 and 8 processes come to the same bits, with and without Shard") {
  for (std::string const name : {"adamw", "bf16", "fp16"}) {
    CAPTURE(name);
    std::string const alone = run("whole " + name, 1).front();
    if (name == "adamw") CHECK(run("exact " + name, 1).front() == alone);
    for (int size : name == "adamw" ? std::vector{2, 4, 8} : std::vector{4}) {
      CAPTURE(size);
      for (std::string const& result : run("exact " + name, size)) CHECK(result == alone);
    }
    // Without Shard, by the same norms.
    if (name == "adamw") CHECK(run("whole " + name, 2).front() == alone);
  }
}

TEST_CASE("Ring: the same bits with and without Shard") {
  for (std::string const name : {"adamw", "bf16"}) {
    CAPTURE(name);
    std::string const whole = run("ring " + name, 4).front();
    for (std::string const& result : run("sharded-ring " + name, 4)) CHECK(result == whole);
  }
}

TEST_CASE("a window that is skipped leaves nothing in the parts") {
  std::string const alone = run("whole odd", 1).front();
  CHECK(alone.find("3 steps, 1 skipped") != std::string::npos);
  for (std::string const& result : run("exact odd", 4)) CHECK(result == alone);
}

template <class Optimizer>
std::string refusal_of(std::shared_ptr<fr::Communicator> const& with, Optimizer const& optimizer,
                       double max_norm) {
  torch::nn::Linear net(4, 3);
  {
    at::NoGradGuard const no_gradients;
    net->weight.fill_(0.5), net->bias.fill_(0);
  }
  fr::TensorDataset train(at::ones({16, 4}), at::zeros({16}, at::kLong),
                          {.batch = 4, .shuffle = false});
  fr::ClipNorm<> clip;
  clip.max_norm = max_norm;
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 1},
                      optimizer,
                      clip,
                      fr::Accumulate<4>{},
                      fr::Replicate<fr::Exact, fr::Shard<fr::States>>{.with = with}};
  try {
    trainer.fit(train);
  } catch (fr::ClusterError const& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("settings that differ between processes are refused: each would update its own part") {
  for (int const what : {0, 1, 2}) {
    std::vector<std::string> texts(4);
    CHECK(ranks::none(ranks::run(4, [&](std::shared_ptr<fr::Communicator> const& with) {
      bool const other = with->rank() == 2;
      texts[static_cast<std::size_t>(with->rank())] =
          refusal_of(with,
                     fr::Optimize<fr::AdamW>{.lr = what == 0 && other ? 2e-3 : 1e-3,
                                             .beta2 = what == 1 && other ? 0.95 : 0.999},
                     what == 2 && other ? 2.0 : 1.0);
    })));
    char const* const names[] = {"the optimizer's lr, group 0 of rank 2 is",
                                 "the optimizer's beta2, group 0 of rank 2 is",
                                 "ClipNorm::max_norm of rank 2 is"};
    for (std::string const& text : texts) CHECK(text.find(names[what]) != std::string::npos);
  }
}

std::vector<std::string> run_in(std::filesystem::path const& folder, std::string const& name,
                                int size, int notice_rank, int notice_step) {
  return run(name, size,
             support::Notice::environment(notice_rank, notice_step,
                                          {"FRUGAL_TEST_FOLDER=" + folder.string()}));
}

TEST_CASE("a run goes on with other parts, and without") {
  for (std::string const what : {"counted", "timed"}) {
    CAPTURE(what);
    support::TemporaryFolder const folder;
    std::string const whole = run_in(folder / "whole", "whole " + what, 1, 0, 0).front();
    CHECK(whole.find("exit 0, 12 steps") != std::string::npos);
    std::filesystem::path const run = folder / "run";
    struct Start {
      std::string way;
      int size, rank, step;
    };
    for (Start const& start : std::vector<Start>{
             {"exact ", 4, 3, 2}, {"exact ", 8, 0, 6}, {"whole ", 2, 1, 7}, {"exact ", 2, 1, 11}}) {
      CAPTURE(start.size);
      std::string const steps = "exit 75, " + std::to_string(start.step) + " steps";
      for (std::string const& result :
           run_in(run, start.way + what, start.size, start.rank, start.step)) {
        CAPTURE(result);
        CHECK(result.find(steps) != std::string::npos);
      }
    }
    CHECK(run_in(run, "exact " + what, 1, 0, 0).front() == whole);
  }
}

TEST_CASE("each process has a part of the moments, and all have them once") {
  std::int64_t const all =
      std::stoll(run("exact adamw", 1, {"FRUGAL_TEST_COUNT=1"}).front().substr(7));
  for (int size : {2, 4}) {
    std::int64_t sum = 0;
    for (std::string const& result : run("exact adamw", size, {"FRUGAL_TEST_COUNT=1"})) {
      std::int64_t const part = std::stoll(result.substr(7));
      CHECK(part <= (all / size / 4096 + 1) * 4096);
      sum += part;
    }
    CHECK(sum == all);
  }
}

}  // namespace frugal_test::cluster_shard

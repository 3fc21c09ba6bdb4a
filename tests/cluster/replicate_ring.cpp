// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>
#include <frugal/report/plan_ranks.hpp>

#include "support/rank_processes.hpp"
#include "support/ranks.hpp"
#include "support/running.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace frugal_test::cluster_replicate_ring {

namespace fr = frugal;
namespace ranks = support::ranks;
namespace rank_processes = support::rank_processes;

/// A layer that some micro-batches leave out, and one that none takes. With `all` every micro-batch
/// takes every layer, so that each bucket is complete in each backward pass.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(bool every) : all(every) {
    if (!all) register_module("unused", torch::nn::Linear(3, 3));
  }
  torch::nn::Linear in{register_module("in", torch::nn::Linear(8, 32))};
  torch::nn::Linear odd{register_module("odd", torch::nn::Linear(32, 32))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(32, 3))};
  torch::nn::Dropout drop{0.2};
  bool all;
  torch::Tensor forward(torch::Tensor const& x) {
    torch::Tensor hidden = drop(in(x).relu());
    if (all || x.sum().item<double>() > 0) hidden = hidden + odd(hidden).relu();
    return out(hidden);
  }
};
TORCH_MODULE(Net);

/// Steps, losses and a sum of the weights that shows where two runs differ by rounding, and the
/// identity, which shows any difference.
template <class Replicate>
std::string train(Replicate const& replicate, bool all = false,
                  std::int64_t samples = 3 * 32 + 18) {
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(5);
  // The last window of an epoch has 5 of 8 micro-batches, and the last one of these 2 samples.
  at::Tensor const x = at::randn({samples, 8}, generator);
  at::Tensor const y = at::randint(0, 3, {samples}, generator);
  torch::manual_seed(3);
  Net net(all);
  fr::TensorDataset train(x, y, {.batch = 4});
  fr::TensorDataset valid(x, y, {.batch = 16, .shuffle = false});
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 3},
                      fr::Optimize<fr::SGD>{.lr = 0.05, .momentum = 0.9},
                      fr::Accumulate<8>{},
                      fr::ClipNorm<0.5>{},
                      fr::Average<fr::Ema<0.9>>{.at_end = fr::Weights::trained},
                      replicate};
  fr::Report const report = trainer.fit(train, valid);
  double sum = 0;
  for (at::Tensor const& each : net->parameters()) sum += each.norm().item<double>();
  char numbers[160];
  std::snprintf(numbers, sizeof numbers, "%d %d %.9f %.9f %.9f ", static_cast<int>(report.steps),
                static_cast<int>(report.samples), report.train_loss, report.last()["loss"], sum);
  return numbers + fr::module_identity(*net);
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  std::string const name = rank_processes::job();
  fr::Replicate<fr::Ring> ring{};
  auto const has = [&](char const* word) { return name.find(word) != std::string::npos; };
  if (has("many")) ring.bucket_bytes = 256;
  if (has("late")) ring.overlaps = false;
  // The first window has one micro-batch, which is rank 0's.
  std::int64_t const samples = has("short") ? 4 : 3 * 32 + 18;
  if (has("wire")) {
    rank_processes::answer(train(fr::Replicate<fr::Ring, fr::Wire<fr::BF16>>{}, false, samples));
    return;
  }
  rank_processes::answer(has("exact") ? train(fr::Replicate<fr::Exact>{}, has("all"), samples)
                                      : train(ring, has("all"), samples));
}

std::vector<double> numbers_of(std::string const& result) {
  std::istringstream in(result.substr(result.find(' ') + 1));
  std::vector<double> all(5);
  for (double& each : all) in >> each;
  return all;
}

TEST_CASE("1, 2, 4 and 8 processes train the same, up to the order of sums") {
  std::vector<double> const exact = numbers_of(rank_processes::run("exact", 1).front());
  CHECK(exact[0] == 12);
  for (int const size : {1, 2, 4, 8}) {
    CAPTURE(size);
    std::vector<std::string> const results = rank_processes::run("ring", size);
    for (std::string const& result : results) CHECK(result == results.front());
    std::vector<double> const found = numbers_of(results.front());
    CHECK(found[0] == exact[0]);
    CHECK(found[1] == exact[1]);
    for (std::size_t i = 2; i < found.size(); ++i) {
      CHECK(found[i] == doctest::Approx(exact[i]).epsilon(1e-6));
    }
  }
}

TEST_CASE("the sums of many buckets begin during backward, and have the bits of those after it") {
  for (int const size : {2, 4}) {
    for (std::string const name : {"many, all", "many"}) {
      CAPTURE(size);
      CAPTURE(name);
      std::string const expected = rank_processes::run(name + ", late", size).front();
      for (std::string const& result : rank_processes::run(name, size)) CHECK(result == expected);
    }
  }
}

TEST_CASE("gradients that travel in BF16: all ranks have the same, which is rounded") {
  std::vector<double> const exact = numbers_of(rank_processes::run("exact", 1).front());
  // Of one process nothing travels.
  CHECK(rank_processes::run("wire", 1) == rank_processes::run("ring", 1));
  std::vector<std::string> const results = rank_processes::run("wire", 4);
  for (std::string const& result : results) CHECK(result == results.front());
  std::vector<double> const found = numbers_of(results.front());
  for (std::size_t i = 2; i < found.size(); ++i) {
    CHECK(found[i] == doctest::Approx(exact[i]).epsilon(1e-2));
  }
  CHECK(results.front() != rank_processes::run("ring", 4).front());
}

TEST_CASE("a first window in which most ranks have nothing") {
  std::vector<double> const exact = numbers_of(rank_processes::run("exact, short", 1).front());
  for (std::string const name : {"short, many", "short, exact"}) {
    CAPTURE(name);
    std::vector<std::string> const results = rank_processes::run(name, 4);
    for (std::string const& result : results) CHECK(result == results.front());
    std::vector<double> const found = numbers_of(results.front());
    CHECK(found[0] == 3);
    for (std::size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i] == doctest::Approx(exact[i]).epsilon(1e-6));
    }
  }
}

TEST_CASE("windows that the processes cannot share") {
  CHECK(fr::detail::equal_share(ranks::place(1, 2), 6, "Replicate<Ring>").first == 3);
  CHECK_THROWS_WITH_AS(fr::detail::equal_share(ranks::place(0, 3), 8, "Replicate<Ring>"),
                       doctest::Contains("3 processes cannot share windows of 8 micro-batches "
                                         "(Replicate<Ring>): each must have the same number"),
                       fr::SettingsError);
}

/// Two backward passes in one micro-batch.
struct Twice {
  at::Tensor operator()(torch::nn::Linear& net, fr::Batch const& batch) const {
    net->forward(batch.data).square().mean().backward();
    return net->forward(batch.data).mean();
  }
};

std::vector<std::string> trained_twice(bool overlaps) {
  std::vector<torch::nn::Linear> nets(2, nullptr);
  for (torch::nn::Linear& net : nets) {
    torch::manual_seed(1);
    net = torch::nn::Linear(6, 3);
  }
  fr::Batch const set{at::ones({8, 6}), at::zeros({8}, at::kLong)};
  return ranks::run(2, [&](std::shared_ptr<fr::Communicator> const& with) {
    fr::TensorDataset train(set, {.batch = 2, .shuffle = false});
    torch::nn::Linear net = nets[static_cast<std::size_t>(with->rank())];
    fr::Trainer trainer{net,
                        Twice{},
                        fr::Settings{.epochs = 1},
                        fr::Optimize<fr::SGD>{.lr = 0.1},
                        fr::Accumulate<2>{},
                        fr::Replicate<fr::Ring>{.with = with, .overlaps = overlaps}};
    trainer.fit(train);
  });
}

TEST_CASE(
    "a parameter with two gradients in one micro-batch is refused, or summed after backward") {
  std::vector<std::string> const errors = trained_twice(true);
  CHECK(std::ranges::any_of(errors, [](std::string const& error) {
    return error.find("a parameter gets a second gradient in one micro-batch") !=
               std::string::npos &&
           error.find("overlaps = false") != std::string::npos;
  }));
  CHECK(ranks::none(trained_twice(false)));
}

TEST_CASE("plan_ranks reads how a recipe exchanges gradients") {
  using fr::GradientSum;
  fr::GradientExchange const ring = fr::Replicate<fr::Ring>{.bucket_bytes = 4096}.exchange();
  CHECK(ring.sum == GradientSum::ring);
  CHECK(ring.bucket_bytes == 4096);
  CHECK_FALSE(ring.bf16);
  CHECK_FALSE(ring.shards_states);
  CHECK(fr::Replicate<fr::Ring>{.overlaps = false}.exchange().sum ==
        GradientSum::ring_after_backward);
  CHECK(fr::Replicate<fr::Ring, fr::Wire<fr::BF16>, fr::Shard<fr::States>>{}.exchange().bf16);
  CHECK(fr::Replicate<fr::Ring, fr::Wire<fr::BF16>, fr::Shard<fr::States>>{}
            .exchange()
            .shards_states);
  CHECK(fr::Replicate<fr::Exact>{}.exchange().sum == GradientSum::exact);
  auto const local = fr::Replicate<fr::LocalSteps<8>, fr::Outer<fr::Nesterov>>{}.exchange();
  CHECK(local.sum == GradientSum::local_steps);
  CHECK(local.local_steps == 8);
  fr::Replicate<fr::Ring, fr::Wire<fr::PowerSGD<2>>> factors{};
  factors.wire.min_compression_rate = 3;
  CHECK(factors.exchange().power_sgd == 2);
  CHECK(factors.exchange().compression_rate == 3);

  // [100, 50]: 2 x 150 numbers, and a bias of 100; 1 MB/s, two ranks, 2 sums of 2 latencies of 0 s.
  fr::Trainer trainer{torch::nn::Linear(50, 100),
                      fr::CrossEntropy{},
                      fr::Settings{.steps = 4, .device = c10::Device(c10::kCPU)},
                      fr::Optimize<fr::SGD>{.lr = 0.1},
                      fr::Accumulate<2>{},
                      factors};
  auto const plan =
      fr::plan_ranks(trainer, fr::Batch{torch::zeros({2, 50}), torch::zeros({2}, torch::kLong)},
                     {.bytes_per_second = 1e6}, {.micro_batch = fr::plan::Seconds(1)});
  REQUIRE(plan.rows.size() == 2);
  CHECK(plan.rows[1].at.communication.value() == doctest::Approx(1600e-6));
}

}  // namespace frugal_test::cluster_replicate_ring

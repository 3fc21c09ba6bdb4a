// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>

#include "support/files.hpp"
#include "support/live_bytes.hpp"
#include "support/notice.hpp"
#include "support/rank_processes.hpp"
#include "support/ranks.hpp"
#include "support/sharded_training.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::cluster_scattered_gradients {

namespace fr = frugal;
namespace ranks = support::ranks;
namespace rank_processes = support::rank_processes;
using rank_processes::run;
using support::sharded_training::job;

/// Small enough for several buckets.
constexpr std::int64_t bucket = 16 << 10;

TEST_CASE("a rank of a world" * doctest::skip()) {
  std::string const name = rank_processes::job();
  std::string const way = name.substr(0, name.find(' '));
  std::string const what = name.substr(name.find(' ') + 1);
  using Divided = fr::Shard<fr::States, fr::Grads>;
  if (way == "whole") {
    rank_processes::answer(job(what, fr::Replicate<fr::Exact>{}));
  } else if (way == "exact") {
    rank_processes::answer(job(what, fr::Replicate<fr::Exact, Divided>{.bucket_bytes = bucket}));
  } else {
    rank_processes::answer(job(what, fr::Replicate<fr::Ring, Divided>{.bucket_bytes = bucket}));
  }
}

TEST_CASE("Exact: 1, 2, 4 and 8 processes come to the bits of one without Shard") {
  for (std::string const name : {"adamw", "bf16", "odd"}) {
    CAPTURE(name);
    std::string const alone = run("whole " + name, 1).front();
    for (int size : name == "adamw" ? std::vector{1, 2, 4, 8} : std::vector{4}) {
      CAPTURE(size);
      for (std::string const& result : run("exact " + name, size)) CHECK(result == alone);
    }
  }
}

TEST_CASE("Ring: a world that is a power of two adds up in the order of Exact") {
  std::string const alone = run("whole adamw", 1).front();
  for (std::string const& result : run("ring adamw", 4)) CHECK(result == alone);
}

std::vector<std::string> run_in(std::filesystem::path const& folder, std::string const& name,
                                int size, int notice_rank, int notice_step) {
  return run(name, size,
             support::Notice::environment(notice_rank, notice_step,
                                          {"FRUGAL_TEST_FOLDER=" + folder.string()}));
}

TEST_CASE("a run goes on with other parts, and without") {
  support::TemporaryFolder const folder;
  std::string const whole = run_in(folder / "whole", "whole counted", 1, 0, 0).front();
  std::filesystem::path const started = folder / "run";
  struct Start {
    std::string way;
    int size, rank, step;
  };
  for (Start const& start :
       std::vector<Start>{{"exact ", 8, 3, 3}, {"exact ", 2, 1, 6}, {"whole ", 4, 0, 10}}) {
    std::string const steps = "exit 75, " + std::to_string(start.step) + " steps";
    for (std::string const& result :
         run_in(started, start.way + "counted", start.size, start.rank, start.step)) {
      CAPTURE(result);
      CHECK(result.find(steps) != std::string::npos);
    }
  }
  for (std::string const& result : run_in(started, "exact counted", 4, 0, 0)) {
    CHECK(result == whole);
  }
}

TEST_CASE("sums are those of the tree over all micro-batches") {
  constexpr int size = 4;
  constexpr std::size_t micro_batches = 6;  // of a window of eight
  std::vector<at::Tensor> const shapes{at::empty({300, 70}), at::empty({70}), at::empty({5}),
                                       at::empty({64, 64})};
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(7);
  std::vector<std::vector<at::Tensor>> gradients(micro_batches);
  fr::PairwiseSum tree;
  for (auto& each : gradients) {
    std::vector<at::Tensor> copies;
    for (at::Tensor const& shape : shapes) {
      each.push_back(at::randn(shape.sizes(), generator));
      copies.push_back(each.back().clone());
    }
    tree.add(copies);
  }
  std::vector<at::Tensor> const expected = tree.take();

  std::vector<std::vector<at::Tensor>> found(size);
  CHECK(ranks::none(ranks::run(size, [&](std::shared_ptr<fr::Communicator> const& all) {
    std::vector<at::Tensor> parameters;
    for (at::Tensor const& shape : shapes) {
      parameters.push_back(at::zeros(shape.sizes()).requires_grad_(true));
    }
    fr::detail::ScatteredGradients sums(*all, {.micro_batches = 2});
    fr::Parameters list;
    for (at::Tensor const& each : parameters) {
      list.tensors.push_back(each);
      list.names.push_back("p" + std::to_string(list.names.size()));
    }
    fr::detail::ShardedParameters sharded(*all, list, {.bucket = 20 << 10});
    double const unit = 1;
    for (int window = 0; window < 2; ++window) {
      sums.begin(parameters, &sharded);
      for (std::size_t m = static_cast<std::size_t>(all->rank()); m < micro_batches; m += size) {
        sums.before(false, unit);
        at::Tensor loss = at::zeros({});
        for (std::size_t i = 0; i < shapes.size(); ++i) {
          loss = loss + (parameters[i] * gradients[m][i]).sum();
        }
        loss.backward();
        sums.after();
      }
      sums.begin_rest();
      found[static_cast<std::size_t>(all->rank())] =
          sums.own_sum(std::vector<bool>(size, true), sharded);
    }
    // The last use of the sums: before `sharded` gives its memory back.
    for (at::Tensor& each : found[static_cast<std::size_t>(all->rank())]) each = each.clone();
  })));
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    std::vector<at::Tensor> parts;
    for (auto const& of_rank : found) parts.push_back(of_rank[i]);
    CHECK(at::cat(parts).equal(expected[i].flatten()));
  }
}

/// The most bytes that each of four ranks holds while it trains 32 parameters of so many bytes.
std::vector<std::int64_t> peaks_of(std::int64_t parameters, std::int64_t bytes) {
  constexpr int size = 4;
  std::vector<std::int64_t> peaks(size);
  CHECK(ranks::none(ranks::run(size, [&](std::shared_ptr<fr::Communicator> const& all) {
    fr::Parameters list;
    for (std::int64_t i = 0; i < parameters; ++i) {
      list.tensors.push_back(at::zeros({bytes / 4}).requires_grad_(true));
      list.names.push_back("p" + std::to_string(i));
    }
    fr::detail::ScatteredGradients sums(*all, {.micro_batches = 2});
    fr::detail::ShardedParameters sharded(*all, list, {.bucket = bytes});
    double const unit = 1;
    support::LiveBytes live;
    sums.begin(list.tensors, &sharded);
    for (int round = 0; round < 2; ++round) {
      at::Tensor loss = at::zeros({});
      for (at::Tensor const& each : list.tensors) loss = loss + each.dot(each);
      live.forget_peak();
      sums.before(false, unit);
      loss.backward();
      sums.after();
    }
    sums.begin_rest();
    std::vector<at::Tensor> const own = sums.own_sum({true, true, true, true}, sharded);
    peaks[static_cast<std::size_t>(all->rank())] = live.peak();
  })));
  return peaks;
}

TEST_CASE("a process never holds all gradients") {
  constexpr std::int64_t size = 4, bytes = 64 << 10, parameters = 32;
  std::vector<std::int64_t> least = peaks_of(parameters, bytes);
  auto const most = [&] { return *std::ranges::max_element(least); };
  // Two sums of a part, two buckets that travel both ways, and a gradient that comes. A bucket that a thread
  // of Gloo frees, because it lets go last, is not seen: that makes a peak larger, and none smaller.
  constexpr std::int64_t bound = 2 * parameters * bytes / size + 8 * bytes;
  for (int attempt = 0; attempt < 20 && most() > bound; ++attempt) {
    std::vector<std::int64_t> const again = peaks_of(parameters, bytes);
    for (std::size_t i = 0; i < least.size(); ++i) least[i] = std::min(least[i], again[i]);
  }
  for (std::int64_t const peak : least) {
    CHECK(peak <= bound);
    CHECK(peak >= parameters * bytes / size);
  }
}

}  // namespace frugal_test::cluster_scattered_gradients

// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: pipeline.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>

#include "support/rank_processes.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace frugal_test::cluster_pipeline_executor {

namespace fr = frugal;
using namespace std::chrono_literals;
namespace rank_processes = support::rank_processes;
using Clock = std::chrono::steady_clock;

/// Seconds that layers of this process have worked.
double worked = 0;

/// Keeps the part of each window's passes in which this process does nothing.
struct Keep {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.Keep";
    static constexpr fr::Stage stage = fr::Stage::prepare;
  };
  using listens = fr::list<fr::on::window, fr::on::gradients>;
  using properties = fr::list<fr::property::knows_stages>;

  inline static std::vector<double> idle;

  struct State {
    using transient = void;
    explicit State(Keep const&) {}
    void on_window(fr::WindowBegin const&) {
      begun = Clock::now();
      worked = 0;
    }
    void on_gradients(fr::Gradients const&) const {
      std::chrono::duration<double> const span = Clock::now() - begun;
      idle.push_back(1 - worked / span.count());
    }
    Clock::time_point begun;
  };
};

void work(std::chrono::milliseconds time) {
  auto const begun = Clock::now();
  std::this_thread::sleep_for(time);
  worked += std::chrono::duration<double>(Clock::now() - begun).count();
}

constexpr auto stage_time = 200ms;  // long against what a busy machine takes to wake a thread
constexpr int window = 4;

struct Asleep : torch::autograd::Function<Asleep> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::Tensor const& x,
                            std::int64_t milliseconds) {
    context->saved_data["ms"] = milliseconds;
    work(std::chrono::milliseconds(milliseconds));
    return x * 1;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    work(std::chrono::milliseconds(context->saved_data["ms"].toInt()));
    return {gradients[0], at::Tensor()};
  }
};
struct SleepImpl : torch::nn::Module {
  explicit SleepImpl(std::chrono::milliseconds of) : time(of) {}
  torch::nn::Linear inner{register_module("inner", torch::nn::Linear(4, 4))};
  std::chrono::milliseconds time;
  torch::Tensor forward(torch::Tensor const& x) { return Asleep::apply(inner(x), time.count()); }
};
TORCH_MODULE(Sleep);

/// The idle part of a step of this process: the least of several steps.
template <class Schedule>
std::string idle(int size) {
  torch::manual_seed(1);
  torch::nn::Sequential net;
  for (int i = 0; i < size * Schedule::chunks; ++i) net->push_back(Sleep(stage_time));
  fr::TensorDataset train(at::ones({2 * window, 4}), at::ones({2 * window}, at::kLong),
                          {.batch = 1});
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Optimize<fr::SGD>{.lr = 0.1},
                      fr::Accumulate<window>{},
                      fr::Pipeline<Schedule>{},
                      Keep{}};
  std::ignore = trainer.fit(train);
  return std::to_string(*std::ranges::min_element(Keep::idle));
}

struct AtStepImpl : torch::nn::Module {
  explicit AtStepImpl(void (*what)()) : act(what) {}
  torch::nn::Linear inner{register_module("inner", torch::nn::Linear(4, 4))};
  void (*act)();
  int passes = 0;
  torch::Tensor forward(torch::Tensor const& x) {
    if (++passes == 14) act();  // the second micro-batch of step 3
    return inner(x);
  }
};
TORCH_MODULE(AtStep);
void fail() { throw std::runtime_error("the labels are gone"); }
void hang() { std::this_thread::sleep_for(60s); }

std::string train_and_fail(std::string const& name) {
  auto const with = fr::Communicator::join(fr::World::from_environment(),
                                           {.join = 60s, .collective = 4s, .hung = 2s});
  torch::manual_seed(1);
  torch::nn::Sequential net;
  for (int i = 0; i < 4; ++i) {
    net->push_back(AtStep(i != 2 ? [] {} : name == "fails" ? &fail : &hang));
  }
  fr::TensorDataset train(at::ones({32, 4}), at::ones({32}, at::kLong), {.batch = 1});
  fr::Trainer trainer{net, fr::CrossEntropy{}, fr::Optimize<fr::SGD>{.lr = 0.1},
                      fr::Accumulate<4>{}, fr::Pipeline<>{.with = with}};
  auto const begun = Clock::now();
  std::string said = "it trained on";
  try {
    std::ignore = trainer.fit(train);
  } catch (std::exception const& error) {
    said = error.what();
  }
  // The others must not need the end of this process to notice.
  if (name == "fails" && with->rank() == 2) std::this_thread::sleep_for(4s);
  std::chrono::duration<double> const took = Clock::now() - begun;
  return std::to_string(took.count()) + " s: " + said;
}

/// A source that says nothing of its data; rank 2 has other batches from the second epoch on.
struct Odd {
  std::string what;
  int at = 0, epoch = 0;
  std::optional<fr::Batch> next() {
    bool const odd = epoch > 0 && !what.empty();
    if (at == (odd && what == "count" ? 7 : 8)) return std::nullopt;
    std::int64_t const rows = odd && what == "shape" && at > 4 ? 2 : 1;
    at::Tensor const x = at::full({rows, 4}, ++at + (odd && what == "values" ? 1 : 0), at::kFloat);
    return fr::Batch{x, at::ones({rows}, at::kLong)};
  }
  void seek(fr::Cursor const& to) {
    at = static_cast<int>(to.position), epoch = static_cast<int>(to.epoch);
  }
};

std::string train_apart(std::string const& what) {
  auto const with = fr::Communicator::join(fr::World::from_environment(),
                                           {.join = 60s, .collective = 20s, .hung = 2s});
  torch::manual_seed(1);
  torch::nn::Sequential net;
  for (int i = 0; i < 4; ++i) net->push_back(torch::nn::Linear(4, 4));
  Odd train{.what = with->rank() == 2 ? what : ""};
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 3},
                      fr::Optimize<fr::SGD>{.lr = 0.1},
                      fr::Accumulate<4>{},
                      fr::Pipeline<>{.with = with}};
  try {
    return std::to_string(trainer.fit(train).steps) + " steps";
  } catch (std::exception const& error) {
    return error.what();
  }
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  std::string const name = rank_processes::job();
  int const size = fr::World::from_environment().size;
  if (name == "asleep") {
    rank_processes::answer(idle<fr::OneForwardOneBackward>(size));
  } else if (name == "asleep, interleaved") {
    rank_processes::answer(idle<fr::Interleaved<2>>(size));
  } else if (name.starts_with("apart ")) {
    rank_processes::answer(train_apart(name.substr(6)));
  } else {
    rank_processes::answer(train_and_fail(name));
  }
}

TEST_CASE("stages that take equally long wait (p - 1) / (v m + p - 1) of a step") {
  for (auto const& [name, chunks] :
       std::vector<std::pair<std::string, int>>{{"asleep", 1}, {"asleep, interleaved", 2}}) {
    CAPTURE(name);
    double const expected = fr::pipeline_bubble(4, window, chunks);
    double least = 1;
    // Whatever else the machine does makes a rank wait longer, and none shorter.
    for (int attempt = 0; attempt < 6 && least >= 1.05 * expected; ++attempt) {
      double sum = 0;
      for (std::string const& result : rank_processes::run(name, 4))
        sum += std::stod(result.substr(std::string("RESULT ").size()));
      least = std::min(least, sum / 4);
    }
    CHECK(least > 0.95 * expected);
    CHECK(least < 1.05 * expected);
  }
}

TEST_CASE("the others name a rank that fails, and one that hangs") {
  auto const seconds_of = [](std::string const& answer) {
    return answer.empty() ? 0.0 : std::stod(answer.substr(std::string("RESULT ").size()));
  };
  for (std::string const name : {"fails", "hangs"}) {
    double const most = name == "fails" ? 4 : 25;
    std::vector<std::string> answers;
    double slowest = 2 * most;
    // Whatever else the machine does makes the steps before it slower.
    for (int attempt = 0; attempt < 3 && slowest >= most; ++attempt) {
      answers = rank_processes::run(name, 4, {}, /*may_be_silent=*/2);
      slowest = 0;
      for (std::size_t const rank : {0U, 1U, 3U})
        slowest = std::max(slowest, seconds_of(answers[rank]));
    }
    CHECK(slowest < most);
    for (std::size_t const rank : {0U, 1U, 3U}) {
      std::string const& answer = answers[rank];
      CAPTURE(answer);
      CHECK(answer.find("rank " + std::to_string(rank) + " of 4 could not complete") !=
            std::string::npos);
      CHECK(answer.find(name == "fails" ? ") failed at step 3: the labels are gone"
                                        : ") hangs at step 3 after") != std::string::npos);
      CHECK(answer.find(": rank 2 (") != std::string::npos);
    }
  }
}

TEST_CASE(
    "a stage that reads other batches than the one before it is an error, and no message is lost") {
  for (std::string const& each : rank_processes::run("apart ", 4)) {
    CHECK(each.find("RESULT 6 steps") != std::string::npos);
  }
  for (auto const& [what, says] : std::vector<std::pair<std::string, std::string>>{
           {"count", "rank 2 has 3 micro-batches, and rank 1 4"},
           {"shape", "rank 2 has batches of other shapes than rank 1"},
           {"values", "rank 2 has a first batch of other values than rank 1"}}) {
    CAPTURE(what);
    std::vector<std::string> const answers = rank_processes::run("apart " + what, 4);
    CHECK(answers[2].find("the stages of a pipeline train different batches: " + says) !=
          std::string::npos);
    for (std::string const& each : answers) {
      CAPTURE(each);
      CHECK(each.find("the stages of a pipeline train different batches: ") != std::string::npos);
    }
  }
}

}  // namespace frugal_test::cluster_pipeline_executor

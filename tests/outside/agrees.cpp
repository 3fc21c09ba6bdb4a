// SPDX-License-Identifier: Apache-2.0
// Data-parallel training as a user writes it: processes that agree, and sum their gradients. Two
// threads stand in for two processes, each with a trainer and its share of every window.
#include <doctest/doctest.h>

#include <frugal/cluster/summed_windows.hpp>
#include <frugal/frugal.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <algorithm>
#include <array>
#include <barrier>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace frugal_test::outside_agrees {

namespace fr = frugal;
using namespace support;

/// The channel between processes. One that exits no longer makes the other wait.
class Pair {
 public:
  template <class T, class Join>
  T join(int rank, T value, Join&& join) {
    auto& values = std::get<std::array<T, 2>>(values_);
    values.at(static_cast<std::size_t>(rank)) = std::move(value);
    all_.arrive_and_wait();
    T joined = join(values[0], values[1]);
    all_.arrive_and_wait();
    return joined;
  }
  void leave() { all_.arrive_and_drop(); }

 private:
  std::barrier<> all_{2};
  std::tuple<std::array<double, 2>, std::array<at::Tensor, 2>> values_;
};

struct DataParallel {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "outside.DataParallel";
  };
  using listens = fr::list<fr::around::micro_batch>;
  using provides = fr::list<fr::service::reduce>;
  using strategy = fr::SummedWindows;

  Pair* pair = nullptr;
  int rank = 0;
  bool adds_gradients = true;

  class State {
   public:
    using transient = void;
    explicit State(DataParallel const& settings)
        : pair_(settings.pair), rank_(settings.rank), adds_gradients_(settings.adds_gradients) {}

    // [begin members]
    double reduce(fr::Quantity what, double value) {
      return pair_->join(rank_, value, [&](double a, double b) {
        return fr::is_verdict(what) ? std::max(a, b) : a + b;
      });
    }
    at::Tensor reduce(fr::Quantity what, at::Tensor value) {
      return pair_->join(rank_, std::move(value), [&](at::Tensor const& a, at::Tensor const& b) {
        return fr::is_verdict(what) ? at::maximum(a, b) : a + b;
      });
    }

    template <class Next>
    void around_micro_batch(fr::MicroBatchRun const& phase, Next&& next) {
      next();
      if (!phase.last || !adds_gradients_) return;
      at::NoGradGuard const no_gradients;
      for (at::Tensor const& parameter : phase.parameters().tensors) {
        if (!parameter.grad().defined()) continue;  // frozen, in every process
        at::Tensor const sum =
            pair_->join(rank_, parameter.grad(),
                        [](at::Tensor const& a, at::Tensor const& b) { return a + b; });
        parameter.grad().copy_(sum);
      }
    }
    // [end members]

   private:
    Pair* pair_;
    int rank_;
    bool adds_gradients_;
  };
};

/// Requests a preemption, or a stop, after a step.
struct Asks {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "outside.Asks";
  };
  using listens = fr::list<fr::query::stop_requested, fr::on::step>;

  std::uint64_t leave_at = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t stop_at = std::numeric_limits<std::uint64_t>::max();

  struct State {
    using transient = void;
    explicit State(Asks const& asks) : leave_at_(asks.leave_at), stop_at_(asks.stop_at) {}
    bool stop_requested(fr::Phase const& phase) const { return phase.counters().step >= leave_at_; }
    fr::flow on_step(fr::Step& phase) const {
      return phase.counters().step >= stop_at_ ? fr::flow::stop : fr::flow::proceed;
    }

   private:
    std::uint64_t leave_at_;
    std::uint64_t stop_at_;
  };
};

/// 44 samples in micro-batches of these sizes, in turn; returns one process's share of each.
std::vector<fr::Batch> shares(std::vector<std::array<std::int64_t, 2>> const& sizes, int rank) {
  fr::Batch const all = samples(44);
  std::vector<fr::Batch> batches;
  std::int64_t at = 0;
  for (std::size_t i = 0; at < 44; ++i) {
    auto const [first, second] = sizes[i % sizes.size()];
    std::int64_t const begin = rank == 1 ? at + first : at;
    std::int64_t const count = rank == 0 ? first : rank == 1 ? second : first + second;
    batches.push_back({all.data.narrow(0, begin, count), all.target.narrow(0, begin, count)});
    at += first + second;
  }
  return batches;
}
constexpr int whole = 2;  ///< instead of a rank: a single process with all of it

struct Outcome {
  fr::Report report;
  std::map<std::string, at::Tensor> tensors;
  Seen seen;
  std::string error{};  ///< of the bad loss that ended it
};

template <class... Ps>
Outcome fit(std::vector<fr::Batch>& train, int rank, std::filesystem::path const& folder,
            Ps const&... policies) {
  Outcome outcome;
  auto const module = std::make_shared<Mlp>();
  auto valid = shares({{3, 1}}, rank);
  fr::Trainer trainer{module,
                      fr::CrossEntropy{},
                      fr::Settings{.run_dir = folder, .epochs = 3},
                      fr::Validate<fr::Every<1, fr::Epoch>, fr::Accuracy>{},
                      fr::Optimize<fr::SGD>{.lr = 0.1, .momentum = 0.9},
                      Spy{.seen = &outcome.seen},
                      policies...};
  outcome.report = trainer.fit(train, valid);
  outcome.tensors = tensors_of(*module);
  return outcome;
}

/// Runs `process(pair, rank)` in two threads.
template <class Process>
std::array<Outcome, 2> both(Process&& process) {
  std::array<Outcome, 2> outcomes;
  Pair pair;
  auto const run = [&](int rank) {
    outcomes.at(static_cast<std::size_t>(rank)) = process(pair, rank);
    pair.leave();
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
  return outcomes;
}

double apart(Outcome const& a, Outcome const& b) {
  double most = 0;
  for (auto const& [name, tensor] : a.tensors) {
    most = std::max(most, (tensor - b.tensors.at(name)).abs().max().item<double>());
  }
  return most;
}

template <class... Ps>
void end_in_the_same_weights(std::vector<std::array<std::int64_t, 2>> const& sizes,
                             Ps const&... policies) {
  auto all = shares(sizes, whole);
  Outcome const one = fit(all, whole, {}, policies...);
  auto const two = both([&](Pair& pair, int rank) {
    auto train = shares(sizes, rank);
    return fit(train, rank, {}, DataParallel{.pair = &pair, .rank = rank}, policies...);
  });
  CHECK(same_bits(two[0].tensors, two[1].tensors));
  CHECK(apart(two[0], one) < 1e-6);
  for (Outcome const& each : two) {
    CHECK(each.report.steps == one.report.steps);
    CHECK(each.report.train_loss == doctest::Approx(one.report.train_loss).epsilon(1e-6));
    REQUIRE(each.seen.epoch_losses.size() == 3);
    CHECK(each.seen.epoch_losses[0] == doctest::Approx(one.seen.epoch_losses[0]).epsilon(1e-6));
    CHECK(each.report.last()["loss"] == doctest::Approx(one.report.last()["loss"]));
    CHECK(each.report.last()["accuracy"] == one.report.last()["accuracy"]);
  }
  CHECK(two[0].report.samples + two[1].report.samples == one.report.samples);
}

TEST_CASE("two processes with half of each batch end with the weights of one with the whole") {
  end_in_the_same_weights({{4, 4}, {4, 4}, {4, 4}, {4, 4}, {4, 4}, {2, 2}});
}

TEST_CASE("shares of unequal weight, and windows of several micro-batches, do too") {
  end_in_the_same_weights({{5, 3}, {2, 6}, {1, 5}});
  end_in_the_same_weights({{4, 4}, {4, 4}, {4, 4}, {4, 4}, {4, 4}, {2, 2}}, fr::Accumulate<2>{});
  end_in_the_same_weights({{5, 3}, {2, 6}, {1, 5}, {2, 6}, {7, 7}}, fr::Accumulate<2>{});
}

/// The mean over the labels that are not -100: NaN, of weight 0, where there is none.
struct NaiveMean {
  fr::Loss operator()(std::shared_ptr<Mlp>& module, fr::Batch const& batch) const {
    at::Tensor const counts = batch.target.ne(-100).to(at::kFloat);
    at::Tensor const each =
        at::cross_entropy_loss(module->forward(batch.data), batch.target, {}, at::Reduction::None);
    return {(each * counts).sum() / counts.sum(), counts.sum().item<double>()};
  }
};

TEST_CASE("a process without a label in a window adds nothing to it, though its loss is NaN") {
  auto const train = [](int rank, auto... policies) {
    auto batches = shares({{2, 2}}, rank);
    for (std::size_t i = 0; i < batches.size(); i += 2) {
      if (rank == 1) batches[i].target.fill_(-100);
      if (rank == whole) batches[i].target.narrow(0, 2, 2).fill_(-100);
    }
    Outcome outcome;
    auto const module = std::make_shared<Mlp>();
    fr::Trainer trainer{module, NaiveMean{}, fr::Settings{.epochs = 2},
                        fr::Optimize<fr::SGD>{.lr = 0.1}, policies...};
    outcome.report = trainer.fit(batches);
    outcome.tensors = tensors_of(*module);
    return outcome;
  };
  Outcome const one = train(whole);
  auto const two = both(
      [&](Pair& pair, int rank) { return train(rank, DataParallel{.pair = &pair, .rank = rank}); });
  CHECK(same_bits(two[0].tensors, two[1].tensors));
  CHECK(apart(two[0], one) < 1e-6);
  CHECK(two[1].report.train_loss == doctest::Approx(one.report.train_loss).epsilon(1e-6));
}

TEST_CASE("a preemption requested in one process preempts both after the same step") {
  auto const two = both([&](Pair& pair, int rank) {
    auto train = shares({{2, 2}}, rank);
    return fit(train, rank, {}, DataParallel{.pair = &pair, .rank = rank},
               rank == 0 ? Asks{} : Asks{.leave_at = 14});
  });
  for (Outcome const& each : two) {
    CHECK(each.report.preempted);
    CHECK(each.report.steps == 14);
    CHECK(each.report.epochs == 1);
  }
  CHECK(two[1].report.stopped_by == "outside.Asks");
  CHECK(two[0].report.stopped_by == "another process");
}

TEST_CASE("a stop request of one process ends the run in both") {
  TemporaryFolder const folder;
  auto const start = [&](std::uint64_t stop_at) {
    return both([&](Pair& pair, int rank) {
      auto train = shares({{2, 2}}, rank);
      return fit(train, rank, folder / std::to_string(rank),
                 DataParallel{.pair = &pair, .rank = rank}, fr::Checkpoint<fr::Every<1>>{},
                 rank == 1 ? Asks{} : Asks{.stop_at = stop_at});
    });
  };
  auto const two = start(5);
  for (Outcome const& each : two) {
    CHECK_FALSE(each.report.preempted);
    CHECK(each.report.steps == 5);
  }
  CHECK(two[0].report.stopped_by == "outside.Asks");
  CHECK(two[1].report.stopped_by == "another process");
  // Both are at their end when restarted: one that knows suffices.
  for (Outcome const& each : start(1000)) CHECK(each.report.steps == 5);
}

/// Its gradient is infinite in one batch, by number.
struct Overflows {
  int nth;
  int* count;
  fr::Loss operator()(std::shared_ptr<Mlp>& module, fr::Batch const& batch) const {
    fr::Loss loss = fr::CrossEntropy{}(module, batch);
    if (++*count == nth) {
      loss.output.register_hook([](at::Tensor const& gradient) {
        return gradient * std::numeric_limits<float>::infinity();
      });
    }
    return loss;
  }
};

TEST_CASE("gradients that overflow in one process are no step in either") {
  auto const two = both([&](Pair& pair, int rank) {
    auto train = shares({{2, 2}}, rank);
    int count = 0;
    Outcome outcome;
    auto const module = std::make_shared<Mlp>();
    fr::Trainer trainer{module,
                        Overflows{rank == 0 ? 4 : 0, &count},
                        fr::Settings{.epochs = 1},
                        fr::Optimize<fr::SGD>{.lr = 0.1},
                        fr::Precision<fr::FP16>{.scaling = {.initial = 256}},
                        DataParallel{.pair = &pair, .rank = rank, .adds_gradients = false}};
    outcome.report = trainer.fit(train);
    return outcome;
  });
  for (Outcome const& each : two) {
    CHECK(each.report.non_finite_windows == 1);
    CHECK(each.report.steps == 10);
  }
}

/// Its loss is multiplied by `times` in one batch, by number.
struct Spoilt {
  int nth;
  double times;
  int* count;
  fr::Loss operator()(std::shared_ptr<Mlp>& module, fr::Batch const& batch) const {
    fr::Loss loss = fr::CrossEntropy{}(module, batch);
    if (++*count == nth) loss.value = loss.value * times;
    return loss;
  }
};
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Three epochs of 11 windows; one window of one process has a bad loss.
template <class... Ps>
std::array<Outcome, 2> with_one_spoilt(int nth, double times, int in_rank, Ps const&... policies) {
  return both([&](Pair& pair, int rank) {
    auto train = shares({{2, 2}}, rank);
    int count = 0;
    Outcome outcome;
    auto const module = std::make_shared<Mlp>();
    fr::Trainer trainer{module,
                        Spoilt{rank == in_rank ? nth : 0, times, &count},
                        fr::Settings{.epochs = 3},
                        fr::Optimize<fr::SGD>{.lr = 0.1},
                        DataParallel{.pair = &pair, .rank = rank},
                        policies...};
    try {
      outcome.report = trainer.fit(train);
    } catch (fr::NonFiniteLossError const& error) {
      outcome.error = error.what();
    }
    outcome.tensors = tensors_of(*module);
    return outcome;
  });
}

TEST_CASE("a bad loss in one process ends the run in both, and the weights are the same") {
  auto const two = with_one_spoilt(6, not_a_number, 1);
  CHECK(two[0].error.find("the loss is bad in another process") != std::string::npos);
  CHECK(two[1].error.find("the loss is NaN (epoch 0, step 5, micro-batch 5)") != std::string::npos);
  CHECK(same_bits(two[0].tensors, two[1].tensors));
}

TEST_CASE("with Rollback both go back, and skip the window that is bad in one") {
  for (auto const& two : {with_one_spoilt(6, not_a_number, 0, fr::Rollback<fr::Every<4>>{}),
                          with_one_spoilt(30, 1000, 1, fr::Rollback<fr::Every<4>>{.jump = 5})}) {
    for (Outcome const& each : two) {
      CHECK(each.error.empty());
      CHECK(each.report.epochs == 3);
      CHECK(each.report.steps == 32);
      // The second thread is also told that the two share LibTorch's generators.
      CHECK(std::count_if(each.report.warnings.begin(), each.report.warnings.end(),
                          [](std::string const& line) {
                            return line.find("that window is passed over") != std::string::npos;
                          }) == 1);
    }
    CHECK(same_bits(two[0].tensors, two[1].tensors));
  }
}

/// Skips one window, by its step.
struct PassesOver {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "outside.PassesOver";
  };
  using listens = fr::list<fr::on::window>;

  bool it_does = false;

  struct State {
    using transient = void;
    explicit State(PassesOver const& settings) : does_(settings.it_does) {}
    void on_window(fr::WindowBegin& phase) {
      if (does_ && phase.counters().step == 5) phase.skip();
      does_ = does_ && phase.counters().step != 5;
    }

   private:
    bool does_;
  };
};

TEST_CASE("a window that one process skips is skipped in both") {
  auto const two = both([&](Pair& pair, int rank) {
    auto train = shares({{2, 2}}, rank);
    return fit(train, rank, {}, DataParallel{.pair = &pair, .rank = rank}, PassesOver{rank == 1});
  });
  for (Outcome const& each : two) CHECK(each.report.steps == 32);
  CHECK(same_bits(two[0].tensors, two[1].tensors));
}

}  // namespace frugal_test::outside_agrees

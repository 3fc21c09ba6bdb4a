// SPDX-License-Identifier: Apache-2.0
// needs: cluster
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/data.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model/freeze.hpp>

#include "support/files.hpp"
#include "support/full_disk.hpp"
#include "support/notice.hpp"
#include "support/rank_processes.hpp"
#include "support/ranks.hpp"

#include <linux/tcp.h>
#include <netinet/in.h>

#include <sys/socket.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace frugal_test::cluster_replicate_local {

namespace fr = frugal;
namespace ranks = support::ranks;
namespace rank_processes = support::rank_processes;
using rank_processes::run;

struct NetImpl : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(8, 16))};
  torch::nn::Linear odd{register_module("odd", torch::nn::Linear(16, 16))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(16, 3))};
  torch::nn::Dropout drop{register_module("drop", torch::nn::Dropout(0.0))};
  /// A layer that some micro-batches leave out, so that processes differ in which moments they have.
  torch::Tensor forward(torch::Tensor const& x) {
    torch::Tensor hidden = drop(in(x).tanh());
    if (x[0][0].item<float>() > 0.5F) hidden = hidden + odd(hidden).tanh();
    return out(hidden);
  }
};
TORCH_MODULE(Net);

struct Data {
  at::Tensor x, y;
};
// Windows of 8 micro-batches of 4 samples. The last one of an epoch has 5, the last of 2 samples: of four
// processes the third one trains less and the fourth nothing.
Data data() {
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(5);
  return {at::randn({3 * 32 + 18, 8}, generator), at::randint(0, 3, {3 * 32 + 18}, generator)};
}

double distance(torch::nn::Module const& a, torch::nn::Module const& b) {
  double most = 0;
  auto const others = b.named_parameters();
  for (auto const& item : a.named_parameters()) {
    at::Tensor const difference = (item.value() - others[item.key()]).abs().max();
    most = std::max(most, difference.item<double>());
  }
  return most;
}

// ---- DiLoCo by hand -------------------------------------------------------------------------------

constexpr int round_steps = 5;

/// So many processes train up to this step.
struct Leg {
  int processes;
  int until;
};

/// DiLoCo with LibTorch's own optimizers: workers in one loop, one after the other.
Net by_hand(std::vector<Leg> const& legs) {
  torch::manual_seed(3);
  Net global;
  Data const all = data();
  std::vector<at::Tensor> const weights = global->parameters();
  torch::optim::SGD outer(weights, torch::optim::SGDOptions(0.7).momentum(0.9).nesterov(true));
  struct Worker {
    Net net;
    std::unique_ptr<torch::optim::AdamW> adam;
    double samples = 0;
  };
  auto const copy = [](Net& to, Net& from) {
    at::NoGradGuard const no_gradients;
    for (std::size_t i = 0; i < to->parameters().size(); ++i) {
      to->parameters()[i].copy_(from->parameters()[i]);
    }
  };
  std::vector<Worker> workers;
  int step = 0;
  auto const end_round = [&] {
    double samples = 0;
    for (Worker const& each : workers) samples += each.samples;
    {
      at::NoGradGuard const no_gradients;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        at::Tensor mean = at::zeros_like(weights[i]);
        for (Worker& each : workers) {
          mean += each.net->parameters()[i] * (each.samples / samples);
        }
        weights[i].mutable_grad() = weights[i].detach() - mean;
      }
    }
    outer.step();
    for (Worker& each : workers) copy(each.net, global), each.samples = 0;
  };
  std::int64_t at = 0;  // samples of the epoch
  for (Leg const& leg : legs) {
    // Others go on with the moments of process r modulo their number, after an outer step.
    if (!workers.empty() && step % round_steps != 0) end_round();
    std::vector<Worker> next;
    for (int rank = 0; rank < leg.processes; ++rank) {
      Worker worker;
      copy(worker.net, global);
      worker.adam = std::make_unique<torch::optim::AdamW>(
          worker.net->parameters(), torch::optim::AdamWOptions(1e-2).weight_decay(0.01));
      if (!workers.empty()) {
        Worker& from = workers[static_cast<std::size_t>(rank) % workers.size()];
        for (std::size_t i = 0; i < worker.net->parameters().size(); ++i) {
          auto const found =
              from.adam->state().find(from.net->parameters()[i].unsafeGetTensorImpl());
          if (found == from.adam->state().end()) continue;
          auto const& own = static_cast<torch::optim::AdamWParamState const&>(*found->second);
          auto moments = std::make_unique<torch::optim::AdamWParamState>();
          moments->step(own.step());
          moments->exp_avg(own.exp_avg().clone());
          moments->exp_avg_sq(own.exp_avg_sq().clone());
          worker.adam->state()[worker.net->parameters()[i].unsafeGetTensorImpl()] =
              std::move(moments);
        }
      }
      next.push_back(std::move(worker));
    }
    workers = std::move(next);
    int const each = 8 / leg.processes;
    for (; step < leg.until; ++step) {
      if (at == all.x.size(0)) at = 0;
      for (int k = 0; k < 8 && at < all.x.size(0); ++k) {
        Worker& worker = workers[static_cast<std::size_t>(k / each)];
        if (k % each == 0) worker.adam->zero_grad();
        std::int64_t const size = std::min<std::int64_t>(4, all.x.size(0) - at);
        at::Tensor const loss = torch::nn::functional::cross_entropy(
            worker.net(all.x.narrow(0, at, size)), all.y.narrow(0, at, size));
        (loss * static_cast<double>(size)).backward();
        at += size;
        worker.samples += static_cast<double>(size);
        bool const is_last = k % each == each - 1 || at == all.x.size(0);
        if (!is_last) continue;
        double const trained = static_cast<double>((k % each) * 4 + size);
        {
          at::NoGradGuard const no_gradients;
          for (at::Tensor const& parameter : worker.net->parameters()) {
            if (parameter.grad().defined()) parameter.mutable_grad().div_(trained);
          }
        }
        torch::nn::utils::clip_grad_norm_(worker.net->parameters(), 0.5);
        worker.adam->step();
      }
      if ((step + 1) % round_steps == 0) end_round();
    }
  }
  if (step % round_steps != 0) end_round();
  return global;
}

/// Ends the run after a step, in all processes.
struct StopAt {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.StopAt";
    static constexpr bool agreed_verdicts = true;
  };
  using listens = fr::list<fr::on::step>;
  using properties = fr::list<fr::property::knows_ranks>;
  std::uint64_t step = 0;
  struct State {
    using transient = void;
    explicit State(StopAt const& settings) : step(settings.step) {}
    fr::flow on_step(fr::Step& phase) const {
      return phase.counters().step == step ? fr::flow::stop : fr::flow::proceed;
    }
    std::uint64_t step;
  };
};

std::string number(char const* name, double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%s %a, ", name, value);
  return text;
}

/// Trains in a folder, until a notice or a stop; a later start goes on.
std::string train_in(std::string const& folder, std::vector<Leg> const& expected, double dropout,
                     std::uint64_t stop) {
  torch::manual_seed(3);
  Net net;
  net->drop->options.p(dropout);
  Data const all = data();
  bool const by_hand_too = !expected.empty();
  fr::TensorDataset train(all.x, all.y, {.batch = 4, .shuffle = false});
  fr::TensorDataset valid(all.x, all.y, {.batch = 16, .shuffle = false});
  fr::Trainer trainer{
      net,
      fr::CrossEntropy{},
      fr::Settings{.run_dir = folder, .epochs = 3},
      fr::Optimize<fr::AdamW>{.lr = 1e-2},
      fr::Accumulate<8>{},
      fr::ClipNorm<0.5>{},
      fr::Validate<fr::Every<1>, fr::Accuracy>{},
      fr::Average<fr::Ema<0.9>>{
          .validate = false, .at_end = by_hand_too ? fr::Weights::trained : fr::Weights::averaged},
      fr::Checkpoint<fr::Every<2>, fr::KeepBest<fr::WatchLoss>, fr::Async>{},
      support::Notice::of_environment(),
      StopAt{.step = stop},
      fr::Replicate<fr::LocalSteps<round_steps>>{}};
  fr::Report const report = trainer.fit(train, valid);
  std::string text = "exit " + std::to_string(report.exit_code()) + ", " +
                     std::to_string(report.steps) + " steps, ";
  if (by_hand_too) {
    // What the module has, and the checkpoint of the end.
    Net const same = by_hand(expected);
    Net saved;
    std::string const newest = folder + "/checkpoints";
    std::filesystem::path last;
    for (auto const& each : std::filesystem::directory_iterator(newest)) {
      if (last.empty() || each.path() > last) last = each.path();
    }
    fr::load_weights(saved, last / "model.safetensors");
    text += number("distance", distance(*net, *same)) + number("saved", distance(*net, *saved));
    // Validations within a round have the weights of the last outer step.
    Net shared = by_hand({{expected.front().processes, round_steps}});
    double loss = 0;
    for (std::int64_t at = 0; at < all.x.size(0); at += 16) {
      std::int64_t const size = std::min<std::int64_t>(16, all.x.size(0) - at);
      loss += torch::nn::functional::cross_entropy(shared(all.x.narrow(0, at, size)),
                                                   all.y.narrow(0, at, size))
                  .item<double>() *
              static_cast<double>(size) / static_cast<double>(all.x.size(0));
    }
    double most = 0;
    for (fr::Validation const& each : report.validations) {
      if (each.step < round_steps || each.step >= 7) continue;
      most = std::max(most, std::abs(each.metrics["loss"] - loss));
    }
    return text + number("validated", most);
  }
  text += number("loss", report.train_loss);
  for (fr::Validation const& each : report.validations) {
    text += number("loss", each.metrics["loss"]) + number("accuracy", each.metrics["accuracy"]);
  }
  return text + fr::module_identity(*net);
}

// ---- small recipes ----------------------------------------------------------------------------------

/// One or two layers, of a type for all small recipes.
struct SmallImpl : torch::nn::Module {
  torch::nn::Linear first;
  torch::nn::Linear last{nullptr};
  torch::nn::Dropout drop{register_module("drop", torch::nn::Dropout(0.0))};
  explicit SmallImpl(std::int64_t inputs, std::int64_t hidden = 0)
      : first(register_module("first", torch::nn::Linear(inputs, hidden == 0 ? 1 : hidden))) {
    if (hidden != 0) last = register_module("last", torch::nn::Linear(hidden, 1));
  }
  torch::Tensor forward(torch::Tensor const& x) {
    if (x.max().item<double>() > 1e6) throw std::runtime_error("a damaged sample");
    torch::Tensor const y = first(drop(x));
    if (last) return last(y);
    // Infinite gradients of a finite loss.
    return x.max().item<double>() > 50 ? y + (y * 0).sqrt() * 0 : y;
  }
};
TORCH_MODULE(Small);

struct Squares {
  at::Tensor operator()(Small& net, fr::Batch const& batch) const {
    return (net(batch.data).squeeze(1) - batch.target).square().mean();
  }
};

/// Bytes that this process has sent over all of its TCP connections, as the kernel counts them.
std::uint64_t bytes_sent() {
  std::uint64_t all = 0;
  for (int file = 0; file < 1024; ++file) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(file, IPPROTO_TCP, TCP_INFO, &info, &size) == 0) all += info.tcpi_bytes_acked;
  }
  return all;
}

struct SmallRun {
  double lr = 0.25;
  double momentum = 0.0;
  std::uint64_t epochs = 1;
  bool validates = false;  ///< after each step, besides the end of each epoch
};

struct ValidateSteps {
  using properties = fr::list<fr::property::knows_ranks>;
  bool validates = false;
  fr::flow operator()(fr::Step& step) const {
    return validates ? step.validate() : fr::flow::proceed;
  }
};

template <class Replicate>
fr::Report fit(Small& net, Data const& all, Replicate const& replicate, SmallRun const& settings) {
  fr::TensorDataset train(all.x, all.y, {.batch = 2, .shuffle = false});
  fr::TensorDataset valid(all.x, all.y, {.batch = 64, .shuffle = false});
  fr::Trainer trainer{net,
                      Squares{},
                      fr::Settings{.epochs = settings.epochs},
                      fr::Optimize<fr::SGD>{.lr = settings.lr, .momentum = settings.momentum},
                      fr::Accumulate<8>{},
                      fr::SkipNonFinite{},
                      fr::on_step(ValidateSteps{settings.validates}),
                      replicate};
  return trainer.fit(train, valid);
}

template <class Replicate>
std::string small(std::string_view what, Replicate const& replicate) {
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(7);
  torch::manual_seed(3);
  if (what == "exact") {
    // Products of -1, 0 and 1 and sums over powers of two: 53 bits hold all of it.
    Small net(2);
    net->to(torch::kDouble);
    {
      at::NoGradGuard const no_gradients;
      net->first->weight.fill_(0.5), net->first->bias.fill_(-1);
    }
    Data const all{at::randint(-1, 2, {16, 2}, generator).to(at::kDouble),
                   at::randint(-1, 2, {16}, generator).to(at::kDouble)};
    fr::Report const report = fit(net, all, replicate, {.epochs = 6});
    std::string text = std::to_string(report.steps) + " steps, " +
                       number("loss", report.train_loss) + fr::module_identity(*net);
    // Any numbers, and a last window of 3 of 8 micro-batches.
    Small other(2);
    other->drop->options.p(0.3);
    Data const rest{at::randn({5 * 16 + 6, 2}, generator), at::randn({5 * 16 + 6}, generator)};
    fr::Report const end = fit(other, rest, replicate, {.lr = 0.05, .epochs = 3});
    text += ", near " + std::to_string(end.steps) + " steps, " + number("loss", end.train_loss);
    for (std::int64_t i = 0; i < 2; ++i) {
      text += number(i == 0 ? "first" : "second", other->first->weight[0][i].item<double>());
    }
    return text + number("bias", other->first->bias.item<double>());
  }
  if (what == "skip") {
    Small net(2);
    net->drop->options.p(0.3);
    Data all{at::randn({5 * 16, 2}, generator), at::randn({5 * 16}, generator)};
    all.x[2 * 16 + 13].fill_(100);
    fr::Report const report = fit(net, all, replicate, {.lr = 0.01, .validates = true});
    // The epoch has a step less than was known before: the validation at its end has the final weights.
    net->eval();
    double const loss = Squares{}(net, {all.x, all.y}).item<double>();
    double const off = std::abs(report.last()["loss"] / loss - 1);
    return std::to_string(report.steps) + " steps, " + std::to_string(report.non_finite_windows) +
           " skipped, " + (off < 1e-5 ? "validated, " : number("off", off)) +
           fr::module_identity(*net);
  }
  if (what == "alone") {
    Small net(2);
    net->drop->options.p(0.3);
    Data const all{at::randn({10 * 16 + 6, 2}, generator), at::randn({10 * 16 + 6}, generator)};
    fr::Report const report = fit(net, all, replicate, {.lr = 0.01, .momentum = 0.9});
    return number("loss", report.train_loss) + fr::module_identity(*net);
  }
  // 1 MB of weights, 64 steps.
  Small net(64, 4000);
  Data const all{at::randn({64 * 16, 64}, generator), at::randn({64 * 16}, generator)};
  std::uint64_t const before = bytes_sent();
  fr::Report const report = fit(net, all, replicate, {.lr = 1e-4});
  std::uint64_t const sent = bytes_sent() - before;
  // A rank that ends closes its connections, and the others then do not find theirs.
  fr::detail::communicator_of_environment()->gather(at::zeros({1}), "the end of the test");
  return std::to_string(report.steps) + " steps, sent " + std::to_string(sent);
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  std::string const name = rank_processes::job();
  std::string const way = name.substr(0, name.find(' '));
  std::string const what = name.substr(name.find(' ') + 1);
  if (way == "plain") {
    rank_processes::answer(small(what, fr::Replicate<fr::Exact>{}));
  } else if (way == "mean1") {
    rank_processes::answer(small(what, fr::Replicate<fr::LocalSteps<1>, fr::Outer<fr::SGD>>{}));
  } else if (way == "mean4") {
    rank_processes::answer(small(what, fr::Replicate<fr::LocalSteps<4>, fr::Outer<fr::SGD>>{}));
  } else if (way == "local64") {
    rank_processes::answer(small(what, fr::Replicate<fr::LocalSteps<64>>{}));
  } else {
    std::string const folder = std::getenv("FRUGAL_TEST_FOLDER");
    std::vector<Leg> expected;
    std::uint64_t stop = 0;
    if (what == "hand") expected = {{4, 12}};
    if (what == "fewer") expected = {{4, 7}, {2, 12}};
    if (what == "more") expected = {{2, 3}, {4, 12}};
    if (what == "stopped") expected = {{4, 6}}, stop = 6;
    rank_processes::answer(train_in(folder, expected, what == "resumed" ? 0.2 : 0.0, stop));
  }
}

std::vector<std::string> run_in(std::filesystem::path const& folder, std::string const& what,
                                int size, int notice_rank, int notice_step) {
  return run("train " + what, size,
             support::Notice::environment(notice_rank, notice_step,
                                          {"FRUGAL_TEST_FOLDER=" + folder.string()}));
}

double value_in(std::string const& text, std::string const& name) {
  std::size_t const at = text.find(name + " ");
  REQUIRE(at != std::string::npos);
  return std::strtod(text.c_str() + at + name.size(), nullptr);
}

void check_by_hand(std::vector<std::string> const& results) {
  for (std::string const& result : results) {
    CAPTURE(result);
    CHECK(value_in(result, "distance") < 1e-6);
    CHECK(value_in(result, "saved") == 0);
  }
}
void check_validations(std::vector<std::string> const& results) {
  for (std::string const& result : results) {
    CAPTURE(result);
    CHECK(value_in(result, "validated") < 1e-5);
  }
}

TEST_CASE(
    "four processes as DiLoCo by hand, with AdamW, clipping and a window that is shared unevenly") {
  support::TemporaryFolder const folder;
  std::vector<std::string> const results = run_in(folder / "run", "hand", 4, 0, 0);
  check_by_hand(results);
  check_validations(results);
}

TEST_CASE("a run that a policy stops ends its round, and saves that") {
  support::TemporaryFolder const folder;
  std::vector<std::string> const results = run_in(folder / "run", "stopped", 4, 0, 0);
  CHECK(results.front().find("exit 0, 6 steps") != std::string::npos);
  check_by_hand(results);
}

TEST_CASE("another number of processes goes on after an outer step") {
  struct Change {
    char const* what;
    int from, to, step;
  };
  for (Change const& each : {Change{"fewer", 4, 2, 7}, Change{"more", 2, 4, 3}}) {
    CAPTURE(each.what);
    support::TemporaryFolder const folder;
    std::string const ended = "exit 75, " + std::to_string(each.step) + " steps";
    for (std::string const& result : run_in(folder / "run", "resumed0", each.from, 1, each.step)) {
      CHECK(result.find(ended) != std::string::npos);
    }
    check_by_hand(run_in(folder / "run", each.what, each.to, 0, 0));
  }
}

TEST_CASE(
    "preempted within rounds and at their ends, and resumed by as many processes: the same bits") {
  support::TemporaryFolder const folder;
  std::vector<std::string> const whole = run_in(folder / "whole", "resumed", 4, 0, 0);
  CHECK(whole.front().find("exit 0, 12 steps") != std::string::npos);
  for (std::string const& result : whole) CHECK(result == whole.front());
  std::filesystem::path const run = folder / "run";
  int rank = 3;
  for (int const step : {2, 7, 10}) {
    CAPTURE(step);
    for (std::string const& result : run_in(run, "resumed", 4, rank, step)) {
      CAPTURE(result);
      CHECK(result.find("exit 75, " + std::to_string(step) + " steps") != std::string::npos);
    }
    --rank;
  }
  for (std::string const& result : run_in(run, "resumed", 4, 0, 0)) CHECK(result == whole.front());
}

TEST_CASE(
    "LocalSteps<1> with Outer<SGD> is Replicate<Exact>, to the bit where nothing is rounded") {
  std::vector<std::string> const plain = run("plain exact", 4);
  CHECK(plain.front().find("6 steps") != std::string::npos);
  std::size_t const near = plain.front().find("near 18 steps");
  REQUIRE(near != std::string::npos);
  for (std::string const& result : run("mean1 exact", 4)) {
    CHECK(result.substr(0, near) == plain.front().substr(0, near));
    for (std::string const name : {"first", "second", "bias"}) {
      double const expected = value_in(plain.front(), name);
      CHECK(std::abs(value_in(result, name) - expected) < 1e-6);
    }
  }
}

TEST_CASE("one process with Outer<SGD> is Replicate<Exact> for any H, to the bit") {
  std::string const plain = run("plain alone", 1).front();
  CHECK(run("mean4 alone", 1).front() == plain);
}

TEST_CASE("a window with gradients that are not finite in one process is skipped by all") {
  std::vector<std::string> const results = run("local64 skip", 4);
  CHECK(results.front().find("4 steps, 1 skipped, validated") != std::string::npos);
  for (std::string const& result : results) CHECK(result == results.front());
}

TEST_CASE("64 local steps send less than a fiftieth of the bytes") {
  std::vector<std::string> const plain = run("plain bytes", 4);
  std::vector<std::string> const local = run("local64 bytes", 4);
  for (std::size_t rank = 0; rank < plain.size(); ++rank) {
    double const all = value_in(plain[rank], "sent");
    double const some = value_in(local[rank], "sent");
    CAPTURE(all);
    CAPTURE(some);
    // 2 (W - 1) / W of 264,001 weights of 4 bytes, 64 times and once.
    CHECK(all > 64 * 1.5 * 264001 * 4 * 0.99);
    CHECK(some > 1.5 * 264001 * 4 * 0.99);
    CHECK(some < all / 50);
  }
}

// ---- its parts ------------------------------------------------------------------------------------

/// Texts of the errors of four ranks, which train with the outer optimizers that `outer(rank)` gives.
template <class Outer>
std::vector<std::string> refusals(Outer const& outer) {
  return ranks::run(4, [&](std::shared_ptr<fr::Communicator> const& with) {
    Small net(2);
    {
      at::NoGradGuard const no_gradients;
      net->first->weight.fill_(0.5), net->first->bias.fill_(0);
    }
    Data const all{at::ones({16, 2}), at::ones({16})};
    static_cast<void>(
        fit(net, all, fr::Replicate<fr::LocalSteps<64>>{.with = with, .outer = outer(with->rank())},
            {}));
  });
}

TEST_CASE("outer settings that are out of range, or differ between processes, are refused") {
  for (std::string const& text : refusals([](int) { return fr::Outer<fr::Nesterov>{.lr = -1}; })) {
    CHECK(text.find("Outer<Nesterov>") != std::string::npos);
  }
  for (std::string const& text :
       refusals([](int) { return fr::Outer<fr::Nesterov>{.momentum = 1}; })) {
    CHECK(text.find("momentum is 1") != std::string::npos);
  }
  for (std::string const& text :
       refusals([](int rank) { return fr::Outer<fr::Nesterov>{.lr = rank == 2 ? 0.5 : 0.7}; })) {
    CHECK(text.find("the outer lr of rank 2 is '0.5'") != std::string::npos);
  }
}

TEST_CASE("an error within a round leaves the weights of the last outer step") {
  std::vector<at::Tensor> weights(4);
  std::vector<std::string> const errors =
      ranks::run(4, [&](std::shared_ptr<fr::Communicator> const& with) {
        Small net(2);
        {
          at::NoGradGuard const no_gradients;
          net->first->weight.fill_(0.5), net->first->bias.fill_(0);
        }
        weights[static_cast<std::size_t>(with->rank())] = net->first->weight;
        Data const all{at::ones({4 * 16, 2}), at::ones({4 * 16})};
        all.x[2 * 16 + 13].fill_(1e7);
        static_cast<void>(fit(net, all, fr::Replicate<fr::LocalSteps<64>>{.with = with}, {}));
      });
  for (std::string const& error : errors) {
    CHECK(error.find("a damaged sample") != std::string::npos);
  }
  for (at::Tensor const& each : weights) CHECK(each.eq(0.5).all().item<bool>());
}

enum class Shared { None, Weights, Momentum };

/// What is shared changes after step 5, in this process alone.
struct Drift {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "test.Drift";
    static constexpr bool agreed_verdicts = true;
  };
  using listens = fr::list<fr::on::step>;
  using properties = fr::list<fr::property::knows_ranks>;
  Shared what = Shared::None;
  at::Tensor weight{};  ///< one of the shared ones
  struct State {
    using transient = void;
    explicit State(Drift const& drift) : what(drift.what), weight(drift.weight) {}
    void on_step(fr::Step& phase) const {
      if (phase.counters().step != 5) return;
      at::NoGradGuard const no_gradients;
      if (what == Shared::Weights) weight.add_(1);
      if (what == Shared::Momentum) momentum(phase.run_state()).add_(1);
    }
    static at::Tensor momentum(fr::RunState const& run) {
      fr::StateDict state;
      fr::StateWriter writer(state, fr::CopyTarget::live);
      run.links.policies().persist_one(writer, fr::kinds::replicate::name);
      for (auto const& [path, tensor] : state.tensors) {
        if (path.find("momentum/") != std::string::npos) return tensor;
      }
      throw std::logic_error("there is no momentum");
    }
    Shared what;
    at::Tensor weight;
  };
};

TEST_CASE("copies that come apart are found at the end of the round after a checkpoint") {
  for (Shared const drifts : {Shared::None, Shared::Weights, Shared::Momentum}) {
    support::TemporaryFolder const folder;
    std::vector<std::string> const errors =
        ranks::run(2, [&](std::shared_ptr<fr::Communicator> const& with) {
          Net net = [] {
            // The threads have one generator: each draws from it alone.
            static std::mutex drawing;
            std::lock_guard const alone(drawing);
            torch::manual_seed(3);
            return Net();
          }();
          Data const all = data();
          fr::TensorDataset train(all.x, all.y, {.batch = 4, .shuffle = false});
          Shared const here = with->rank() == 1 ? drifts : Shared::None;
          fr::Trainer trainer{net,
                              fr::CrossEntropy{},
                              fr::Settings{.run_dir = folder / "run", .epochs = 4},
                              fr::Optimize<fr::AdamW>{.lr = 1e-2},
                              fr::Accumulate<8>{},
                              fr::Checkpoint<fr::Every<7>>{},
                              Drift{.what = here, .weight = net->in->weight},
                              fr::Replicate<fr::LocalSteps<4>>{.with = with}};
          static_cast<void>(trainer.fit(train));
        });
    std::string const changed =
        drifts == Shared::Weights ? "weights" : "momentum of the outer steps";
    for (std::string const& error : errors) {
      CAPTURE(error);
      if (drifts == Shared::None) {
        CHECK(error == "");
        continue;
      }
      CHECK(error.find("the " + changed + " of rank 1 and rank 0 differ since step 0") !=
            std::string::npos);
      CHECK(error.find("the checkpoint of step 7 has what the first process had") !=
            std::string::npos);
    }
  }
}

TEST_CASE("a recipe that would keep another run in each process is refused") {
  using Local = fr::Replicate<fr::LocalSteps<64>>;
  using Sgd = fr::Optimize<fr::SGD>;
  CHECK(fr::Recipe<Sgd, Local>::legal);
  CHECK(fr::Recipe<Sgd, Local, fr::Rollback<>>::fault ==
        fr::detail::local_steps_and_rollback::text);
  CHECK(fr::Recipe<Sgd, Local, fr::Unfreeze<fr::Where<"first.*">>>::fault ==
        fr::detail::local_steps_and_unfreeze::text);
}

TEST_CASE("Outer<SGD> goes a part of the way to the mean, and all of it with the rate 1") {
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(5);
  at::Tensor const mean = at::randn({1000}, generator);
  for (at::ScalarType const type : {at::kFloat, at::kBFloat16}) {
    at::Tensor const weights = at::randn({1000}, generator).mul_(100).to(type);
    at::Tensor const half = (weights.to(at::kFloat) + mean) / 2;
    at::Tensor const moved = weights.clone();
    fr::detail::OuterOptimizer<fr::Outer<fr::SGD>>({.lr = 0.5}).step({moved}, {mean});
    CHECK(at::allclose(moved.to(at::kFloat), half, type == at::kFloat ? 1e-6 : 1e-2));
    fr::detail::OuterOptimizer<fr::Outer<fr::SGD>>({.lr = 1}).step({weights}, {mean});
    CHECK(at::equal(weights, mean.to(type)));
  }
}

TEST_CASE("the shared and the own weights change places") {
  torch::nn::Linear net(3, 2);
  net->bias.requires_grad_(false);
  fr::detail::LocalWeights weights;
  fr::Parameters const parameters = fr::Parameters::of(*net);
  weights.begin(parameters);
  CHECK(weights.names() == std::vector<std::string>{"weight"});
  void const* const memory = net->weight.data_ptr();
  at::Tensor const shared = net->weight.detach().clone();
  weights.put_own(/*follows=*/true);
  CHECK(at::equal(net->weight, shared));
  {
    at::NoGradGuard const no_gradients;
    net->weight.fill_(7);
  }
  weights.put_shared();
  CHECK(at::equal(net->weight, shared));
  CHECK(net->weight.data_ptr() == memory);
  weights.put_own(/*follows=*/false);
  CHECK(at::equal(net->weight, at::full_like(shared, 7)));
  weights.put_shared();
  weights.put_own(/*follows=*/true);
  CHECK(at::equal(net->weight, shared));
  weights.put_shared();

  CHECK_NOTHROW(weights.require_same(parameters));
  net->bias.requires_grad_(true);
  CHECK_THROWS_AS(weights.require_same(parameters), fr::ModuleError);
  net->bias.requires_grad_(false);
  weights.put_own(true);
  net->weight.set_data(at::zeros({2, 3}));
  CHECK_THROWS_AS(weights.put_shared(), fr::ModuleError);

  torch::nn::Linear other(3, 2);
  torch::nn::Linear tied(3, 2);
  tied->weight.set_data(other->weight.detach());
  torch::nn::Sequential both(other, tied);
  fr::detail::LocalWeights refused;
  CHECK_THROWS_AS(refused.begin(fr::Parameters::of(*both)), fr::ModuleError);
}

/// What a rank holds: numbers of all kinds, and tensors that other ranks lack.
fr::StateDict row_of(std::size_t rank) {
  fr::StateDict row;
  row.values["truth"] = rank % 2 == 0;
  row.values["count"] = std::uint64_t{1} << (40 + rank);
  row.values["below"] = std::int64_t{-3};
  row.values["real"] = 0.1 * static_cast<double>(rank);
  row.values["nan"] = std::numeric_limits<double>::quiet_NaN();
  row.values["text"] = std::string("a\n\"\\ ") + static_cast<char>(0xff);
  row.values["absent"] = {};
  auto const put = [&](char const* name, at::Tensor const& tensor) {
    row.values[name] = std::string("tensor");
    row.tensors[name] = tensor;
  };
  auto const seed = static_cast<std::int64_t>(rank);
  put("weights/a.b", (at::arange(12) * (seed + 1)).to(at::kFloat).view({3, 4}));
  put("half", at::full({5}, seed, at::kBFloat16));
  put("scalar", at::full({}, seed, at::kDouble));
  put("empty", at::empty({0, 3}, at::kLong));
  put("turned", at::arange(6).add(seed).view({2, 3}).t());
  if (rank == 2) put("of one rank", at::arange(3) + 100);
  return row;
}

TEST_CASE("the first process gets what the others hold, to the bit") {
  std::vector<fr::StateDict> rows(4);
  CHECK(ranks::none(ranks::run(4, [&](std::shared_ptr<fr::Communicator> const& all) {
    bool const first = all->rank() == 0;
    fr::detail::collect_rows(
        *all, row_of(static_cast<std::size_t>(all->rank())), {}, {},
        [&](std::size_t rank, std::string const& path, fr::StateDict::Value const& value) {
          CHECK(first);
          rows[rank].values[path] = value;
        },
        [&](std::size_t rank, std::string const& path, at::Tensor const& tensor) {
          CHECK(first);
          CHECK_FALSE(rows[rank].values.contains(path));
          rows[rank].values[path] = std::string("tensor");
          rows[rank].tensors[path] = tensor;
        });
  })));
  CHECK(rows[0].values.empty());
  for (std::size_t rank = 1; rank < 4; ++rank) CHECK(rows[rank] == row_of(rank));
}

/// Bytes of this process that only memory or swap holds.
std::int64_t anonymous_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8)) << 10;
  }
  return -1;
}

TEST_CASE("a tensor over a file without a name takes no memory of its own") {
  support::TemporaryFolder const folder;
  constexpr std::int64_t bytes = 64 << 20;
  std::int64_t const before = anonymous_bytes();
  REQUIRE(before > 0);
  at::Tensor const tensor = fr::detail::scratch_tensor(folder.path(), {bytes / 16, 2}, at::kDouble);
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK(tensor.is_contiguous());
  tensor.fill_(3);
  CHECK(anonymous_bytes() - before < bytes / 8);
  CHECK(tensor.eq(3).all().item<bool>());
  // As part of a save it is not copied.
  fr::StateDict memory;
  fr::StateWriter writer(memory, fr::CopyTarget::on_host);
  writer.scope("a", [&](auto& inner) { inner.give("b", tensor); });
  CHECK(memory.tensors.at("a/b").is_same(tensor));
  CHECK(std::get<std::string>(memory.values.at("a/b")) == "tensor");

  // Plain memory on a full disk, or without a folder.
  support::FullDisk const full(1 << 20);
  for (std::filesystem::path const& where :
       {folder.path(), folder / "missing", std::filesystem::path()}) {
    at::Tensor const plain = fr::detail::scratch_tensor(where, {1 << 19}, at::kFloat);
    CHECK(plain.fill_(2).sum().item<float>() == 1 << 20);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("weights of one process that are not finite are saved by none") {
  std::vector<std::string> const errors =
      ranks::run(4, [](std::shared_ptr<fr::Communicator> const& all) {
        fr::StateDict row = row_of(static_cast<std::size_t>(all->rank()));
        if (all->rank() == 2) {
          row.tensors["weights/a.b"][1][1] = std::numeric_limits<float>::infinity();
        }
        auto const none = [](std::size_t, std::string const&, auto const&) { FAIL("not reached"); };
        CHECK_THROWS_AS(fr::detail::collect_rows(*all, row, {.step = 7}, {}, none, none),
                        fr::NonFiniteWeightsError);
        fr::detail::collect_rows(*all, row, {.step = 7}, {}, none, none);
      });
  for (std::string const& error : errors) {
    CHECK(error.find("rank 2, tensor 'weights/a.b', step 7") != std::string::npos);
  }
}

}  // namespace frugal_test::cluster_replicate_local

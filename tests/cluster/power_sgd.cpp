// SPDX-License-Identifier: Apache-2.0
// needs: cluster
#include <doctest/doctest.h>

#include <frugal/cluster.hpp>
#include <frugal/frugal.hpp>

#include "support/files.hpp"
#include "support/notice.hpp"
#include "support/rank_processes.hpp"
#include "support/ranks.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

namespace frugal_test::cluster_power_sgd {

namespace fr = frugal;
namespace ranks = support::ranks;
namespace rank_processes = support::rank_processes;

constexpr std::int64_t batch = 4, window = 8, width = 24;
constexpr double rate = 0.1;

/// Matrices of one shape and of several, one of four dimensions whose memory is in another order, and
/// a layer that micro-batches leave out whose first number is negative. A first number of 100 makes the
/// gradients of a bias infinite, of a finite loss, and 200 those of a matrix.
struct NetImpl : torch::nn::Module {
  torch::nn::Conv2d conv{
      register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(6, 40, 3).padding(1)))};
  torch::nn::Linear in{register_module("in", torch::nn::Linear(40, 32))};
  torch::nn::Linear odd{register_module("odd", torch::nn::Linear(32, 32))};
  torch::nn::Linear last{register_module("last", torch::nn::Linear(32, 32))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(32, 3))};

  NetImpl() {
    conv->weight.set_data(conv->weight.detach().contiguous(at::MemoryFormat::ChannelsLast));
  }
  torch::Tensor forward(torch::Tensor const& x) {
    auto const first = x[0][0].item<double>();
    torch::Tensor hidden = in(conv(x.view({-1, 6, 2, 2})).relu().mean({2, 3})).relu();
    if (first >= 0) hidden = hidden + odd(hidden).relu();
    hidden = last(hidden).relu();
    if (first == 100) hidden = hidden + (last->bias * 0).sqrt() * 0;
    if (first == 200) hidden = hidden + (last->weight * 0).sqrt().sum() * 0;
    return out(hidden);
  }
};
TORCH_MODULE(Net);

struct Data {
  at::Tensor x, y;
};
/// The last window has five of eight micro-batches, and one window never takes the odd layer. `bad`
/// puts a window whose gradients are not finite before each.
Data data(bool bad = false) {
  at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(5);
  at::Tensor x = at::randn({3 * window * batch + 18, width}, generator);
  at::Tensor y = x.view({-1, 6, 4}).sum(2).narrow(1, 2, 3).argmax(1);
  x.narrow(0, window * batch, window * batch).select(1, 0).abs_().neg_();
  if (!bad) return {x, y};
  std::vector<at::Tensor> xs, ys;
  for (std::int64_t at = 0; at < x.size(0); at += window * batch) {
    at::Tensor spoiled = x.narrow(0, 0, window * batch).clone();
    // In a micro-batch of the third process.
    spoiled[5 * batch][0] = at == 0 ? std::nan("") : at == window * batch ? 100 : 200;
    std::int64_t const count = std::min(window * batch, x.size(0) - at);
    xs.insert(xs.end(), {spoiled, x.narrow(0, at, count)});
    ys.insert(ys.end(), {y.narrow(0, 0, window * batch), y.narrow(0, at, count)});
  }
  return {at::cat(xs), at::cat(ys)};
}

Net make_net() {
  torch::manual_seed(3);
  return Net();
}

/// Of each parameter a number that any change of it changes.
std::string numbers_of(torch::nn::Module const& net) {
  std::string text;
  for (at::Tensor const& each : net.parameters()) {
    at::Tensor const weights = at::arange(each.numel(), at::kDouble).mul_(0.7).cos_();
    char number[32];
    std::snprintf(number, sizeof number, "%.9f ",
                  each.detach().to(at::kDouble).contiguous().view(-1).dot(weights).item<double>());
    text += number;
  }
  return text;
}

std::string environment(char const* name) {
  char const* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct Job {
  int epochs = 2;
  bool bad = false;
};

/// `numbers | loss, exit code and steps, identity`.
template <class Replicate, class... Policies>
std::string train(Replicate const& replicate, Job const& job, Policies const&... policies) {
  Data const all = data(job.bad);
  Net net = make_net();
  fr::TensorDataset train(all.x, all.y, {.batch = batch, .shuffle = false});
  fr::Trainer trainer{
      net,
      fr::CrossEntropy{},
      fr::Settings{.run_dir = environment("FRUGAL_TEST_FOLDER"), .epochs = job.epochs},
      fr::Optimize<fr::SGD>{.lr = rate, .momentum = 0.9},
      fr::Accumulate<window>{},
      replicate,
      policies...};
  fr::Report const report = trainer.fit(train);
  char text[128];
  std::snprintf(text, sizeof text, "| loss %.9f exit %d, %d steps, %d skipped, ", report.train_loss,
                report.exit_code(), static_cast<int>(report.steps),
                static_cast<int>(report.non_finite_windows));
  return numbers_of(*net) + text + fr::module_identity(*net);
}

fr::PowerSGDSettings settings(std::uint64_t start) {
  return {.start_step = start, .min_compression_rate = 1.5, .seed = 7};
}

TEST_CASE("a rank of a world" * doctest::skip()) {
  std::string const name = rank_processes::job();
  auto const has = [&](char const* word) { return name.find(word) != std::string::npos; };
  Job const job{.epochs = has("long") ? 12 : 2, .bad = has("bad")};
  using Power = fr::Replicate<fr::Ring, fr::Wire<fr::PowerSGD<3>>>;
  if (has("fp16")) {
    fr::Precision<fr::FP16> precision;
    precision.scaling = {.initial = 1024, .growth_interval = has("grows") ? 1 : 1000};
    rank_processes::answer(train(Power{.wire = settings(1)}, job, precision));
    return;
  }
  if (has("shard")) {
    rank_processes::answer(train(
        fr::Replicate<fr::Ring, fr::Wire<fr::PowerSGD<3>>, fr::Shard<fr::States>>{.wire =
                                                                                      settings(1)},
        job, fr::SkipNonFinite{}, fr::ClipNorm<0.5>{}));
    return;
  }
  Power power{.wire = settings(has("late") ? 100 : 1)};
  if (has("without errors")) power.wire.error_feedback = false;
  if (has("cold")) power.wire.warm_start = false;
  if (has("mean")) power.wire.saved_errors = fr::SavedErrors::mean;
  if (has("saved")) {
    fr::Checkpoint<fr::Every<3>> const checkpoint;
    if (has("ring")) {
      rank_processes::answer(
          train(fr::Replicate<fr::Ring>{}, job, checkpoint, support::Notice::of_environment()));
    } else {
      rank_processes::answer(train(power, job, checkpoint, support::Notice::of_environment()));
    }
    return;
  }
  if (has("ring")) {
    rank_processes::answer(train(fr::Replicate<fr::Ring>{}, job));
  } else if (has("clip")) {
    rank_processes::answer(train(power, job, fr::SkipNonFinite{}, fr::ClipNorm<0.5>{}));
  } else {
    rank_processes::answer(train(power, job));
  }
}

std::vector<double> numbers(std::string const& result) {
  std::istringstream in(result.substr(result.find(' ') + 1));
  std::vector<double> all;
  for (double each = 0; in >> each;) all.push_back(each);
  return all;
}
double loss_of(std::string const& result) {
  return std::stod(result.substr(result.find("loss ") + 5));
}
std::string identity_of(std::string const& result) { return result.substr(result.rfind(' ') + 1); }
/// The largest difference.
double apart(std::string const& a, std::vector<double> const& b) {
  std::vector<double> const all = numbers(a);
  REQUIRE(all.size() == b.size());
  REQUIRE(all.size() == 10);
  double most = 0;
  for (std::size_t i = 0; i < all.size(); ++i) most = std::max(most, std::abs(all[i] - b[i]));
  return most;
}

/// What a run has done, once for all cases.
std::vector<std::string> const& run_once(std::string const& name, int size = 4) {
  static std::map<std::string, std::vector<std::string>> results;
  auto& found = results[name + " of " + std::to_string(size)];
  if (found.empty()) found = rank_processes::run(name, size);
  for (std::string const& result : found) CHECK(result == found.front());
  return found;
}

/// The paper's algorithm, with the random factors of numpy's and LibTorch's generators.
struct Reference {
  bool errors = true;
  bool warm = true;
  int until = 1000;  ///< the step from which on nothing is compressed

  static constexpr std::int64_t columns = 3, processes = 4;
  static constexpr int start = 1;
  // Of numpy.random.RandomState(7).randint(10**9), call by call.
  static constexpr std::array<std::uint64_t, 7> seeds{327741615, 976413892, 128500249, 296233462,
                                                      809211459, 980209875, 959775639};
  // last, odd, in, conv: factors are drawn from the last matrix on, those of one shape together.
  static constexpr std::array<std::size_t, 4> matrices{6, 4, 2, 0};

  Data const all = data();
  Net net = make_net();
  std::vector<at::Tensor> const parameters = net->parameters();
  std::vector<at::Tensor> momenta = std::vector<at::Tensor>(parameters.size());
  std::vector<at::Tensor> factors = momenta;
  std::vector<std::vector<at::Tensor>> kept{parameters.size(), std::vector<at::Tensor>(processes)};
  std::size_t draws = 0;
  int step = 0;

  // Of four dimensions the memory has the channels last.
  static at::Tensor matrix_of(at::Tensor const& tensor) {
    return (tensor.dim() == 4 ? tensor.permute({0, 2, 3, 1}) : tensor)
        .reshape({tensor.size(0), -1})
        .clone();
  }
  static at::Tensor as(at::Tensor const& parameter, at::Tensor const& matrix) {
    if (parameter.dim() != 4) return matrix;
    return matrix.view({parameter.size(0), 3, 3, 6}).permute({0, 3, 1, 2});
  }

  void draw() {
    at::Generator const generator = at::make_generator<at::CPUGeneratorImpl>(seeds.at(draws++));
    for (std::size_t const i : matrices) {
      factors[i] = at::randn({parameters[i].numel() / parameters[i].size(0), columns}, generator,
                             at::TensorOptions(at::kFloat));
    }
  }

  /// The gradient that comes out of those of the processes.
  at::Tensor compressed(std::size_t i, std::vector<at::Tensor> const& means) {
    std::vector<at::Tensor> xs;
    for (std::size_t rank = 0; rank < means.size(); ++rank) {
      xs.push_back(matrix_of(means[rank]));
      if (kept[i][rank].defined()) xs.back() += kept[i][rank];
    }
    at::Tensor const q = std::get<0>(at::linalg_qr(factors[i]));
    at::Tensor const x = at::stack(xs);
    at::Tensor const p = std::get<0>(at::linalg_qr(at::matmul(x, q).sum(0)));
    factors[i] = at::matmul(x.mean(0).t(), p);
    at::Tensor const product = at::matmul(p, factors[i].t());
    for (std::size_t rank = 0; errors && rank < xs.size(); ++rank) {
      kept[i][rank] = xs[rank] - product;
    }
    return as(parameters[i], product);
  }

  void train(std::int64_t begin) {
    std::int64_t const samples = std::min(window * batch, all.x.size(0) - begin);
    // Of each parameter and process: its part of the mean, times the number of processes.
    auto means = std::vector(parameters.size(), std::vector<at::Tensor>(processes));
    std::vector<bool> has(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      for (at::Tensor& each : means[i]) each = at::zeros_like(parameters[i]);
    }
    for (std::int64_t k = 0; k * batch < samples; ++k) {
      std::int64_t const count = std::min(batch, samples - k * batch);
      net->zero_grad();
      torch::nn::functional::cross_entropy(net(all.x.narrow(0, begin + k * batch, count)),
                                           all.y.narrow(0, begin + k * batch, count))
          .backward();
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (!parameters[i].grad().defined()) continue;
        means[i][static_cast<std::size_t>(k * processes / window)] +=
            parameters[i].grad() *
            (static_cast<double>(count * processes) / static_cast<double>(samples));
        has[i] = true;
      }
    }
    at::NoGradGuard const no_gradients;
    bool const compresses = step >= start && step < until;
    if (compresses && (draws == 0 || !warm)) draw();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (!has[i]) continue;
      bool const is_matrix = std::ranges::find(matrices, i) != matrices.end();
      at::Tensor gradient = at::stack(means[i]).mean(0);
      if (compresses && is_matrix) {
        gradient = compressed(i, means[i]);
      } else if (kept[i].front().defined()) {
        gradient += as(parameters[i], at::stack(kept[i]).mean(0));
        kept[i].assign(processes, {});
      }
      momenta[i] = momenta[i].defined() ? momenta[i] * 0.9 + gradient : gradient.clone();
      parameters[i].sub_(momenta[i], rate);
    }
    ++step;
  }

  std::vector<double> run() {
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (std::int64_t begin = 0; begin < all.x.size(0); begin += window * batch) train(begin);
    }
    return numbers("RESULT " + numbers_of(*net));
  }
};

TEST_CASE("four processes train what the paper's algorithm does, step by step") {
  std::vector<double> const expected = Reference{}.run();
  std::vector<double> const other = Reference{.errors = false, .warm = false}.run();
  CHECK(apart(run_once("power").front(), expected) < 1e-6);
  CHECK(apart(run_once("power, cold, without errors").front(), other) < 1e-6);
  CHECK(apart(run_once("power").front(), other) > 1e-3);
}

TEST_CASE("more steps come as far as gradients that are not compressed") {
  double const whole = loss_of(run_once("ring, long", 1).front());
  double const compressed = loss_of(run_once("power, long").front());
  CHECK(loss_of(run_once("power").front()) > 0.8);
  CHECK(whole < 0.3);
  CHECK(compressed < 0.3);
}

TEST_CASE("Shard has the same bits") {
  CHECK(run_once("power, shard").front() == run_once("power, clip").front());
}

TEST_CASE("windows that are skipped leave the errors as they were") {
  std::string const result = run_once("power, clip, bad").front();
  CHECK(result.find("8 steps, 8 skipped") != std::string::npos);
  CHECK(identity_of(result) == identity_of(run_once("power, clip").front()));
}

TEST_CASE("errors mean the same whatever the scale of FP16's losses") {
  std::string const still = run_once("fp16").front();
  std::string const grows = run_once("fp16, grows").front();
  CHECK(still.find("8 steps, 0 skipped") != std::string::npos);
  CHECK(grows.find("8 steps, 0 skipped") != std::string::npos);
  // Powers of two change no digit.
  CHECK(apart(grows, numbers(still)) < 1e-4);
}

std::string run_in(std::filesystem::path const& folder, std::string const& name, int size,
                   int notice_rank = 0, int notice_step = 0) {
  std::vector<std::string> const results =
      rank_processes::run(name, size,
                          support::Notice::environment(notice_rank, notice_step,
                                                       {"FRUGAL_TEST_FOLDER=" + folder.string()}));
  for (std::string const& result : results) CHECK(result == results.front());
  return results.front();
}

TEST_CASE("a run goes on") {
  static support::TemporaryFolder const folder;  // of all subcases
  // After three steps of eight, each time from the same checkpoint.
  auto const at_three = [&](std::string const& name) {
    if (!std::filesystem::exists(folder / name)) {
      std::string const made = run_in(folder / name, name, 4, 3, 3);
      CHECK(made.find("exit 75, 3 steps") != std::string::npos);
    }
    return [name](char const* copy) {
      std::filesystem::path const to = folder / (name + copy);
      std::filesystem::copy(folder / name, to, std::filesystem::copy_options::recursive);
      return to;
    };
  };
  std::vector<double> const expected = Reference{}.run();
  auto const start = at_three("power, saved");
  SUBCASE("with as many processes in the same bits") {
    CHECK(identity_of(run_in(start("bits"), "power, saved", 4)) ==
          identity_of(run_once("power").front()));
    auto const cold = at_three("power, cold, without errors, saved");
    CHECK(identity_of(run_in(cold("bits"), "power, cold, without errors, saved", 4)) ==
          identity_of(run_once("power, cold, without errors").front()));
  }
  SUBCASE("with other numbers of processes, up to rounding") {
    std::filesystem::path const run = start("others");
    CHECK(run_in(run, "power, saved", 2, 0, 6).find("6 steps") != std::string::npos);
    CHECK(apart(run_in(run, "power, saved", 8), expected) < 1e-6);
  }
  SUBCASE("with the mean of the errors, up to rounding") {
    auto const mean = at_three("power, mean, saved");
    CHECK(apart(run_in(mean("mean"), "power, mean, saved", 4), expected) < 1e-6);
  }
  SUBCASE("without compression, once it has added what was not sent") {
    std::vector<double> const added = Reference{.until = 3}.run();
    CHECK(apart(run_in(start("alone"), "power, saved", 1), added) < 1e-6);
    CHECK(apart(run_in(start("late"), "power, late, saved", 4), added) < 1e-6);
    // Another wire knows of no errors, and a run may get this one later.
    std::string const ring = run_in(start("ring"), "ring, saved", 1);
    CHECK(ring.find("exit 0, 8 steps") != std::string::npos);
    CHECK(apart(ring, added) > 1e-4);
    std::filesystem::path const later = folder / "ring";
    CHECK(run_in(later, "ring, saved", 1, 0, 3).find("3 steps") != std::string::npos);
    CHECK(run_in(later, "power, saved", 4).find("exit 0, 8 steps") != std::string::npos);
  }
}

struct Trained {
  std::string error{};
  at::Tensor weight{};
};
/// One layer without a bias, whose gradient has rank one.
Trained train_layer(std::shared_ptr<fr::Communicator> const& with,
                    fr::PowerSGDSettings const& wire) {
  torch::nn::Linear net(torch::nn::LinearOptions(4, 3).bias(false));
  {
    at::NoGradGuard const no_gradients;
    net->weight.fill_(0.5);
  }
  fr::TensorDataset train(at::ones({16, 4}), at::zeros({16}, at::kLong),
                          {.batch = 4, .shuffle = false});
  fr::Trainer trainer{
      net,
      fr::CrossEntropy{},
      fr::Settings{.epochs = 4},
      fr::Optimize<fr::SGD>{.lr = 0.1},
      fr::Accumulate<4>{},
      fr::Replicate<fr::Ring, fr::Wire<fr::PowerSGD<1>>>{.with = with, .wire = wire}};
  try {
    static_cast<void>(trainer.fit(train));
  } catch (fr::Error const& error) {
    return {.error = error.what()};
  }
  return {.weight = net->weight.detach()};
}

TEST_CASE("a gradient of rank one is sent whole, also where nothing travels as it is") {
  std::vector<Trained> whole(4), factors(4);
  CHECK(ranks::none(ranks::run(4, [&](std::shared_ptr<fr::Communicator> const& with) {
    auto const rank = static_cast<std::size_t>(with->rank());
    whole[rank] = train_layer(with, {});
    factors[rank] = train_layer(with, {.start_step = 0, .min_compression_rate = 0});
  })));
  CHECK(whole[0].weight.max().item<double>() > 0.55);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(factors[rank].error.empty());
    REQUIRE(factors[rank].weight.defined());
    CHECK(at::allclose(factors[rank].weight, whole[rank].weight, 1e-6, 1e-6));
    CHECK(at::equal(factors[rank].weight, factors[0].weight));
  }
}

TEST_CASE("settings that differ between processes, or mean nothing, are refused") {
  std::vector<std::string> texts(4);
  CHECK(ranks::none(ranks::run(4, [&](std::shared_ptr<fr::Communicator> const& with) {
    texts[static_cast<std::size_t>(with->rank())] =
        train_layer(with, {.start_step = with->rank() == 2 ? 3U : 2U}).error;
  })));
  for (std::string const& text : texts) {
    CHECK(text.find("Wire<PowerSGD>::start_step of rank 2 is") != std::string::npos);
  }
  auto const alone = std::make_shared<fr::Communicator>(nullptr, fr::World{});
  CHECK(train_layer(alone, {.min_compression_rate = std::nan("")})
            .error.find("min_compression_rate is nan (Wire<PowerSGD<R>>)") != std::string::npos);
  CHECK(train_layer(alone, {.orthogonalization_epsilon = -1})
            .error.find("orthogonalization_epsilon is -1") != std::string::npos);
}

}  // namespace frugal_test::cluster_power_sgd

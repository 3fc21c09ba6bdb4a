// SPDX-License-Identifier: Apache-2.0
#include "support/files.hpp"
#include "support/running.hpp"

#include <doctest/doctest.h>

#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/dry_run.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/report/log.hpp>
#include <frugal/report/progress.hpp>
#include <frugal/report/throughput.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <future>

namespace frugal_test::watch_flops {

using namespace frugal_test::support;
using frugal::FlopCounter;

template <class Body>
std::uint64_t counted(Body&& body) {
  FlopCounter counter;
  REQUIRE(counter.open());
  counter.count();
  body();
  return counter.close();
}

at::Tensor variable(Json const& shape) {
  return table(shape_in(shape), 40, 0).requires_grad_(true);
}

/// Checks forward, and the backward pass of the sum, against the file.
template <class Forward>
void check(Json const& which, Forward&& forward) {
  CAPTURE(which.dump());
  at::Tensor output;
  CHECK(counted([&] { output = forward(); }) == which.at("forward").get<std::uint64_t>());
  if (!which.contains("backward")) return;
  CHECK(counted([&] { output.sum().backward(); }) == which.at("backward").get<std::uint64_t>());
}

TEST_CASE("products have the operations that PyTorch counts, forward and backward") {
  Json const file = reference("flops.json");
  for (Json const& which : file.at("products")) {
    at::Tensor const a = variable(which.at("a"));
    at::Tensor const b = variable(which.at("b"));
    check(which, [&]() -> at::Tensor {
      std::string const name = which.at("operator");
      if (name == "mm") return at::mm(a, b);
      if (name == "addmm") return at::addmm(at::zeros({7}), a, b);
      if (name == "bmm") return at::bmm(a, b);
      if (name == "baddbmm") return at::baddbmm(at::zeros({7}), a, b);
      if (name == "linear") return at::linear(a, b, at::zeros({7}));
      return at::matmul(a, b);
    });
  }
}

TEST_CASE("products of few bits count as those of FP32") {
  at::Tensor const a = at::ones({16, 32}, at::kChar);
  at::Tensor sums = at::empty({16, 48}, at::kInt);
  CHECK(counted([&] { at::_int_mm(a, at::ones({32, 48}, at::kChar)); }) == 2 * 16 * 32 * 48);
  CHECK(counted([&] { at::_int_mm_out(sums, a, at::ones({32, 48}, at::kChar)); }) ==
        2 * 16 * 32 * 48);
}

TEST_CASE("a product of [M, K] and [K, N] is 2 M K N operations, and its gradients as many each") {
  at::Tensor const a = at::ones({4, 5}).requires_grad_();
  at::Tensor const b = at::ones({5, 7}).requires_grad_();
  at::Tensor product;
  CHECK(counted([&] { product = at::addmm(at::ones({7}), a, b); }) == 2 * 4 * 5 * 7);
  CHECK(counted([&] { product.sum().backward(); }) == 2 * (2 * 4 * 5 * 7));
}

TEST_CASE("convolutions have the operations that PyTorch counts, forward and backward") {
  Json const file = reference("flops.json");
  for (Json const& which : file.at("convolutions")) {
    at::Tensor const x = variable(which.at("input"));
    at::Tensor const w = variable(which.at("weight"));
    std::vector<std::int64_t> const none(shape_in(which.at("stride")).size(), 0);
    check(which, [&] {
      return at::convolution(x, w, {}, shape_in(which.at("stride")), shape_in(which.at("padding")),
                             shape_in(which.at("dilation")), which.at("transposed"), none,
                             which.at("groups"));
    });
  }
}

TEST_CASE("each gradient of a grouped convolution has as many operations as its forward pass") {
  at::Tensor const x = at::ones({2, 4, 8, 8}).requires_grad_();
  at::Tensor const w = at::ones({6, 2, 3, 3}).requires_grad_();
  std::vector<std::int64_t> const ones{1, 1};
  std::vector<std::int64_t> const none{0, 0};
  at::Tensor y;
  // 6 x 6 positions of 2 samples; 6 outputs of 2 inputs by 3 x 3 weights.
  std::uint64_t const forward = 2ULL * (2 * 6 * 6) * (6 * 2 * 3 * 3);
  CHECK(counted([&] { y = at::conv2d(x, w, {}, ones, none, ones, /*groups=*/2); }) == forward);
  CHECK(counted([&] { y.sum().backward(); }) == 2 * forward);
  at::Tensor const constant = x.detach();
  y = at::conv2d(constant, w, {}, ones, none, ones, 2);
  CHECK(counted([&] { y.sum().backward(); }) == forward);
}

TEST_CASE("attention has the operations that PyTorch counts, forward and backward") {
  Json const file = reference("flops.json");
  for (Json const& which : file.at("attention")) {
    auto const shapes = {shape_in(which.at("query")), shape_in(which.at("key")),
                         shape_in(which.at("value"))};
    auto const* const of = shapes.begin();
    CHECK(frugal::detail::attention_flops(of[0], of[1], of[2], 1, 1) ==
          which.at("forward").get<std::uint64_t>());
    CHECK(frugal::detail::attention_flops(of[0], of[1], of[2], 3, 2) ==
          which.at("backward").get<std::uint64_t>());
  }
  Json const& which = file.at("attention")[0];
  at::Tensor const q = variable(which.at("query"));
  at::Tensor const k = variable(which.at("key"));
  at::Tensor const v = variable(which.at("value"));
  check(which, [&] { return at::scaled_dot_product_attention(q, k, v); });
}

TEST_CASE("a step of a network has the operations that PyTorch counts") {
  torch::nn::Sequential net(torch::nn::Conv2d(1, 4, 3), torch::nn::ReLU(), torch::nn::Flatten(),
                            torch::nn::Linear(64, 3));
  at::Tensor const data = table({5, 1, 6, 6}, 41, 0);
  at::Tensor const target = at::tensor({0, 1, 2, 0, 1}, at::kLong);
  CHECK(counted([&] { at::cross_entropy_loss(net->forward(data), target).backward(); }) ==
        reference("flops.json").at("training").at("step").get<std::uint64_t>());
}

TEST_CASE("work during a pause, and in other threads, is not counted") {
  at::Tensor const a = at::ones({2, 2});
  FlopCounter counter;
  REQUIRE(counter.open());
  at::mm(a, a);
  counter.count();
  counter.count();
  at::mm(a, a);
  std::async(std::launch::async, [&] { at::mm(a, a); }).get();
  counter.pause();
  at::mm(a, a);
  counter.count();
  at::mm(a, a);
  CHECK(counter.close() == 2 * 16);
  at::mm(a, a);
  CHECK(counter.close() == 2 * 16);
  CHECK_FALSE(at::hasThreadLocalCallbacks());
}

TEST_CASE("one counter is active at a time, and the next begins at 0") {
  FlopCounter second;
  {
    FlopCounter first;
    REQUIRE(first.open());
    CHECK(first.open());
    CHECK_FALSE(second.open());
    CHECK(second.close() == 0);
    CHECK_FALSE(second.open());
  }
  REQUIRE(second.open());
  second.count();
  at::mm(at::ones({1, 1}), at::ones({1, 1}));
  CHECK(second.close() == 2);
  REQUIRE(second.open());
  CHECK(second.close() == 0);
}

}  // namespace frugal_test::watch_flops

namespace frugal_test::policy_throughput {

using namespace frugal_test::support;
using frugal::Every;
using frugal::FlopCounter;
using frugal::Optimize;
using frugal::SGD;
using frugal::TensorDataset;
using frugal::Throughput;
namespace k = frugal::kinds;

// Mlp of 6 features, 8 hidden units, 3 classes: products of [B, 6] x [6, 8] and [B, 8] x [8, 3].
// Backward has both gradients of the second and, because the data needs none, one of the first.
constexpr double per_sample = 2 * (6 * 8 + 8 * 3) + 2 * (6 * 8 + 2 * 8 * 3);

struct Ran {
  frugal::Report report;
  std::optional<frugal::Speed> last;
};

template <class... Ps>
Ran run(frugal::Settings settings, std::int64_t n, Ps const&... policies) {
  frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, settings,
                          Optimize<SGD>{}, policies...};
  auto report = trainer.fit(TensorDataset(samples(n), {.batch = 4}), TensorDataset(samples(8, 92)));
  return {report, trainer.template policy<k::throughput>().last()};
}

TEST_CASE("operations are those of forward and backward of a step, by hand") {
  auto const ran = run({}, 40, Throughput<Every<5>>{});
  REQUIRE(ran.last);
  CHECK(ran.last->step == 10);
  CHECK(*ran.last->flops_per_step == doctest::Approx(4 * per_sample).epsilon(1e-12));
}

TEST_CASE("a dry run and validations are not counted, and windows are as a whole") {
  auto const ran = run({.epochs = 3}, 40, Throughput<Every<4>>{}, frugal::Accumulate<2>{},
                       frugal::Validate<Every<1>>{}, frugal::DryRun<>{.out = nullptr});
  REQUIRE(ran.last);
  CHECK(ran.last->step == 12);
  CHECK(*ran.last->flops_per_step == doctest::Approx(8 * per_sample).epsilon(1e-12));
}

TEST_CASE("steps of other sizes than the counted one are scaled by their samples") {
  // Batches of 4, 4, 4, 2: the first is counted, and the next six are the measured stretch.
  auto const ran = run({.epochs = 2}, 14, Throughput<Every<7>>{});
  REQUIRE(ran.last);
  CHECK(ran.last->step == 7);
  CHECK(*ran.last->flops_per_step == doctest::Approx(22.0 / 6 * per_sample).epsilon(1e-12));
}

TEST_CASE("rates are of one stretch of time, and utilisation is the fraction of the peak") {
  auto const ran = run({}, 40, Throughput<Every<5>>{.peak_flops = 1e12});
  REQUIRE(ran.last);
  frugal::Speed const& speed = *ran.last;
  CHECK(speed.step_seconds > 0);
  CHECK(speed.samples_per_second * speed.step_seconds == doctest::Approx(4));
  CHECK(speed.tokens_per_second == doctest::Approx(speed.samples_per_second));
  CHECK(*speed.flops_per_second * speed.step_seconds == doctest::Approx(*speed.flops_per_step));
  CHECK(*speed.utilisation * 1e12 == doctest::Approx(*speed.flops_per_second));
  CHECK(ran.report.warnings.empty());
}

TEST_CASE("without a known peak there is no utilisation, and one note in advice") {
  auto const ran = run({}, 40, Throughput<Every<2>>{});
  CHECK_FALSE(ran.last->utilisation);
  REQUIRE(ran.report.warnings.size() == 1);
  CHECK(ran.report.warnings[0].find("Throughput::peak_flops") != std::string::npos);
  CHECK_THROWS_AS(run({}, 4, Throughput<>{.peak_flops = -1}), frugal::SettingsError);
  CHECK_THROWS_AS(run({}, 4, Throughput<>{.peak_flops = std::nan("")}), frugal::SettingsError);
}

TEST_CASE("a run that ends before its second measurement has measured nothing") {
  CHECK_FALSE(run({}, 4, Throughput<Every<1>>{}).last);
  CHECK(run({}, 8, Throughput<Every<1>>{}).last);
}

TEST_CASE("the log has each measurement once, with the line that follows") {
  TemporaryFolder const folder;
  run({.run_dir = folder.path(), .epochs = 2}, 40, Throughput<Every<6>>{.peak_flops = 1e12},
      frugal::Log<Every<2>>{});
  std::string with;
  for (std::string const& text : lines_of(text_of(folder / "metrics.jsonl"))) {
    Json const line = Json::parse(text);
    if (!line.contains("utilisation")) continue;
    for (char const* name : {"step_seconds", "samples_per_second", "tokens_per_second",
                             "flops_per_step", "flops_per_second"}) {
      CHECK(line.at(name).get<double>() > 0);
    }
    with += line.at("event").get<std::string>() + line.at("step").dump() + ' ';
  }
  CHECK(with == "step6 step12 step18 ");
}

TEST_CASE("the progress shows the fraction of the peak as soon as it is measured") {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> const file(std::tmpfile(), &std::fclose);
  run({}, 40, Throughput<Every<5>>{.peak_flops = 1e12},
      frugal::Progress<>{.out = file.get(), .line_seconds = 0});
  std::rewind(file.get());
  int with = 0;
  for (char line[300]; std::fgets(line, sizeof line, file.get()) != nullptr;) {
    with += std::string(line).find("% of peak") != std::string::npos;
  }
  CHECK(with == 6 + 1);  // steps 5 to 10, and the epoch's end
}

TEST_CASE("another active counter delays the count, which never covers part of a step") {
  FlopCounter other;
  REQUIRE(other.open());
  Spy spy{.each_step = [&](frugal::Counters const& at) {
    if (at.step == 4) other.close();
  }};
  auto const ran = run({}, 80, Throughput<Every<10>>{}, frugal::Accumulate<2>{}, spy);
  REQUIRE(ran.last);
  CHECK(*ran.last->flops_per_step == doctest::Approx(8 * per_sample).epsilon(1e-12));
}

TEST_CASE("nothing is left behind when a step throws while it is counted") {
  auto const failing = [](std::shared_ptr<Mlp>& net, frugal::Batch const& batch) -> at::Tensor {
    net->forward(batch.data);
    throw std::runtime_error("in the middle");
  };
  frugal::Trainer trainer{std::make_shared<Mlp>(), failing, frugal::Settings{}, Optimize<SGD>{},
                          Throughput<>{}};
  CHECK_THROWS_AS(trainer.fit(TensorDataset(samples(8))), std::runtime_error);
  CHECK_FALSE(at::hasThreadLocalCallbacks());
  FlopCounter counter;
  CHECK(counter.open());
}

TEST_CASE("a measured run ends with the same bits as one without") {
  auto const trained = [](auto... policies) {
    auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.5, .norm = true});
    frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 2},
                            Optimize<SGD>{.lr = 0.1, .momentum = 0.9}, policies...};
    static_cast<void>(trainer.fit(TensorDataset(samples(30), {.batch = 8, .shuffle = true})));
    return tensors_of(*module);
  };
  CHECK(same_bits(trained(), trained(Throughput<Every<1>>{})));
}

/// TensorDataset batches of a source that says how long it was waited for: a nanosecond more each time.
struct Waiting {
  TensorDataset inner{samples(40), {.batch = 4}};
  double seconds = 0;
  std::string hint{};

  void seek(frugal::Cursor const& cursor) { inner.seek(cursor); }
  std::optional<frugal::Batch> next() {
    seconds += 1e-9;
    return inner.next();
  }
  double waited() const { return seconds; }
  std::string warning() const { return hint; }
};

TEST_CASE("the share of the time that a source was waited for is measured, and is in the log") {
  auto const measured = [](auto source, auto&& check) {
    TemporaryFolder const folder;
    frugal::Trainer trainer{
        std::make_shared<Mlp>(), frugal::CrossEntropy{}, frugal::Settings{.run_dir = folder.path()},
        Optimize<SGD>{},         Throughput<Every<5>>{}, frugal::Log<Every<5>>{}};
    static_cast<void>(trainer.fit(source));
    auto const last = trainer.template policy<k::throughput>().last();
    REQUIRE(last);
    check(*last, text_of(folder / "metrics.jsonl"));
  };
  measured(Waiting{}, [](frugal::Speed const& speed, std::string const& log) {
    REQUIRE(speed.data_wait);
    CHECK(*speed.data_wait * speed.step_seconds == doctest::Approx(1e-9));
    CHECK(log.find("\"data_wait\":") != std::string::npos);
  });
  measured(TensorDataset(samples(40), {.batch = 4}),
           [](frugal::Speed const& speed, std::string const& log) {
             CHECK_FALSE(speed.data_wait);
             CHECK(log.find("data_wait") == std::string::npos);
           });
}

TEST_CASE("a fit ends with the advice of its source, if it has any") {
  auto const advice_of = [](std::string hint) {
    frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, Optimize<SGD>{}};
    return trainer.fit(Waiting{.hint = std::move(hint)}).warnings;
  };
  CHECK(advice_of("fix the data first") == std::vector<std::string>{"fix the data first"});
  CHECK(advice_of("").empty());
}

}  // namespace frugal_test::policy_throughput

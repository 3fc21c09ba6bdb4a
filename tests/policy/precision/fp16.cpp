// SPDX-License-Identifier: Apache-2.0
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/policy/precision/fp16.hpp>

#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/training.hpp"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::policy_precision_fp16 {

/// A row that is the gradient, and the replacement for one of its elements in backward. The loss
/// itself is finite: only the gradients overflow.
struct Scripted {
  at::Tensor row;
  double element = 0;  ///< infinity, NaN, or 0 for a finite row
  std::int64_t at = 0;
};

}  // namespace frugal_test::policy_precision_fp16

template <>
struct frugal::batch_traits<frugal_test::policy_precision_fp16::Scripted> {
  using Batch = frugal_test::policy_precision_fp16::Scripted;
  static std::int64_t samples(Batch const&) { return 1; }
  static std::int64_t tokens(Batch const&) { return 1; }
  static void to(Batch&, at::Device) {}
};

namespace frugal_test::policy_precision_fp16 {

using namespace frugal_test::support;
using frugal::FP16;
using frugal::Precision;

/// One weight vector whose gradient is the batch.
struct Vector : torch::nn::Module {
  explicit Vector(at::Tensor const& start) : weight(register_parameter("weight", start.clone())) {}
  at::Tensor weight;
};

Scripted scripted(Json const& step) {
  std::string const kind = step.at("kind");
  double const element = kind == "inf"   ? std::numeric_limits<double>::infinity()
                         : kind == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                         : 0;
  return {tensor_in(step.at("row"), {6}), element, step.at("at").get<std::int64_t>()};
}

struct Objective {
  frugal::Loss operator()(std::shared_ptr<Vector>& module, Scripted const& batch) const {
    at::Tensor const weight = module->weight * 1;
    if (batch.element != 0) {
      weight.register_hook([batch](at::Tensor const& gradient) {
        at::Tensor changed = gradient.clone();
        changed[batch.at] = batch.element;
        return changed;
      });
    }
    return {(weight * batch.row).sum(), 1.0};
  }
};

/// The state of scaler and loop after each window.
struct Told {
  std::vector<at::Tensor> weights;
  std::vector<double> scales;
  std::vector<std::int64_t> good_steps;
  std::vector<frugal::Counters> steps;  ///< of on_step only
  std::vector<double> factors;          ///< learning-rate factors, likewise
};

namespace kinds {
struct watch : frugal::optional_kind {
  static constexpr std::string_view name = "test.Watch";
};
}  // namespace kinds

/// Reads the scaler's state through its persist(), after every update.
struct Watch {
  using kind = kinds::watch;
  using listens = frugal::list<frugal::on::update, frugal::on::step>;
  using after =
      frugal::list<frugal::kinds::optimizer, frugal::kinds::precision, frugal::kinds::schedule>;
  Told* told = nullptr;

  struct State {
    using transient = void;
    explicit State(Watch const& settings) : told(settings.told) {}
    void on_update(frugal::Update& phase) {
      told->weights.push_back(phase.parameters().tensors.front().detach().clone());
    }
    void on_step(frugal::Step& phase) {
      told->steps.push_back(phase.counters());
      told->factors.push_back(phase.learning_rate_factor());
    }
    Told* told;
  };
};

frugal::LossScaling scaling_in(Json const& file) {
  Json const& scaling = file.at("scaling");
  return {.initial = scaling.at("initial"),
          .growth = scaling.at("growth"),
          .backoff = scaling.at("backoff"),
          .growth_interval = scaling.at("growth_interval")};
}

template <class... Ps>
Told train(Json const& file, Json const& which, Ps const&... policies) {
  Told told;
  std::vector<Scripted> batches;
  for (Json const& step : file.at("scripts").at(which.at("script").get<std::string>())) {
    batches.push_back(scripted(step));
  }
  frugal::Trainer trainer{std::make_shared<Vector>(tensor_in(file.at("start"), {6})),
                          Objective{},
                          frugal::Settings{.epochs = 1},
                          Precision<FP16>{.scaling = scaling_in(file)},
                          Watch{&told},
                          policies...};
  auto const report = trainer.fit(batches);
  std::size_t finite = 0;
  for (Json const& step : which.at("steps")) finite += step.at("finite").get<bool>();
  CHECK(report.steps == finite);
  CHECK(report.non_finite_windows == batches.size() - finite);
  CHECK(told.steps.size() == finite);
  return told;
}

template <class... Ps>
Told train_with_optimizer(Json const& file, Json const& which, Ps const&... policies) {
  if (which.at("optimizer") == "AdamW") {
    return train(file, which, frugal::Optimize<frugal::AdamW>{.lr = 0.1, .weight_decay = 0.01},
                 policies...);
  }
  return train(file, which, frugal::Optimize<frugal::SGD>{.lr = 0.1, .momentum = 0.9}, policies...);
}

TEST_CASE("weights are those of PyTorch's GradScaler after every step, overflowing ones too") {
  Json const file = reference("loss_scaling.json");
  for (Json const& which : file.at("cases")) {
    CAPTURE(which.at("name").get<std::string>());
    Told const told = which.at("clip").get<bool>()
                          ? train_with_optimizer(file, which, frugal::ClipNorm<0.5>{})
                          : train_with_optimizer(file, which);
    REQUIRE(told.weights.size() == which.at("steps").size());
    for (std::size_t i = 0; i < told.weights.size(); ++i) {
      CAPTURE(i);
      CHECK(distance(told.weights[i], tensor_in(which.at("steps")[i].at("weight"), {6})) < 1e-6);
    }
  }
}

/// Follows every case of the file; `resumed`: saves and loads the scale at every step.
void check_scales(bool resumed) {
  Json const file = reference("loss_scaling.json");
  for (Json const& which : file.at("cases")) {
    CAPTURE(which.at("name").get<std::string>());
    frugal::detail::LossScale scale(scaling_in(file));
    scale.begin(at::kCPU);
    for (Json const& step : which.at("steps")) {
      at::Tensor const gradient = at::ones({3}) * scale.value();
      if (!step.at("finite").get<bool>()) gradient[1] = std::numeric_limits<float>::infinity();
      scale.unscale({gradient});
      CHECK(gradient[0].item<float>() == 1.0F);
      scale.update();
      CHECK(scale.value() == step.at("scale").get<double>());
      frugal::StateDict memory;
      frugal::StateWriter writer(memory);
      scale.persist(writer);
      CHECK(std::get<std::int64_t>(memory.values.at("good_steps")) ==
            step.at("good_steps").get<std::int64_t>());
      if (!resumed) continue;
      scale = frugal::detail::LossScale(scaling_in(file));
      scale.begin(at::kCPU);
      frugal::StateReader reader(memory);
      scale.persist(reader);
    }
  }
}

TEST_CASE("scale and growth are those of PyTorch's GradScaler after every step") {
  check_scales(false);
}

TEST_CASE("they are too when every step loads a saved scale") { check_scales(true); }

TEST_CASE("a skipped step advances neither the schedule nor a cadence in steps") {
  Json const file = reference("loss_scaling.json");
  Json const& which = case_named(file.at("cases"), "backs off, AdamW");
  Told const told = train(file, which, frugal::Optimize<frugal::AdamW>{.lr = 0.1},
                          frugal::Schedule<frugal::LinearDecay<>>{});
  for (std::size_t i = 0; i < told.steps.size(); ++i) CHECK(told.steps[i].step == i + 1);
  for (std::size_t i = 1; i < told.factors.size(); ++i)
    CHECK(told.factors[i] != told.factors[i - 1]);
}

TEST_CASE("the samples of a skipped window are counted with the next step") {
  Json const file = reference("loss_scaling.json");
  Told const told = train(file, case_named(file.at("cases"), "backs off, AdamW"),
                          frugal::Optimize<frugal::AdamW>{.lr = 0.1});
  // Finite: 0, 2, 5, 6, 7, 8 of ten windows of one row.
  std::vector<std::uint64_t> windows;
  std::vector<std::uint64_t> samples;
  for (frugal::Counters const& at : told.steps) {
    windows.push_back(at.window_samples);
    samples.push_back(at.sample);
  }
  CHECK((windows == std::vector<std::uint64_t>{1, 2, 3, 1, 1, 1}));
  CHECK((samples == std::vector<std::uint64_t>{1, 3, 6, 7, 8, 9}));
}

TEST_CASE("one overflowing micro-batch skips its window, and no other") {
  Json const file = reference("loss_scaling.json");
  Json const& script = file.at("scripts").at("backs off");
  std::vector<Scripted> batches;
  for (Json const& step : script) batches.push_back(scripted(step));
  Told told;
  frugal::Trainer trainer{std::make_shared<Vector>(tensor_in(file.at("start"), {6})),
                          Objective{},
                          frugal::Settings{.epochs = 1},
                          frugal::Optimize<frugal::SGD>{.lr = 0.1},
                          frugal::Accumulate<2>{},
                          Precision<FP16>{.scaling = scaling_in(file)},
                          Watch{&told}};
  auto const report = trainer.fit(batches);
  // finite inf | finite nan | inf finite | finite finite | finite inf
  CHECK(report.steps == 1);
  CHECK(report.non_finite_windows == 4);
  at::Tensor const mean = (batches[6].row + batches[7].row) / 2;
  CHECK(distance(told.weights.back(), tensor_in(file.at("start"), {6}) - 0.1 * mean) < 1e-6);
}

TEST_CASE("a real network trains in FP16 nearly as in FP32") {
  TrainingFile const file;
  Json const& which = case_named(file.file.at("cases"), "plain");
  auto const plain = train_as(file, which, RowWeighted{false});
  auto const half = train_as(file, which, RowWeighted{false}, Precision<FP16>{});
  REQUIRE(half.losses.size() == plain.losses.size());
  for (std::size_t i = 0; i < plain.losses.size(); ++i) {
    CHECK(half.losses[i] == doctest::Approx(plain.losses[i]).epsilon(0.02));
  }
  CHECK_FALSE(same_bits(tensors_of(*half.net), tensors_of(*plain.net)));
}

TEST_CASE("accumulated micro-batches equal the one big batch in FP16, to its rounding") {
  TrainingFile const file;
  Json const& which = case_named(file.file.at("cases"), "plain");
  auto const whole = train_as(file, which, RowWeighted{false}, Precision<FP16>{});
  Json pieces = which;
  pieces["micro_batches"] = std::vector<int>{4, 4, 4, 4, 4, 4, 4, 4, 4, 4};
  auto const cut =
      train_as(file, pieces, RowWeighted{false}, Precision<FP16>{}, frugal::Accumulate<2>{});
  for (auto const& [name, tensor] : tensors_of(*whole.net)) {
    CHECK(distance(tensor, tensors_of(*cut.net).at(name)) < 5e-3);
  }
}

/// The weight of a micro-batch is given by its number of samples: 1 or 4096.
struct LightAndHeavy {
  frugal::Loss operator()(std::shared_ptr<Mlp>& module, frugal::Batch const& batch) const {
    return {.value = at::cross_entropy_loss(module->forward(batch.data), batch.target),
            .weight = batch.data.size(0) == 1 ? 1.0 : 4096.0};
  }
};

TEST_CASE("accumulated weights overflow in no order, and the gradient is that of FP32") {
  auto const train = [](bool light_first, auto... policies) {
    auto const module = std::make_shared<Mlp>();
    std::vector<frugal::Batch> batches;
    for (int i = 0; i < 20; ++i) {
      bool const light = (i % 2 == 0) == light_first;
      batches.push_back(samples(light ? 1 : 16, 91 + static_cast<std::uint32_t>(i)));
    }
    frugal::Trainer trainer{module,
                            LightAndHeavy{},
                            frugal::Settings{},
                            frugal::Optimize<frugal::SGD>{.lr = 0.1},
                            frugal::Accumulate<2>{},
                            policies...};
    auto const report = trainer.fit(batches);
    CHECK(report.non_finite_windows == 0);
    CHECK(report.steps == 10);
    return tensors_of(*module);
  };
  for (bool const light_first : {true, false}) {
    auto const half = train(light_first, Precision<FP16>{});
    for (auto const& [name, tensor] : train(light_first)) {
      CHECK(distance(tensor, half.at(name)) < 2e-3);
    }
  }
}

TEST_CASE("an objective that escapes autocast has it disabled again") {
  TrainingFile const file;
  auto batches = file.batches({40});
  frugal::Trainer trainer{file.network(), RowWeighted{false}, frugal::Settings{.epochs = 1},
                          frugal::Optimize<frugal::AdamW>{}, Precision<FP16>{}};
  static_cast<void>(trainer.fit(batches));
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  for (at::Tensor const& parameter : trainer.module()->parameters()) {
    CHECK((parameter.scalar_type() == at::kFloat));
  }
}

template <class Error, class Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (Error const& error) {
    return error.what();
  }
  return "";
}

std::string refused(frugal::LossScaling const& scaling) {
  TrainingFile const file;
  auto batches = file.batches({40});
  frugal::Trainer trainer{file.network(), RowWeighted{false}, frugal::Settings{.epochs = 1},
                          frugal::Optimize<frugal::AdamW>{}, Precision<FP16>{.scaling = scaling}};
  return message_of<frugal::SettingsError>([&] { trainer.fit(batches); });
}

TEST_CASE("invalid scaling settings are refused, with what to write") {
  double const infinity = std::numeric_limits<double>::infinity();
  CHECK(refused({.initial = 0}).find("initial scale is 0") != std::string::npos);
  CHECK(refused({.initial = infinity}).find("Set a number above 0") != std::string::npos);
  CHECK(refused({.growth = 1}).find("growth factor is 1") != std::string::npos);
  CHECK(refused({.backoff = 1}).find("backoff factor is 1") != std::string::npos);
  CHECK(refused({.growth_interval = 0}).find("growth_interval is 0") != std::string::npos);
  CHECK(refused({.most_skips = 0}).find("most_skips is 0") != std::string::npos);
}

TEST_CASE("weights in FP16 are refused by name") {
  TrainingFile const file;
  auto batches = file.batches({40});
  torch::nn::Sequential net = file.network();
  net[2]->to(at::kHalf);
  frugal::Trainer trainer{net, RowWeighted{false}, frugal::Settings{.epochs = 1},
                          frugal::Optimize<frugal::AdamW>{}, Precision<FP16>{}};
  std::string const text = message_of<frugal::SettingsError>([&] { trainer.fit(batches); });
  CHECK(text.find("'2.weight' is in FP16") != std::string::npos);
}

TEST_CASE("a run whose gradients never become finite fails with an error that says so") {
  Json const file = reference("loss_scaling.json");
  Scripted const bad{tensor_in(file.at("start"), {6}), std::numeric_limits<double>::quiet_NaN(), 0};
  std::vector<Scripted> batches(50, bad);
  frugal::Trainer trainer{std::make_shared<Vector>(tensor_in(file.at("start"), {6})), Objective{},
                          frugal::Settings{.steps = 10}, frugal::Optimize<frugal::SGD>{.lr = 0.1},
                          Precision<FP16>{.scaling = {.most_skips = 7}}};
  std::string const text = message_of<frugal::GradientError>([&] { trainer.fit(batches); });
  CHECK(text.find("7 windows in a row") != std::string::npos);
  CHECK(text.find("step 0") != std::string::npos);
  CHECK(same_bits(tensors_of(*trainer.module()), {{"weight", tensor_in(file.at("start"), {6})}}));
}

/// A loss that is not finite, in the batches that say so; its gradient is the row.
struct BadLoss {
  frugal::Loss operator()(std::shared_ptr<Vector>& module, Scripted const& batch) const {
    return {(module->weight * batch.row).sum() + batch.element, 1.0};
  }
};

TEST_CASE("a loss that is not finite skips its window and lowers the scale, and is in no mean") {
  // 60000 x 2 overflows FP16's forward pass; GradScaler skips what comes of it. Here the gradient
  // itself is finite.
  at::Tensor const row = at::ones({6});
  double const infinity = std::numeric_limits<double>::infinity();
  std::vector<Scripted> batches{
      {row}, {row, infinity}, {row}, {row, std::numeric_limits<double>::quiet_NaN()}, {row}};
  Told told;
  frugal::Trainer trainer{std::make_shared<Vector>(at::zeros({6})),
                          BadLoss{},
                          frugal::Settings{.epochs = 1},
                          frugal::Optimize<frugal::SGD>{.lr = 0.5},
                          Precision<FP16>{.scaling = {.initial = 8}},
                          Watch{&told}};
  frugal::Report const report = trainer.fit(batches);
  CHECK(report.steps == 3);
  CHECK(report.non_finite_windows == 2);
  CHECK(at::equal(told.weights.back(), at::full({6}, -1.5)));
  CHECK(report.train_loss == (0.0 - 3.0 - 6.0) / 3);  // six weights of 0, -0.5 and -1
}

TEST_CASE("losses that stay NaN fail the run after most_skips windows") {
  std::vector<Scripted> batches(20, {at::ones({6}), std::numeric_limits<double>::quiet_NaN()});
  frugal::Trainer trainer{std::make_shared<Vector>(at::zeros({6})), BadLoss{}, frugal::Settings{},
                          frugal::Optimize<frugal::SGD>{.lr = 0.5},
                          Precision<FP16>{.scaling = {.most_skips = 7}}};
  std::string const text = message_of<frugal::GradientError>([&] { trainer.fit(batches); });
  CHECK(text.find("7 windows in a row had a loss or gradients that are NaN") != std::string::npos);
}

TEST_CASE("a torch::optim optimizer is not called for a skipped step") {
  Json const file = reference("loss_scaling.json");
  Json const& which = case_named(file.at("cases"), "begins with overflows, AdamW");
  frugal::Optimize<frugal::Any> const any{.make = [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::AdamW>(
        std::move(parameters), torch::optim::AdamWOptions(0.1).weight_decay(0.01));
  }};
  Told const told = train(file, which, any);
  CHECK(distance(told.weights.back(), tensor_in(which.at("steps").back().at("weight"), {6})) <
        1e-6);
}

TEST_CASE("a line search cannot evaluate a scaled window twice") {
  TrainingFile const file;
  auto batches = file.batches({40});
  frugal::Optimize<frugal::Any> const any{.make = [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::LBFGS>(std::move(parameters));
  }};
  frugal::Trainer trainer{file.network(), RowWeighted{false}, frugal::Settings{.epochs = 1}, any,
                          Precision<FP16>{}};
  CHECK(message_of<frugal::SettingsError>([&] { trainer.fit(batches); }).find("LBFGS") !=
        std::string::npos);
}

TEST_CASE("a module with nothing to train is evaluated in FP16") {
  TrainingFile const file;
  auto batches = file.batches({40});
  torch::nn::Sequential net = file.network();
  for (at::Tensor const& each : net->parameters()) frugal::fix_tensor(each);
  frugal::Trainer trainer{net, RowWeighted{false}, frugal::Settings{.epochs = 1},
                          frugal::Optimize<frugal::AdamW>{}, Precision<FP16>{}};
  CHECK(std::isfinite(trainer.evaluate(batches)["loss"]));
}

}  // namespace frugal_test::policy_precision_fp16

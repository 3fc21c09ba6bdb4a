// SPDX-License-Identifier: Apache-2.0
// needs: step
// Shapes: N samples, B in a batch, D = 3 features.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/model/freeze.hpp>
#include <frugal/model/save_weights.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/curriculum.hpp>
#include <frugal/policy/rollback.hpp>
#include <frugal/policy/skip_non_finite.hpp>
#include <frugal/policy/train_metrics.hpp>
#include <frugal/step.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/files.hpp"
#include "support/step_packages.hpp"

namespace frugal_test::step_package {

namespace fr = frugal;
using support::CountedLinear;
using support::FakePackage;
using Json = FakePackage::Json;

fr::TensorDataset data(std::int64_t samples = 42, std::int64_t batch = 4, bool shuffle = true) {
  torch::manual_seed(7);
  at::Tensor const x = torch::randn({samples, 3});
  return {x, x.sum(1, true) + 1, {.batch = batch, .shuffle = shuffle}};
}

/// Parameters and buffers of a module.
std::vector<at::Tensor> tensors(torch::nn::Module const& module) {
  std::vector<at::Tensor> all;
  for (at::Tensor const& each : module.parameters()) all.push_back(each.detach().clone());
  for (at::Tensor const& each : module.buffers()) all.push_back(each.clone());
  return all;
}
bool same(std::vector<at::Tensor> const& one, std::vector<at::Tensor> const& other) {
  if (one.size() != other.size()) return false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    if (!at::equal(one[i], other[i])) return false;
  }
  return true;
}

template <class... Ps>
std::vector<at::Tensor> of_package(FakePackage const& from, fr::Settings const& settings,
                                   Ps const&... policies) {
  fr::StepPackage const package(from.path());
  fr::Trainer trainer{package.module(), package.objective(), settings, policies...};
  auto train = data(), valid = data(10, 5, false);
  trainer.fit(train, valid);
  return tensors(*trainer.module());
}
template <class... Ps>
std::vector<at::Tensor> of_module(fr::Settings const& settings, Ps const&... policies) {
  fr::Trainer trainer{std::make_shared<CountedLinear>(), fr::MeanSquaredError{}, settings,
                      policies...};
  auto train = data(), valid = data(10, 5, false);
  trainer.fit(train, valid);
  return tensors(*trainer.module());
}

TEST_CASE("trains as the module that it stands for, to the bit, the ragged last batch as well") {
  FakePackage const package;
  fr::Settings const settings{.epochs = 3};
  auto const both = [&](auto const&... policies) {
    CHECK(same(of_package(package, settings, policies...), of_module(settings, policies...)));
  };
  both(fr::Optimize<fr::SGD>{.lr = 0.01});
  both(fr::Optimize<fr::AdamW>{.lr = 0.01}, fr::Schedule<fr::Warmup<5>, fr::Cosine>{},
       fr::ClipNorm<>{.max_norm = 0.5});
  both(fr::Optimize<fr::AdamW>{.lr = 0.01}, fr::Average<fr::Ema<0.9>>{},
       fr::EarlyStop<fr::Patience<1>>{});
  both(fr::Optimize<fr::SGD>{.lr = 0.01}, fr::SkipNonFinite{});
  // Parts of a window: powers of two, so that the shares of the seeds round nothing.
  both(fr::Optimize<fr::SGD>{.lr = 0.01}, fr::Accumulate<2>{});
  both(fr::Optimize<fr::SGD>{.lr = 0.01}, fr::Accumulate<fr::Auto>{});
}

TEST_CASE("shares of a window that are no powers of two are the same to rounding") {
  FakePackage const package;
  fr::Settings const settings{.epochs = 2};
  auto const one =
      of_package(package, settings, fr::Optimize<fr::SGD>{.lr = 0.01}, fr::Accumulate<3>{});
  auto const other = of_module(settings, fr::Optimize<fr::SGD>{.lr = 0.01}, fr::Accumulate<3>{});
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(at::allclose(one[i], other[i], 1e-6, 1e-7));
}

TEST_CASE("evaluation and prediction are the module's, and change nothing") {
  FakePackage const from;
  fr::StepPackage const package(from.path());
  fr::Trainer trainer{package.module(), package.objective(), fr::Optimize<fr::SGD>{}};
  fr::Trainer eager{std::make_shared<CountedLinear>(), fr::MeanSquaredError{},
                    fr::Optimize<fr::SGD>{}};
  auto valid = data(10, 4, false);
  auto const before = tensors(*trainer.module());
  CHECK(trainer.evaluate(valid)["loss"] == eager.evaluate(valid)["loss"]);
  std::vector<at::Tensor> one, other;
  trainer.predict(valid, [&](at::Tensor const& output, auto const&) { one.push_back(output); });
  eager.predict(valid, [&](at::Tensor const& output, auto const&) { other.push_back(output); });
  CHECK(same(one, other));
  CHECK(same(before, tensors(*trainer.module())));
  for (at::Tensor const& each : trainer.module()->parameters()) CHECK_FALSE(each.grad().defined());
  // The module is in training mode again, in which it predicts nothing.
  CHECK_THROWS_WITH_AS(trainer.module()->forward(torch::ones({2, 3})),
                       doctest::Contains("was called in training mode"), fr::ModuleError);
  trainer.module()->eval();
  CHECK(at::equal(trainer.module()->forward(torch::ones({2, 3})), torch::full({2, 1}, 0.75)));
}

TEST_CASE(
    "a run that ends in its middle and goes on has the bits of one that does not, with random "
    "numbers") {
  FakePackage const package = FakePackage::of("noisy-step.so");
  support::TemporaryFolder const folder;
  auto const run = [&](std::string const& name, std::uint64_t epochs) {
    return of_package(package, {.run_dir = folder / name, .epochs = epochs},
                      fr::Optimize<fr::AdamW>{.lr = 0.01}, fr::Accumulate<2>{},
                      fr::Checkpoint<fr::Every<1, fr::Epoch>>{});
  };
  auto const whole = run("whole", 4);
  run("parts", 1);
  run("parts", 3);
  CHECK(same(whole, run("parts", 4)));
  CHECK_FALSE(same(whole, run("other", 3)));
}

TEST_CASE("frozen parameters get no gradient") {
  FakePackage const from;
  fr::StepPackage const package(from.path());
  fr::Trainer trainer{package.module(), package.objective(), fr::Optimize<fr::SGD>{.lr = 0.1},
                      fr::Freeze<fr::Where<"bias">>{}};
  auto train = data();
  trainer.fit(train);
  CHECK(trainer.module()->named_parameters()["bias"].item<float>() == 0);
  CHECK(trainer.module()->named_parameters()["weight"].detach().ne(0.25).all().item<bool>());
}

TEST_CASE("each module is one of its own, with the package's weights and names") {
  FakePackage const from;
  fr::StepPackage const package(from.path());
  auto const one = package.module(), other = package.module();
  at::NoGradGuard const no_gradients;
  one->parameters().front().fill_(3);
  CHECK(other->named_parameters()["weight"].eq(0.25).all().item<bool>());
  CHECK(other->named_buffers().contains("seen"));
  CHECK(other->named_parameters()["weight"].requires_grad());
}

TEST_CASE("names with dots are submodules, and tied tensors are one") {
  FakePackage const from([](Json& all) {
    all["parameters"][1]["name"] = "head.out.bias";
    all["programs"][0]["outputs"][4] = "gradient:head.out.bias";
    all["tied"] = Json::array({{{"name", "again.weight"}, {"of", "weight"}}});
  });
  // The file of weights has Python's names as well.
  auto const head = std::make_shared<torch::nn::Module>(),
             out = std::make_shared<torch::nn::Module>();
  out->register_parameter("bias", torch::ones({1}));
  head->register_module("out", out);
  torch::nn::Module root;
  root.register_parameter("weight", torch::ones({1, 3}));
  root.register_buffer("seen", torch::zeros({}, torch::kLong));
  root.register_module("head", head);
  fr::save_weights(root, from.path());
  Json all = from.manifest;
  all["weights"] = from.of_file("model.safetensors");
  from.write(all);
  auto const found = fr::StepPackage(from.path()).module();
  CHECK(found->named_parameters()["head.out.bias"].item<float>() == 1);
  CHECK(found->named_parameters()["again.weight"].is_same(found->named_parameters()["weight"]));
  CHECK(fr::Parameters::of(*found).size() == 2);
}

TEST_CASE("generators and gradients are the caller's after a fit") {
  FakePackage const from = FakePackage::of("noisy-step.so");
  fr::StepPackage const package(from.path());
  fr::Trainer trainer{package.module(), package.objective(), fr::Optimize<fr::SGD>{}};
  auto train = data();
  bool const grad_mode = at::GradMode::is_enabled();
  trainer.fit(train);
  CHECK(at::GradMode::is_enabled() == grad_mode);
  for (at::Tensor const& each : trainer.module()->parameters()) CHECK_FALSE(each.grad().defined());
  CHECK(trainer.module()->is_training());
}

TEST_CASE("a batch of another shape, type or without a field is refused, and nothing is read") {
  FakePackage const from([](Json& all) { all["programs"][0]["dimensions"][0]["min"] = 2; });
  fr::StepPackage const package(from.path());
  auto module = package.module();
  auto objective = package.objective();
  auto const with = [&](at::Tensor x, at::Tensor y) {
    return objective(module, fr::Batch{std::move(x), std::move(y)});
  };
  CHECK(with(torch::ones({2, 3}), torch::ones({2, 1})).value.item<float>() ==
        doctest::Approx(0.0625));
  CHECK_THROWS_WITH_AS(
      with(torch::ones({2, 4}), torch::ones({2, 1})),
      doctest::Contains("'data' has the shape [2, 4] Float, and the package reads [batch >= 2, 3]"),
      fr::ShapeError);
  CHECK_THROWS_AS(with(torch::ones({1, 3}), torch::ones({1, 1})), fr::ShapeError);
  CHECK_THROWS_AS(with(torch::ones({2000, 3}), torch::ones({2000, 1})), fr::ShapeError);
  CHECK_THROWS_AS(with(torch::ones({2, 3}), torch::ones({3, 1})), fr::ShapeError);
  CHECK_THROWS_AS(with(torch::ones({2, 3, 1}), torch::ones({2, 1})), fr::ShapeError);
  CHECK_THROWS_WITH_AS(with(torch::ones({2, 3}, at::kDouble), torch::ones({2, 1})),
                       doctest::Contains("'data' is Double, and the package reads Float"),
                       fr::ShapeError);
  CHECK_THROWS_AS(with(torch::ones({2, 3}, at::kMeta), torch::ones({2, 1})), fr::ShapeError);
  CHECK_THROWS_WITH_AS(objective(module, fr::FieldsBatch{.data = torch::ones({2, 3})}),
                       doctest::Contains("the batch has no tensor 'target'"), fr::DataError);
  // Not dense in memory: read as its values are.
  at::Tensor const turned = torch::arange(6, at::kFloat).view({3, 2}).t();
  CHECK(with(turned, torch::ones({2, 1}))
            .value.equal(with(turned.contiguous(), torch::ones({2, 1})).value));
}

TEST_CASE("each batch runs the program that takes its size") {
  FakePackage from;
  std::filesystem::copy_file(FRUGAL_FAKE_STEP, from / "step-1.so");
  Json all = from.manifest;
  Json second = all["programs"][0];
  second.update(from.of_file("step-1.so"));
  // The last batch of an epoch has two samples, the others four.
  all["programs"][0]["dimensions"][0]["min"] = 3;
  second["dimensions"][0]["max"] = 3;
  all["programs"].push_back(second);
  from.write(all);
  fr::Settings const settings{.epochs = 3};
  CHECK(same(of_package(from, settings, fr::Optimize<fr::AdamW>{.lr = 0.01}),
             of_module(settings, fr::Optimize<fr::AdamW>{.lr = 0.01})));
  all["programs"][3]["dimensions"][0]["max"] = 1;
  from.write(all);
  CHECK_THROWS_WITH_AS(
      of_package(from, settings, fr::Optimize<fr::SGD>{.lr = 0.01}),
      doctest::Contains("'data' has the shape [2, 3] Float, and the package reads [batch >= 3, 3]; "
                        "'data' has the shape [2, 3] Float, and the package reads [batch, 3]"),
      fr::ShapeError);
}

TEST_CASE("outputs of training steps reach TrainMetrics") {
  FakePackage const from(
      [](Json& all) {
        all["programs"][0]["outputs"] = {"value",       "weight",          "output",
                                         "buffer:seen", "gradient:weight", "gradient:bias"};
      },
      "shown-step.so");
  auto const error = [](auto const& module, auto const& objective) {
    fr::Trainer trainer{module, objective, fr::Settings{.epochs = 2},
                        fr::Optimize<fr::SGD>{.lr = 0.01},
                        fr::TrainMetrics<fr::Every<1, fr::Epoch>, fr::MAE>{}};
    auto train = data();
    return trainer.fit(train).train_metrics;
  };
  fr::StepPackage const package(from.path());
  auto const found = error(package.module(), package.objective());
  auto const expected = error(std::make_shared<CountedLinear>(), fr::MeanSquaredError{});
  CHECK(found.has("train_mae"));
  CHECK((found == expected));
}

TEST_CASE("fields are found by their names in batches of every kind") {
  FakePackage const from;
  fr::StepPackage const package(from.path());
  auto module = package.module();
  auto objective = package.objective();
  at::Tensor const x = torch::ones({2, 3}), y = torch::ones({2, 1}), wrong = torch::zeros({2, 3});
  float const expected = objective(module, fr::Batch{x, y}).value.item<float>();
  CHECK(objective(module, std::pair(x, y)).value.item<float>() == expected);
  CHECK(objective(module, std::vector<at::Tensor>{x, y}).value.item<float>() == expected);
  CHECK(objective(module, std::map<std::string, at::Tensor>{{"data", x}, {"labels", y}})
            .value.item<float>() == expected);
  // A field of that name is meant, not the data.
  CHECK(objective(module, fr::FieldsBatch{.data = wrong, .target = y, .fields = {{"data", x}}})
            .value.item<float>() == expected);
}

TEST_CASE("a module whose tensors were changed, or of another class, is refused") {
  FakePackage const from;
  fr::StepPackage const package(from.path());
  auto objective = package.objective();
  fr::Batch const batch{torch::ones({2, 3}), torch::ones({2, 1})};
  auto module = package.module();
  module->to(at::kDouble);
  CHECK_THROWS_WITH_AS(objective(module, batch),
                       doctest::Contains("'weight' is not as the step package was exported"),
                       fr::ModuleError);
  auto other = std::make_shared<CountedLinear>();
  CHECK_THROWS_WITH_AS(objective(other, batch), doctest::Contains("got another module"),
                       fr::ModuleError);
}

TEST_CASE(
    "an index out of range is an error with the field's name, and nothing was trained on the "
    "batch") {
  auto const indexed = [](char const* operation, bool negative) {
    return [=](Json& all) {
      Json& step = all["programs"][0];
      step["outputs"] = {"value",       "weight",          "index",
                         "buffer:seen", "gradient:weight", "gradient:bias"};
      step["indices"] = Json::array({{{"operator", operation},
                                      {"fields", {"target"}},
                                      {"size", 101},
                                      {"negative", negative},
                                      {"allowed", -1}}});
    };
  };
  FakePackage const from(indexed("nll_loss_forward", false), "indexed-step.so");
  fr::Settings const settings{.epochs = 2};
  CHECK(same(of_package(from, settings, fr::Optimize<fr::SGD>{.lr = 0.01}),
             of_module(settings, fr::Optimize<fr::SGD>{.lr = 0.01})));
  fr::StepPackage const package(from.path());
  auto module = package.module();
  auto objective = package.objective();
  auto const before = tensors(*module);
  fr::Batch const batch{torch::ones({2, 3}), torch::full({2, 1}, 101.)};
  CHECK_THROWS_WITH_AS(
      objective(module, batch),
      doctest::Contains("'target', indexed-step.so): nll_loss_forward takes numbers from 0 to "
                        "100 and -1"),
      fr::LabelError);
  CHECK(same(before, tensors(*module)));
  FakePackage const other(indexed("index", true), "indexed-step.so");
  fr::StepPackage const second(other.path());
  auto of_second = second.objective();
  auto rows = second.module();
  CHECK_THROWS_WITH_AS(of_second(rows, batch),
                       doctest::Contains("index takes numbers from -101 to 100 and -1"),
                       fr::DataError);
}

TEST_CASE("code that runs out of memory says so, and Accumulate<Auto> takes smaller parts") {
  FakePackage const from = FakePackage::of("hungry-step.so");
  fr::StepPackage const package(from.path());
  auto module = package.module();
  auto objective = package.objective();
  CHECK_THROWS_AS(objective(module, fr::Batch{torch::ones({4, 3}), torch::ones({4, 1})}),
                  c10::OutOfMemoryError);
  fr::Settings const settings{.epochs = 2};
  auto const one =
      of_package(from, settings, fr::Optimize<fr::SGD>{.lr = 0.01}, fr::Accumulate<fr::Auto>{});
  auto const other = of_module(settings, fr::Optimize<fr::SGD>{.lr = 0.01});
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(at::allclose(one[i], other[i], 1e-6, 1e-7));
}

/// Doubles the loss, as a policy that adds a penalty would change it.
struct Doubled {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "Doubled";
  };
  using listens = fr::list<fr::around::forward>;
  struct State {
    explicit State(Doubled const&) {}
    template <class Next>
    fr::Loss around_forward(fr::Forward const&, Next&& next) {
      fr::Loss loss = next();
      loss.value = loss.value * 2;
      return loss;
    }
  };
};

TEST_CASE("the package refuses a loss that a policy has changed") {
  FakePackage const from;
  fr::StepPackage const package(from.path());
  fr::Trainer trainer{package.module(), package.objective(), fr::Optimize<fr::SGD>{}, Doubled{}};
  auto train = data();
  CHECK_THROWS_WITH_AS(trainer.fit(train), doctest::Contains("loss was changed"), fr::ModuleError);
}

TEST_CASE("the recipe's precision must be that of the export") {
  fr::Batch const batch{torch::ones({2, 3}), torch::ones({2, 1})};
  auto train = data();
  FakePackage const single, half([](Json& all) { all["precision"] = "BF16"; });
  auto const fit = [&](FakePackage const& from, auto precision) {
    fr::StepPackage const package(from.path());
    fr::Trainer trainer{package.module(), package.objective(), fr::Optimize<fr::SGD>{}, precision};
    trainer.fit(train);
  };
  CHECK_THROWS_WITH_AS(fit(single, fr::Precision<fr::BF16>{}),
                       doctest::Contains("was exported for FP32, and the recipe computes in BF16"),
                       fr::SettingsError);
  CHECK_THROWS_WITH_AS(fit(half, fr::Precision<fr::FP32>{}),
                       doctest::Contains("Write Precision<BF16>"), fr::SettingsError);
  CHECK_NOTHROW(fit(half, fr::Precision<fr::BF16>{}));
}

TEST_CASE(
    "FP16 starts the backward pass from the loss scale, and skips overflows as a module does") {
  FakePackage const package([](Json& all) { all["precision"] = "FP16"; });
  fr::StepPackage const opened(package.path());
  fr::Trainer trainer{
      opened.module(), opened.objective(), fr::Settings{.epochs = 2},
      fr::Optimize<fr::SGD>{.lr = 0.01},
      fr::Precision<fr::FP16>{.scaling = {.initial = 0x1p127, .growth_interval = 3}}};
  auto train = data();
  fr::Report const report = trainer.fit(train);
  CHECK(report.non_finite_windows > 0);
  // The same in FP32, for the windows that were not skipped: powers of two round nothing.
  CHECK(report.steps + report.non_finite_windows == 22);
  for (at::Tensor const& each : trainer.module()->parameters())
    CHECK(each.isfinite().all().item<bool>());
}

TEST_CASE("code that does not do as the manifest says is refused before a weight changes") {
  auto const fit = [](FakePackage const& from) {
    fr::StepPackage const package(from.path());
    fr::Trainer trainer{package.module(), package.objective(), fr::Optimize<fr::SGD>{}};
    auto train = data();
    auto const before = tensors(*trainer.module());
    std::string error;
    try {
      trainer.fit(train);
    } catch (fr::Error const& thrown) {
      error = thrown.what();
    }
    CHECK(at::equal(before[0], tensors(*trainer.module())[0]));
    return error;
  };
  CHECK(fit(FakePackage::of("aliased-step.so")).find("not of their own memory") !=
        std::string::npos);
  CHECK(fit(FakePackage::of("short-step.so")).find("returned 4 tensors") != std::string::npos);
  CHECK(fit(FakePackage::of("fails-step.so")).find("a step package's code failed") !=
        std::string::npos);
}

TEST_CASE("two runs may share a package") {
  FakePackage const from;
  fr::StepPackage const package(from.path());
  auto const train = [&] {
    fr::Trainer trainer{package.module(), package.objective(), fr::Optimize<fr::SGD>{.lr = 0.01}};
    auto source = data();
    trainer.fit(source);
    return tensors(*trainer.module());
  };
  CHECK(same(train(), train()));
}

TEST_CASE("another machine is refused before its code is loaded") {
  auto const open = [](auto&& change) { fr::StepPackage(FakePackage(change).path()); };
  CHECK_THROWS_WITH_AS(open([](Json& all) { all["torch"] = "2.3.0"; }),
                       doctest::Contains("exported with 2.3.0, and this program has"),
                       fr::DeviceError);
  CHECK_THROWS_WITH_AS(open([](Json& all) { all["instructions"].push_back("amx_of_tomorrow"); }),
                       doctest::Contains("it needs amx_of_tomorrow"), fr::DeviceError);
  CHECK_THROWS_WITH_AS(open([](Json& all) { all["architecture"] = "aarch64"; }),
                       doctest::Contains("aarch64"), fr::DeviceError);
  CHECK_THROWS_AS(fr::StepPackage(FakePackage().path(), at::Device(at::kCUDA)), fr::DeviceError);
  FakePackage const broken;
  std::ofstream(broken / "step-0.so") << "no library";
  Json all = broken.manifest;
  all["programs"][0].update(broken.of_file("step-0.so"));
  broken.write(all);
  CHECK_THROWS_WITH_AS(fr::StepPackage(broken.path()), doctest::Contains("cannot be loaded"),
                       fr::FormatError);
}

TEST_CASE("weights of another module are refused") {
  FakePackage const package;
  torch::nn::Linear other(3, 2);
  fr::save_weights(*other, package.path());
  Json all = package.manifest;
  all["weights"] = package.of_file("model.safetensors");
  package.write(all);
  CHECK_THROWS_AS(fr::StepPackage(package.path()).module(), fr::StateError);
}

TEST_CASE("the module of another package is refused, that of a second opening is not") {
  FakePackage const from, same, other([](Json& all) { all["programs"][0]["graph"] = "another"; });
  fr::Batch const batch{torch::ones({2, 3}), torch::ones({2, 1})};
  auto objective = fr::StepPackage(from.path()).objective();
  auto module = fr::StepPackage(same.path()).module();
  CHECK_NOTHROW(objective(module, batch));
  module = fr::StepPackage(other.path()).module();
  CHECK_THROWS_WITH_AS(objective(module, batch), doctest::Contains("the module of another package"),
                       fr::ModuleError);
}

TEST_CASE("a parameter that was frozen in Python cannot be trained from C++") {
  FakePackage const from(
      [](Json& all) {
        all["parameters"][1]["trained"] = false;
        all["programs"][0]["outputs"].erase(4);
      },
      "short-step.so");
  fr::StepPackage const package(from.path());
  auto objective = package.objective();
  auto module = package.module();
  fr::Batch const batch{torch::ones({2, 3}), torch::ones({2, 1})};
  CHECK_NOTHROW(objective(module, batch));
  module->named_parameters()["bias"].set_requires_grad(true);
  CHECK_THROWS_WITH_AS(objective(module, batch), doctest::Contains("'bias' is to be trained"),
                       fr::ModuleError);
}

TEST_CASE("a layer whose statistics the code changes cannot be frozen from C++") {
  FakePackage const from([](Json& all) {
    all["buffers"][0]["name"] = "norm.seen";
    all["programs"][0]["outputs"][2] = "buffer:norm.seen";
  });
  auto const norm = std::make_shared<torch::nn::Module>();
  norm->register_buffer("seen", torch::zeros({}, torch::kLong));
  torch::nn::Module root;
  root.register_parameter("weight", torch::ones({1, 3}));
  root.register_parameter("bias", torch::zeros({1}));
  root.register_module("norm", norm);
  fr::save_weights(root, from.path());
  Json all = from.manifest;
  all["weights"] = from.of_file("model.safetensors");
  from.write(all);
  fr::StepPackage const package(from.path());
  auto objective = package.objective();
  auto module = package.module();
  fr::Batch const batch{torch::ones({2, 3}), torch::ones({2, 1})};
  CHECK_NOTHROW(objective(module, batch));
  module->named_modules()["norm"]->eval();
  CHECK_THROWS_WITH_AS(objective(module, batch),
                       doctest::Contains("'norm.seen' is frozen, or in evaluation mode"),
                       fr::ModuleError);
  module->eval();
  CHECK_NOTHROW(objective(module, batch));
}

TEST_CASE(
    "a package that was replaced in its place is refused by a process that has the old code") {
  FakePackage const from;
  fr::StepPackage const first(from.path());
  std::ofstream(from / "step-0.so", std::ios::app) << "another export";
  Json all = from.manifest;
  all["programs"][0].update(from.of_file("step-0.so"));
  from.write(all);
  CHECK_THROWS_WITH_AS(fr::StepPackage(from.path()),
                       doctest::Contains("was replaced after this process"), fr::FormatError);
}

TEST_CASE("update_batch_norm refuses compiled BatchNorm") {
  FakePackage const from([](Json& all) {
    all["statistics"] = Json::array(
        {{{"mean", "seen"}, {"variance", "seen"}, {"tracked", "seen"}, {"momentum", 0.1}}});
  });
  fr::StepPackage const package(from.path());
  auto module = package.module();
  auto source = data();
  CHECK_THROWS_WITH_AS(fr::update_batch_norm(module, source),
                       doctest::Contains("BatchNorm layers are compiled code"), fr::ModuleError);
}

}  // namespace frugal_test::step_package

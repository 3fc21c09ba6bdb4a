// SPDX-License-Identifier: Apache-2.0
#include <frugal/model/distill.hpp>

#include <doctest/doctest.h>

#include <frugal/data/pad.hpp>
#include <frugal/data/tensor_dataset.hpp>
#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/precision.hpp>
#include <frugal/policy/recompute.hpp>
#include <frugal/trainer.hpp>

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "support/reference.hpp"
#include "support/running.hpp"

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::model_distill {

using namespace frugal;
using namespace frugal_test::support;

/// Returns its input: the batch's data are the student's logits.
struct Identity : torch::nn::Module {
  at::Tensor forward(at::Tensor const& data) { return data; }
};

/// Always says the same.
struct Says : torch::nn::Module {
  explicit Says(at::Tensor what) : logits(register_buffer("logits", std::move(what))) {}
  at::Tensor forward(at::Tensor const&) { return logits; }
  at::Tensor logits;
};

Mlp student() { return Mlp({.hidden = 8}); }
Mlp big() {
  Mlp teacher({.hidden = 16});
  at::NoGradGuard const no_gradients;
  for (at::Tensor& each : teacher.parameters()) each *= 3;
  return teacher;
}

/// The reference's logits through the objective, of teachers that ran or of their cached outputs.
template <class Option>
Loss loss_of(Json const& which, at::Tensor const& logits, bool cached) {
  auto const shape = shape_in(which.at("shape"));
  Distill<Option> distill{.alpha = which.at("alpha")};
  std::vector<at::Tensor> outputs, classes;
  auto taught_by = std::make_shared<TeacherOutputs>();
  taught_by->top_k = which.at("top_k");
  taught_by->temperature = which.at("temperature");
  for (std::size_t j = 0; j < which.at("teachers").size(); ++j) {
    at::Tensor const said = tensor_in(which.at("teachers")[j], shape);
    double const weight = which.at("weights")[j];
    distill.teachers.emplace_back(Says(said), TeacherOptions{.weight = weight});
    taught_by->weights.push_back(weight);
    if (taught_by->top_k == 0) {
      outputs.push_back(said);
      continue;
    }
    at::Tensor const log = at::log_softmax(said.to(at::kDouble) / taught_by->temperature, 1);
    auto const [values, largest] = log.topk(taught_by->top_k, 1);
    outputs.push_back(at::cat({values, (1 - values.exp().sum(1, true)).log()}, 1).to(at::kFloat));
    classes.push_back(largest.to(at::kInt));
  }
  Identity module;
  Batch const batch{logits,
                    tensor_in(which.at("target"), shape_in(which.at("target_shape")), at::kLong)};
  auto objective = distill.objective(CrossEntropy{});
  if (!cached) return objective(module, batch);
  distill.teachers.clear();
  auto of_cache = distill.objective(CrossEntropy{});
  return of_cache(module, frugal::detail::taught(
                              batch, at::stack(outputs, 1),
                              classes.empty() ? at::Tensor() : at::stack(classes, 1), taught_by));
}

TEST_CASE("the loss is PyTorch's, and so is its gradient") {
  Json const file = reference("distill.json");
  int cases = 0;
  for (Json const& which : file.at("logits")) {
    CAPTURE(which.at("name").get<std::string>());
    at::Tensor const expected = tensor_in(which.at("gradient"), shape_in(which.at("shape")));
    bool const top = which.at("top_k") != 0;
    for (bool const cached : {false, true}) {
      if (top && !cached) continue;
      CAPTURE(cached);
      at::Tensor const logits =
          tensor_in(which.at("student"), shape_in(which.at("shape"))).requires_grad_();
      Loss const loss = which.at("temperature") == 4.0
                            ? loss_of<Temperature<4>>(which, logits, cached)
                            : loss_of<Temperature<Rational{5, 2}>>(which, logits, cached);
      loss.value.backward();
      CHECK(loss.value.item<double>() ==
            doctest::Approx(which.at("value").get<double>()).epsilon(1e-6));
      CHECK(distance(logits.grad(), expected) < 1e-6);
      ++cases;
    }
  }
  CHECK(cases == 11);
}

TEST_CASE("in evaluation mode the loss is that of the objective alone") {
  Mlp module = student();
  Distill<Temperature<4>> const distill{.teachers = {Teacher(big())}, .alpha = 0.5};
  auto objective = distill.objective(CrossEntropy{});
  Batch const batch = samples(12);
  module.eval();
  CHECK(objective(module, batch).value.equal(CrossEntropy{}(module, batch).value));
  module.train();
  Loss const loss = objective(module, batch);
  CHECK_FALSE(loss.value.equal(CrossEntropy{}(module, batch).value));
  CHECK(*loss.weight == 12);
  std::vector<std::string> names;
  for (auto const& each : loss.scalars) names.push_back(each.name);
  CHECK(names == std::vector<std::string>{"distill_outputs", "task"});
}

TEST_CASE("micro-batches add up to one batch, ignored labels left out") {
  auto const fit = [](auto accumulate, std::int64_t batch) {
    Mlp module = student();
    Batch set = samples(24);
    set.target.slice(0, 0, 24, 5).fill_(ignored_label);
    TensorDataset train(set.data, set.target, {.batch = batch, .shuffle = false});
    Distill<Temperature<4>> const distill{.teachers = {Teacher(big())}, .alpha = 0.7};
    Trainer trainer{module,     distill.objective(CrossEntropy{}),
                    Settings{}, Optimize<SGD>{.lr = 0.5},
                    accumulate, distill};
    trainer.fit(train);
    return tensors_of(trainer.module());
  };
  auto const whole = fit(Accumulate<1>{}, 24);
  auto const parts = fit(Accumulate<4>{}, 6);
  for (auto const& [name, tensor] : whole) CHECK(distance(tensor, parts.at(name)) < 1e-6);
}

TEST_CASE("hidden states of other widths go through a projection that is trained") {
  Mlp module = student();
  Distill<Temperature<4>> const distill{
      .teachers = {Teacher(big())},
      .alpha = 0.5,
      .hidden = {{.student = "first", .teacher = "first", .weight = 2},
                 {.student = "second", .teacher = "second"}}};
  TensorDataset train(samples(24), {.batch = 6});
  torch::manual_seed(5);
  Trainer trainer{module, distill.objective(CrossEntropy{}), Settings{.epochs = 2},
                  Optimize<AdamW>{.lr = 0.05}, distill};
  adapt(trainer.module(), distill);
  auto const before = tensors_of(trainer.module());
  REQUIRE(before.contains("distill_projection.0"));
  CHECK_FALSE(before.contains("distill_projection.1"));  // both have three classes
  CHECK(before.at("distill_projection.0").sizes() == at::IntArrayRef{16, 8});
  trainer.fit(train);
  auto const after = tensors_of(trainer.module());
  CHECK(after.size() == before.size());
  CHECK_FALSE(after.at("distill_projection.0").equal(before.at("distill_projection.0")));

  // The loss is the sum that its parts say.
  trainer.module().train();
  auto objective = distill.objective(CrossEntropy{});
  Loss const loss = objective(trainer.module(), samples(6));
  std::map<std::string, double> part;
  for (auto const& each : loss.scalars) part[each.name] = each.tensor.item<double>();
  CHECK(loss.value.item<double>() ==
        doctest::Approx(0.5 * part.at("distill_outputs") + 0.5 * part.at("task") +
                        2 * part.at("distill_hidden_0") + part.at("distill_hidden_1")));

  remove_projection(trainer.module());
  CHECK(tensors_of(trainer.module()).size() == before.size() - 1);
  // Its place in the module is gone: no loss is computed that would not be trained.
  Distill<Temperature<4>> const fresh{.teachers = {Teacher(big())}, .hidden = distill.hidden};
  auto lacking = fresh.objective(CrossEntropy{});
  CHECK_THROWS_WITH_AS(lacking(trainer.module(), samples(6)), doctest::Contains("adapt(module"),
                       StateError);
}

TEST_CASE("the terms of layers are those of the states that the layers gave") {
  Mlp module = student();
  Mlp teacher = big();
  Distill<Temperature<4>> const distill{
      .teachers = {Teacher(teacher)},
      .alpha = 0,
      .hidden = {{.student = "second", .teacher = "second", .weight = 3}}};
  auto objective = distill.objective(CrossEntropy{});
  Batch const batch = samples(6);
  Loss const loss = objective(module, batch);
  at::Tensor const mine = module.forward(batch.data);
  at::Tensor const its = teacher.forward(batch.data).detach();
  at::Tensor const expected =
      at::cross_entropy_loss(mine, batch.target) + 3 * at::mse_loss(mine, its);
  CHECK(distance(loss.value, expected) < 1e-6);
  loss.value.backward();
  at::Tensor const gradient = module.first->weight.grad().clone();
  module.zero_grad();
  expected.backward();
  CHECK(distance(module.first->weight.grad(), gradient) < 1e-6);
  CHECK_FALSE(teacher.first->weight.grad().defined());
}

TEST_CASE("attention maps of convolutions, and of queries and keys") {
  auto const convolutions = [](std::int64_t channels, std::uint64_t seed) {
    torch::manual_seed(seed);
    return torch::nn::Sequential(
        torch::nn::Conv2d(torch::nn::Conv2dOptions(1, channels, 3).padding(1)),
        torch::nn::Flatten(), torch::nn::Linear(channels * 16, 3));
  };
  auto module = convolutions(2, 1);
  auto teacher = convolutions(5, 2);
  Distill<Temperature<1>> const distill{
      .teachers = {Teacher(teacher)},
      .alpha = 0,
      .attention = {{.student = {"0"}, .teacher = {"0"}, .weight = 10}}};
  auto objective = distill.objective(CrossEntropy{});
  Batch const batch{table({4, 1, 4, 4}, 7, 1), torch::zeros({4}, torch::kLong)};
  double const value = objective(module, batch).value.item<double>();
  double const task = CrossEntropy{}(module, batch).value.item<double>();
  auto const map = [&](torch::nn::Sequential& of) {
    at::Tensor const flat =
        (*of)[0]->as<torch::nn::Conv2d>()->forward(batch.data).pow(2).mean(1).flatten(1);
    return flat / flat.norm(2, {1}, true);
  };
  CHECK(value == doctest::Approx(task + 10 * at::mse_loss(map(module), map(teacher)).item<double>())
                     .epsilon(1e-6));

  /// Self-attention over positions, with layers of their own for queries and keys.
  struct Attends : torch::nn::Module {
    explicit Attends(std::int64_t width)
        : query(register_module("query", torch::nn::Linear(4, width))),
          key(register_module("key", torch::nn::Linear(4, width))),
          out(register_module("out", torch::nn::Linear(4, 3))) {}
    at::Tensor forward(at::Tensor const& x) {
      at::Tensor const scores = query->forward(x).matmul(key->forward(x).transpose(1, 2)) /
                                std::sqrt(static_cast<double>(query->weight.size(0)));
      probabilities = at::softmax(scores, -1);
      return out->forward(probabilities.matmul(x)).mean(1);
    }
    torch::nn::Linear query, key, out;
    at::Tensor probabilities;
  };
  torch::manual_seed(3);
  auto small = std::make_shared<Attends>(4);
  auto large = std::make_shared<Attends>(6);
  Distill<Temperature<1>> const attentive{
      .teachers = {Teacher(large)},
      .alpha = 0,
      .attention = {{.student = {"query", "key"}, .teacher = {"query", "key"}}}};
  auto of_attention = attentive.objective(CrossEntropy{});
  Batch const rows{table({4, 5, 4}, 8, 1), torch::zeros({4}, torch::kLong)};
  Loss const loss = of_attention(*small, rows);
  at::Tensor const p = large->probabilities.detach(), q = small->probabilities;
  double const divergence = (p * (p.log() - q.log())).sum(-1).mean().item<double>();
  CHECK(loss.value.item<double>() ==
        doctest::Approx(CrossEntropy{}(*small, rows).value.item<double>() + divergence)
            .epsilon(1e-5));
}

TEST_CASE("a regression is distilled by its squared error") {
  torch::nn::Linear module(4, 2), teacher(4, 2);
  Distill<SquaredError> const distill{.teachers = {Teacher(teacher)}, .alpha = 0.25};
  auto objective = distill.objective(MeanSquaredError{});
  Batch const batch{table({5, 4}, 9, 1), table({5, 2}, 9, 2)};
  at::Tensor const mine = module->forward(batch.data), its = teacher->forward(batch.data);
  CHECK(
      objective(module, batch).value.item<double>() ==
      doctest::Approx(
          (0.25 * at::mse_loss(mine, its) + 0.75 * at::mse_loss(mine, batch.target)).item<double>())
          .epsilon(1e-6));
}

TEST_CASE("under recomputation and BF16 the layers of student and teacher are still seen") {
  auto const net = [](std::uint64_t seed) {
    torch::manual_seed(seed);
    return torch::nn::Sequential(torch::nn::Linear(6, 8), torch::nn::Tanh(),
                                 torch::nn::Linear(8, 8), torch::nn::Tanh(),
                                 torch::nn::Linear(8, 3));
  };
  auto const fit = [&](auto... policies) {
    auto module = net(1);
    Distill<Temperature<4>> const distill{.teachers = {Teacher(net(2))},
                                          .hidden = {{.student = "2", .teacher = "2"}}};
    TensorDataset train(samples(24), {.batch = 6});
    Trainer trainer{module,
                    distill.objective(CrossEntropy{}),
                    Settings{.epochs = 2},
                    Optimize<AdamW>{.lr = 0.01},
                    distill,
                    policies...};
    trainer.fit(train);
    return tensors_of(*module);
  };
  auto const plain = fit();
  CHECK(same_bits(fit(Recompute<>{}), plain));
  auto const half = fit(Precision<BF16>{});
  CHECK_FALSE(same_bits(half, plain));
  for (auto const& [name, tensor] : plain) CHECK(distance(half.at(name), tensor) < 0.05);
}

struct Ended {
  std::map<std::string, at::Tensor> module;
  std::map<std::uint64_t, Frozen> saved;
};

Ended run(double scale, Frozen const* from = nullptr) {
  Mlp teacher = big();
  {
    at::NoGradGuard const no_gradients;
    teacher.first->weight *= scale;
  }
  Distill<Temperature<4>> const distill{.teachers = {Teacher(teacher)},
                                        .hidden = {{.student = "first", .teacher = "first"}}};
  TensorDataset train(samples(24), {.batch = 6});
  Ended ended;
  torch::manual_seed(from == nullptr ? 1 : 2);  // a resume loads the projection
  Trainer trainer{student(),
                  distill.objective(CrossEntropy{}),
                  Settings{.epochs = 2},
                  Optimize<AdamW>{.lr = 0.05},
                  distill,
                  Resume{.from = from, .after_step = &ended.saved}};
  trainer.fit(train);
  ended.module = tensors_of(trainer.module());
  return ended;
}

TEST_CASE("a resumed run ends with the same bits, and with another teacher it is refused") {
  Ended const whole = run(1);
  for (std::uint64_t const step : {1U, 4U, 5U}) {
    CHECK(same_bits(run(1, &whole.saved.at(step)).module, whole.module));
  }
  CHECK_THROWS_WITH_AS(run(1.5, &whole.saved.at(3)), doctest::Contains("another teacher"),
                       StateError);
  // Neither the teacher nor its weights are in the checkpoint.
  CHECK(whole.saved.at(3).module.size() == 5);
  for (auto const& [name, tensor] : whole.saved.at(3).run.tensors) {
    CHECK(name.find("Distill") == std::string::npos);
  }
}

TEST_CASE("settings of the policy are those of the next fit, also in a second one") {
  Distill<Temperature<4>> const distill{.teachers = {Teacher(big())}, .alpha = 0};
  TensorDataset train(samples(24), {.batch = 6});
  auto const fit = [&](bool later) {
    Trainer trainer{student(), distill.objective(CrossEntropy{}), Settings{},
                    Optimize<SGD>{.lr = 0.1}, distill};
    if (later) trainer.template policy<frugal::kinds::distill>().alpha = 1;
    trainer.fit(train);
    return tensors_of(trainer.module());
  };
  Trainer plain{student(), CrossEntropy{}, Settings{}, Optimize<SGD>{.lr = 0.1}};
  plain.fit(train);
  CHECK(same_bits(fit(false), tensors_of(plain.module())));
  CHECK_FALSE(same_bits(fit(true), tensors_of(plain.module())));
}

TEST_CASE("a Distill that is used for many students keeps none of them") {
  Distill<Temperature<4>> const distill{.teachers = {Teacher(big())},
                                        .hidden = {{.student = "first", .teacher = "first"}}};
  TensorDataset train(samples(12), {.batch = 6});
  using Weak = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  std::optional<Weak> weight;
  {
    Trainer trainer{student(), distill.objective(CrossEntropy{}), Settings{},
                    Optimize<SGD>{.lr = 0.1}, distill};
    trainer.fit(train);
    weight = Weak(trainer.module().named_parameters()["first.weight"].getIntrusivePtr());
    CHECK_FALSE(weight->expired());
    CHECK(distill.lessons->of(trainer.module()) == nullptr);
  }
  CHECK(weight->expired());
}

TEST_CASE("what cannot be distilled is refused before the first step") {
  auto const begin = [](Distill<Temperature<4>> const& distill) {
    Mlp module = student();
    adapt(module, distill);
  };
  Teacher const teacher(big());
  CHECK_THROWS_AS(begin({.teachers = {teacher}, .alpha = 1.5}), SettingsError);
  CHECK_THROWS_AS(begin({.teachers = {teacher}, .alpha = std::nan("")}), SettingsError);
  CHECK_THROWS_AS(begin({.hidden = {{.student = "first", .teacher = "first"}}}), SettingsError);
  CHECK_THROWS_AS(begin({.teachers = {teacher},
                         .hidden = {{.student = "first", .teacher = "first", .number = 1}}}),
                  SettingsError);
  CHECK_THROWS_AS(begin({.teachers = {teacher},
                         .hidden = {{.student = "first", .teacher = "first", .weight = -1}}}),
                  SettingsError);
  CHECK_THROWS_WITH_AS(
      begin({.teachers = {teacher}, .hidden = {{.student = "frist", .teacher = "first"}}}),
      doctest::Contains("first second"), SettingsError);
  CHECK_THROWS_AS(begin({.teachers = {teacher},
                         .attention = {{.student = {"first", "second"}, .teacher = {"first"}}}}),
                  SettingsError);
  CHECK_THROWS_AS(begin({.teachers = {teacher},
                         .attention = {{.student = {"first", "first"},
                                        .teacher = {"first", "first"},
                                        .heads = 3}}}),
                  SettingsError);

  auto shared = std::make_shared<Mlp>(student());
  CHECK_THROWS_WITH_AS(adapt(shared, Distill<Temperature<4>>{.teachers = {Teacher(shared)}}),
                       doctest::Contains("parameters of the student"), SettingsError);

  Mlp module = student();
  auto nobody_teaches = Distill<Temperature<4>>{}.objective(CrossEntropy{});
  CHECK_THROWS_WITH_AS(nobody_teaches(module, samples(4)), doctest::Contains("no teacher"),
                       SettingsError);
  auto other_classes =
      Distill<Temperature<4>>{.teachers = {Teacher(Mlp({.classes = 5}))}}.objective(CrossEntropy{});
  CHECK_THROWS_AS(other_classes(module, samples(4)), ShapeError);
  auto const loss_alone = [](Mlp& net, Batch const& batch) {
    return at::cross_entropy_loss(net.forward(batch.data), batch.target);
  };
  auto silent = Distill<Temperature<4>>{.teachers = {teacher}}.objective(loss_alone);
  CHECK_THROWS_WITH_AS(silent(module, samples(4)), doctest::Contains("Loss::output"), ModuleError);
}

TEST_CASE("tokens of padded sequences are left out, as the labels say") {
  struct Tokens : torch::nn::Module {
    Tokens() : line(register_module("line", torch::nn::Linear(4, 3))) {}
    at::Tensor forward(at::Tensor const& x) { return line->forward(x).transpose(1, 2); }
    torch::nn::Linear line;  // [B, T, 4] to [B, 3, T]
  };
  torch::manual_seed(6);
  auto module = std::make_shared<Tokens>(), teacher = std::make_shared<Tokens>();
  Distill<Temperature<4>> const distill{.teachers = {Teacher(teacher)},
                                        .hidden = {{.student = "line", .teacher = "line"}}};
  auto objective = distill.objective(CrossEntropy{});
  auto const sample = [](std::int64_t length, std::uint32_t which) {
    return Batch{table({length, 4}, 30, which),
                 at::arange(length).remainder(3).index_fill(0, at::zeros({1}, at::kLong), -100)};
  };
  PaddedBatch const padded = Pad{}(std::vector{sample(5, 0), sample(2, 1)});
  Loss const loss = objective(module, padded);
  CHECK(*loss.weight == 5);
  double sum = 0, hidden = 0;
  for (auto const& each : {sample(5, 0), sample(2, 1)}) {
    Loss const alone = objective(module, Batch{each.data.unsqueeze(0), each.target.unsqueeze(0)});
    double of_layers = 0;
    for (auto const& scalar : alone.scalars) {
      if (scalar.name == "distill_hidden_0") of_layers = scalar.tensor.item<double>();
    }
    sum += (alone.value.item<double>() - of_layers) * *alone.weight;
    hidden += of_layers * static_cast<double>(each.data.size(0));
  }
  CHECK(loss.value.item<double>() == doctest::Approx(sum / 5 + hidden / 7).epsilon(1e-5));
}

TEST_CASE("a cache of another teacher, temperature or kind is refused") {
  Mlp module = student();
  Batch const batch = samples(4);
  auto by = std::make_shared<TeacherOutputs>(
      TeacherOutputs{.identity = "x", .weights = {1}, .top_k = 1, .temperature = 2});
  auto const taught =
      frugal::detail::taught(batch, at::zeros({4, 1, 2}), at::zeros({4, 1, 1}, at::kInt), by);
  auto const refuses = [&](auto const& distill) {
    auto objective = distill.objective(CrossEntropy{});
    CHECK_THROWS_AS(objective(module, taught), SettingsError);
  };
  refuses(Distill<Temperature<4>>{});
  refuses(Distill<SquaredError>{});
  refuses(Distill<Temperature<2>>{.teachers = {Teacher(big())}});
  refuses(Distill<Temperature<2>>{.teachers = {Teacher(big())},
                                  .hidden = {{.student = "second", .teacher = "second"}}});
  auto taken = Distill<Temperature<2>>{}.objective(CrossEntropy{});
  CHECK(std::isfinite(taken(module, taught).value.item<double>()));
}

}  // namespace frugal_test::model_distill

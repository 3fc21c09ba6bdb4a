// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>

#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/model/load_weights.hpp>
#include <frugal/policy/average.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/checkpoint/find.hpp>
#include <frugal/policy/checkpoint/weights.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/validate.hpp>
#include <frugal/trainer.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "support/files.hpp"
#include "support/running.hpp"

namespace frugal_test::policy_average {

using namespace frugal_test::support;
using frugal::Average;
using frugal::Ema;
using frugal::Epoch;
using frugal::Every;
using frugal::From;
using frugal::Optimize;
using frugal::SGD;
using frugal::Swa;
using frugal::TensorDataset;
using frugal::Weights;
namespace k = frugal::kinds;

/// The job of tests/reference/average.json.
struct File {
  Json file = reference("average.json");

  torch::nn::Sequential network() const {
    torch::nn::Sequential net(torch::nn::Linear(6, 8), torch::nn::BatchNorm1d(8), torch::nn::ReLU(),
                              torch::nn::Linear(8, 3));
    at::NoGradGuard const no_gradients;
    for (auto& item : net->named_parameters()) {
      Json const& start = file.at("start").at(item.key());
      item.value().copy_(tensor_in(start.at("values"), shape_in(start.at("shape"))));
    }
    return net;
  }
  frugal::Batch rows() const {
    return {tensor_in(file.at("data").at("values"), {40, 6}),
            at::tensor(file.at("target").get<std::vector<std::int64_t>>())};
  }
  TensorDataset batches() const { return TensorDataset(rows(), {.batch = 8, .shuffle = false}); }
};

/// float32 and float64 of the file differ by rounding alone: that distance is the tolerance.
void check_near(at::Tensor const& found, Json const& which, char const* part,
                std::string const& name) {
  auto const in = [&](char const* type, at::ScalarType as) {
    return tensor_in(which.at(type).at(part).at(name), found.sizes().vec(), as);
  };
  at::Tensor const expected = in("float64", at::kDouble);
  double const rounding = distance(in("float32", at::kFloat), expected);
  CAPTURE(name);
  CHECK(distance(found, expected) <= 4 * rounding + 1e-7);
}

template <class Rule>
void follows(std::string const& name) {
  CAPTURE(name);
  File const file;
  Json const& which = case_named(file.file.at("cases"), name);
  torch::nn::Sequential net = file.network();
  frugal::Trainer trainer{net, frugal::CrossEntropy{},
                          frugal::Settings{.epochs = file.file.at("epochs")},
                          Optimize<SGD>{.lr = file.file.at("lr")}, Average<Rule>{}};
  static_cast<void>(trainer.fit(file.batches()));
  auto const& average = trainer.template policy<k::average>();
  CHECK(average.weights().taken == which.at("float64").at("taken"));

  torch::nn::Sequential other = file.network();
  average.copy_into(other);
  for (auto const& item : other->named_parameters()) {
    check_near(item.value(), which, "average", item.key());
  }
  frugal::update_batch_norm(other, file.batches());
  for (auto const& item : other->named_buffers()) {
    if (item.key() == "1.num_batches_tracked") {
      CHECK(item.value().item<std::int64_t>() == 5);
    } else {
      check_near(item.value(), which, "statistics", item.key());
    }
  }
  other->eval();
  frugal::Batch const rows = file.rows();
  double const loss = at::cross_entropy_loss(other->forward(rows.data), rows.target).item<double>();
  CHECK(loss == doctest::Approx(which.at("float64").at("loss").get<double>()).epsilon(1e-5));
}

TEST_CASE("exponential averages and their statistics are those of PyTorch's AveragedModel") {
  follows<Ema<0.9>>("ema");
  follows<Ema<0.75, Every<4>>>("ema every 4 steps");
}

TEST_CASE("equal averages and their statistics are those of PyTorch's AveragedModel") {
  follows<Swa<From<10>, Every<3>>>("swa every 3 steps from step 10");
  follows<Swa<From<3, Epoch>>>("swa from epoch 3");
}

TEST_CASE("an average has the bits of a hand-written one, whose first value is the weights") {
  auto const module = std::make_shared<Mlp>();
  std::vector<at::Tensor> byhand;
  Spy spy{.each_step = [&](frugal::Counters const&) {
    at::NoGradGuard const no_gradients;
    std::vector<at::Tensor> const now = module->parameters();
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (byhand.size() < now.size()) {
        byhand.push_back(now[i].detach().clone());
      } else {
        byhand[i].lerp_(now[i], 1 - 0.8);
      }
    }
  }};
  frugal::Trainer trainer{module,
                          frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 2},
                          Optimize<SGD>{.lr = 0.5},
                          Average<Ema<>>{.rule = {.decay = 0.8}},
                          spy};
  static_cast<void>(trainer.fit(TensorDataset(samples(32), {.batch = 4})));
  auto const& found = trainer.policy<k::average>().weights();
  CHECK(found.taken == 16);
  std::size_t at = 0;
  for (auto const& item : module->named_parameters()) {
    CHECK(at::equal(found.tensors.at(item.key()), byhand[at++]));
  }
}

/// Records a weight, and its address, in every forward pass of a validation.
struct Look {
  std::vector<at::Tensor>* seen;
  std::vector<void const*>* places;
  template <class Module>
  frugal::Loss operator()(Module& module, frugal::Batch const& batch) const {
    if (!at::GradMode::is_enabled()) {
      seen->push_back(module->first->weight.detach().clone());
      places->push_back(module->first->weight.const_data_ptr());
    }
    return frugal::CrossEntropy{}(module, batch);
  }
};

TEST_CASE("a validation uses the averaged weights, without a copy, and training its own") {
  for (bool const validate : {true, false}) {
    auto const module = std::make_shared<Mlp>();
    void const* const place = module->first->weight.const_data_ptr();
    std::vector<at::Tensor> seen;
    std::vector<void const*> places;
    frugal::Trainer trainer{module,
                            Look{&seen, &places},
                            frugal::Settings{.epochs = 2},
                            Optimize<SGD>{.lr = 0.5},
                            Average<Ema<0.5>>{.validate = validate, .at_end = Weights::trained},
                            frugal::Validate<frugal::SanityBatches<0>>{}};
    static_cast<void>(
        trainer.fit(TensorDataset(samples(16), {.batch = 4}), TensorDataset(samples(8, 92))));
    at::Tensor const average = trainer.policy<k::average>().weights().tensors.at("first.weight");
    REQUIRE(seen.size() == 2);
    CHECK(at::equal(seen[1], average) == validate);
    CHECK(at::equal(seen[1], module->first->weight) == !validate);
    CHECK((places[1] == average.const_data_ptr()) == validate);
    CHECK((places[0] == places[1]));
    CHECK(module->first->weight.const_data_ptr() == place);
    CHECK_FALSE(at::equal(average, module->first->weight));
  }
}

TEST_CASE("before the first average a validation uses the trained weights") {
  auto const module = std::make_shared<Mlp>();
  void const* const place = module->first->weight.const_data_ptr();
  std::vector<at::Tensor> seen;
  std::vector<void const*> places;
  frugal::Trainer trainer{module,
                          Look{&seen, &places},
                          frugal::Settings{.epochs = 3},
                          Optimize<SGD>{},
                          Average<Swa<From<2, Epoch>>>{},
                          frugal::Validate<frugal::SanityBatches<0>>{}};
  static_cast<void>(
      trainer.fit(TensorDataset(samples(16), {.batch = 4}), TensorDataset(samples(8, 92))));
  CHECK(places[0] == place);
  CHECK(places[1] != place);
  CHECK(trainer.policy<k::average>().weights().taken == 2);
}

TEST_CASE("a run that averages ends with the same bits as one that does not") {
  auto const trained = [](auto... policies) {
    auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.5, .norm = true});
    frugal::Trainer trainer{module,
                            frugal::CrossEntropy{},
                            frugal::Settings{.epochs = 2},
                            Optimize<SGD>{.lr = 0.1, .momentum = 0.9},
                            frugal::Validate<Every<2>>{},
                            policies...};
    static_cast<void>(trainer.fit(TensorDataset(samples(30), {.batch = 8, .shuffle = true}),
                                  TensorDataset(samples(9, 92))));
    return tensors_of(*module);
  };
  CHECK(same_bits(trained(), trained(Average<>{.at_end = Weights::trained})));
  CHECK(same_bits(trained(), trained(Average<Swa<From<3>, Every<2>>>{.at_end = Weights::trained})));
  CHECK(same_bits(trained(), trained(Average<>{.validate = false})));
}

TEST_CASE("the run ends with the weights that were validated, or with those that at_end names") {
  for (bool const validate : {true, false}) {
    for (Weights const at_end : {Weights::validated, Weights::trained, Weights::averaged}) {
      auto const module = std::make_shared<Mlp>(Mlp::Shape{.norm = true});
      void const* const place = module->first->weight.const_data_ptr();
      frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 2},
                              Optimize<SGD>{.lr = 0.5},
                              Average<Ema<0.8>>{.validate = validate, .at_end = at_end}};
      TensorDataset valid(samples(9, 92), {.batch = 4});
      auto const report = trainer.fit(TensorDataset(samples(32), {.batch = 4}), valid);
      auto const& average = trainer.average().weights().tensors;
      bool const averaged =
          at_end == Weights::averaged || (at_end == Weights::validated && validate);
      CAPTURE(validate);
      CAPTURE(averaged);
      CHECK(same_bits(tensors_of(*module), average) == averaged);
      CHECK(module->first->weight.const_data_ptr() == place);
      // What was validated is what is evaluated, unless at_end says otherwise.
      CHECK((trainer.evaluate(valid) == report.last()) == (averaged == validate));
    }
  }
}

TEST_CASE("a preempted run keeps its trained weights, and ends as an undisturbed one") {
  TemporaryFolder const folder;
  auto const run = [&](std::string const& name, std::uint64_t stop_at) {
    auto const module = std::make_shared<Mlp>();
    std::stop_source stop;
    Spy spy{.each_step = [&](frugal::Counters const& now) {
      if (now.step == stop_at) stop.request_stop();
    }};
    frugal::Trainer trainer{
        module,
        frugal::CrossEntropy{},
        frugal::Settings{.run_dir = folder / name, .epochs = 2, .stop = stop.get_token()},
        Optimize<SGD>{.lr = 0.5},
        Average<Ema<0.8>>{},
        frugal::Checkpoint<Every<100>>{},
        spy};
    auto const report =
        trainer.fit(TensorDataset(samples(32), {.batch = 4}), TensorDataset(samples(8, 92)));
    CHECK(report.preempted == (stop_at != 0));
    bool const averaged = same_bits(tensors_of(*module), trainer.average().weights().tensors);
    CHECK(averaged == (stop_at == 0));
    return tensors_of(*module);
  };
  auto const whole = run("whole", 0);
  run("stopped", 5);
  CHECK(same_bits(run("stopped", 0), whole));
}

TEST_CASE("a validation that throws restores the weights") {
  auto const module = std::make_shared<Mlp>();
  void const* const place = module->first->weight.const_data_ptr();
  frugal::Trainer trainer{module,
                          frugal::CrossEntropy{},
                          frugal::Settings{},
                          Optimize<SGD>{},
                          frugal::Validate<Every<2>, frugal::SanityBatches<0>>{},
                          Average<>{}};
  frugal::Batch wrong = samples(8);
  wrong.data = wrong.data.slice(1, 0, 3).contiguous();
  CHECK_THROWS_AS(trainer.fit(TensorDataset(samples(16), {.batch = 4}), TensorDataset(wrong)),
                  frugal::ShapeError);
  CHECK(module->first->weight.const_data_ptr() == place);
  CHECK(module->first->weight.requires_grad());
  CHECK(trainer.policy<k::average>().averaged.get() == nullptr);
}

TEST_CASE("lent memory is returned when lending fails half-way") {
  std::vector<at::Tensor> const own{at::ones({2}).requires_grad_(), at::ones({2}).requires_grad_()};
  void const* const place = own[0].const_data_ptr();
  {
    frugal::detail::Lent lent(own);
    CHECK_THROWS(lent.lend({at::zeros({2}), at::Tensor()}));
    CHECK(own[0].const_data_ptr() != place);
  }
  CHECK(own[0].const_data_ptr() == place);
}

TEST_CASE("a graph that lives across a validation runs backward unaffected") {
  auto const gradients = [](bool lend) {
    Mlp module;
    frugal::Batch const batch = samples(8);
    at::Tensor const loss = at::cross_entropy_loss(module.forward(batch.data), batch.target);
    std::vector<at::Tensor> const parameters = module.parameters();
    if (lend) {
      std::vector<at::Tensor> others;
      for (at::Tensor const& each : parameters) others.push_back(at::zeros_like(each.detach()));
      frugal::detail::Lent lent(parameters);
      lent.lend(others);
      at::NoGradGuard const no_gradients;
      module.forward(batch.data);
    }
    loss.backward();
    std::map<std::string, at::Tensor> found;
    for (auto const& item : module.named_parameters()) found[item.key()] = item.value().grad();
    return found;
  };
  CHECK(same_bits(gradients(false), gradients(true)));
}

TEST_CASE("an update is one grouped operator, and nothing waits for it") {
  auto const per_step = [](auto... policies) {
    auto const run = [&](std::int64_t steps) {
      return operators_of([&] {
        frugal::Trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, frugal::Settings{},
                        Optimize<SGD>{}, policies...}
            .fit(TensorDataset(samples(4 * steps), {.batch = 4}));
      });
    };
    auto const few = run(3);
    auto many = run(7);
    for (auto const& [name, count] : few) many[name] -= count;
    return many;
  };
  auto with = per_step(Average<>{});
  CHECK(with["aten::_foreach_lerp_"] == 4);
  CHECK(with["aten::item"] == 0);
  CHECK(with["aten::_foreach_copy_"] == 0);
  CHECK(per_step(Average<Ema<0.9, Every<2>>>{})["aten::_foreach_lerp_"] == 2);
}

TEST_CASE("averages are in the checkpoint by name, and a resumed run has the same bits") {
  auto const run = [](std::filesystem::path const& folder, std::uint64_t steps) {
    frugal::Trainer trainer{std::make_shared<Mlp>(),
                            frugal::CrossEntropy{},
                            frugal::Settings{.run_dir = folder, .epochs = 3, .steps = steps},
                            Optimize<SGD>{.lr = 0.5},
                            Average<Swa<From<3>, Every<2>>>{},
                            frugal::Checkpoint<Every<100>>{}};
    static_cast<void>(trainer.fit(TensorDataset(samples(32), {.batch = 8, .shuffle = true})));
    return trainer.policy<k::average>().weights();
  };
  TemporaryFolder const whole;
  TemporaryFolder const parts;
  run(parts.path(), 5);
  auto const file =
      frugal::Safetensors::open(parts / "checkpoints/step-00000005" / "averaged.safetensors");
  CHECK(file.size() == 4);
  CHECK(file.find("first.weight").has_value());
  CHECK((file.metadata("format") == std::string_view("pt")));
  CHECK((file.metadata("validated") == std::string_view("true")));
  auto const rest =
      frugal::Safetensors::open(parts / "checkpoints/step-00000005" / "optimizer.safetensors");
  for (std::size_t i = 0; i < rest.size(); ++i) {
    CHECK(rest[i].name.find("Average") == std::string_view::npos);
  }
  auto const expected = run(whole.path(), 12);
  auto const found = run(parts.path(), 12);
  CHECK(expected.taken == 5);
  CHECK(found.taken == 5);
  CHECK(same_bits(expected.tensors, found.tensors));
}

/// Evaluates each checkpoint of a run that has metrics; returns how many these are.
template <class Trainer>
std::size_t metrics_are_those_of_the_weights(std::filesystem::path const& run, Trainer& trainer,
                                             TensorDataset& valid) {
  std::size_t count = 0;
  for (auto const& each : frugal::RunDirectory(run, frugal::Access::read).list().whole) {
    if (each.manifest.metrics.empty()) continue;
    CAPTURE(each.folder);
    frugal::load_weights(trainer.module(), each.folder);
    CHECK(trainer.evaluate(valid)["loss"] == each.manifest.metrics.at("loss"));
    ++count;
  }
  return count;
}

template <class AnAverage, class Validates>
std::size_t saves_what_it_validates(AnAverage const& average, Validates validates) {
  TemporaryFolder const folder;
  frugal::Trainer trainer{
      std::make_shared<Mlp>(Mlp::Shape{.norm = true}),
      frugal::CrossEntropy{},
      frugal::Settings{.run_dir = folder.path(), .epochs = 3},
      Optimize<SGD>{.lr = 0.5},
      average,
      validates,
      frugal::Checkpoint<Every<1, Epoch>, frugal::Keep<20>, frugal::KeepBest<>>{}};
  TensorDataset valid(samples(9, 92), {.batch = 4});
  static_cast<void>(trainer.fit(TensorDataset(samples(32), {.batch = 8}), valid));
  return metrics_are_those_of_the_weights(folder.path(), trainer, valid);
}

TEST_CASE("the metrics of a checkpoint are those of the weights that load_weights takes from it") {
  using PerEpoch = frugal::Validate<Every<1, Epoch>>;
  CHECK(saves_what_it_validates(Average<Ema<0.9>>{}, PerEpoch{}) == 3);
  CHECK(saves_what_it_validates(Average<Ema<0.9>>{.validate = false}, PerEpoch{}) == 3);
  CHECK(saves_what_it_validates(Average<Swa<From<2, Epoch>>>{}, PerEpoch{}) == 3);
}

TEST_CASE("an average that changes after its validation is saved without metrics, and apart") {
  // Four steps per epoch: the fourth validates, and the epoch's end then changes the average.
  using AtSteps = frugal::Validate<Every<4>>;
  CHECK(saves_what_it_validates(Average<Swa<From<1, Epoch>>>{}, AtSteps{}) >= 1);
  CHECK(saves_what_it_validates(Average<Swa<From<1, Epoch>>>{.validate = false}, AtSteps{}) == 3);
}

TEST_CASE("a file of averages has them under all names of a tied tensor") {
  struct Tied : torch::nn::Module {
    torch::nn::Linear in{6, 6}, out{6, 3};
    Tied() {
      register_module("in", in);
      register_module("out", out);
      register_parameter("again", in->weight);
    }
    at::Tensor forward(at::Tensor const& x) { return out->forward(in->forward(x).relu()); }
  };
  TemporaryFolder const folder;
  frugal::Trainer trainer{std::make_shared<Tied>(),
                          frugal::CrossEntropy{},
                          frugal::Settings{.run_dir = folder.path()},
                          Optimize<SGD>{.lr = 0.5},
                          Average<>{},
                          frugal::Checkpoint<Every<100>>{}};
  static_cast<void>(trainer.fit(TensorDataset(samples(32), {.batch = 8})));
  auto const newest = frugal::latest_checkpoint(folder.path());
  auto const file = frugal::Safetensors::open(newest / "averaged.safetensors");
  CHECK(file.size() == 5);
  CHECK(std::ranges::equal(file.at("again").bytes, file.at("in.weight").bytes));
  Tied other;
  CHECK(frugal::load_weights(other, newest).complete());
  CHECK(other.in->weight.equal(trainer.average().weights().tensors.at("again")));
}

TEST_CASE("a run that ends before the first average reports that, and has none") {
  frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, frugal::Settings{},
                          Optimize<SGD>{}, Average<Swa<From<5, Epoch>>>{}};
  auto const report = trainer.fit(TensorDataset(samples(8)));
  REQUIRE(report.warnings.size() == 2);
  // Before the first step, with both numbers.
  CHECK(report.warnings[0] ==
        "Average: Swa averages from epoch 5 on, and the run ends after epoch 1");
  CHECK(report.warnings[1] == "Average: the run ended before the first average");
  CHECK_THROWS_AS(trainer.policy<k::average>().weights(), frugal::StateError);
}

TEST_CASE("averages do not fit another module, which is unchanged") {
  frugal::Trainer trainer{std::make_shared<Mlp>(Mlp::Shape{.norm = true}), frugal::CrossEntropy{},
                          frugal::Settings{}, Optimize<SGD>{}, Average<>{}};
  static_cast<void>(trainer.fit(TensorDataset(samples(8))));
  auto const& average = trainer.policy<k::average>();
  for (Mlp::Shape const& shape : {Mlp::Shape{}, Mlp::Shape{.classes = 4, .norm = true}}) {
    Mlp other(shape);
    auto const before = tensors_of(other);
    CHECK_THROWS_AS(average.copy_into(other), frugal::StateError);
    CHECK(same_bits(before, tensors_of(other)));
  }
}

TEST_CASE("a run-time decay must lie between 0 and 1") {
  for (double const decay : {0.0, 1.0, -0.5, std::nan("")}) {
    frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, frugal::Settings{},
                            Optimize<SGD>{}, Average<>{.rule = {.decay = decay}}};
    CHECK_THROWS_AS(trainer.fit(TensorDataset(samples(8))), frugal::SettingsError);
  }
}

TEST_CASE("From counts its unit") {
  using frugal::Counters;
  static_assert(From<3>{}.reached({.step = 3}) && !From<3>{}.reached({.step = 2}));
  static_assert(From<3, Epoch>{}.reached({.epoch = 3}) && !From<3, Epoch>{}.reached({.step = 9}));
  static_assert(From<3, frugal::MicroBatch>{}.reached({.micro_batch = 3}));
  static_assert(From<3, frugal::Sample>{}.reached({.sample = 4}));
  static_assert(!From<3, frugal::Token>{}.reached({.token = 2}));
}

TEST_CASE("update_batch_norm restores modes and momenta, and after an error the statistics") {
  Mlp module(Mlp::Shape{.dropout = 0.5, .norm = true});
  module.eval();
  auto const before = tensors_of(module);
  CHECK_THROWS_AS(frugal::update_batch_norm(module, std::vector<at::Tensor>{}), frugal::DataError);
  CHECK(same_bits(before, tensors_of(module)));
  int calls = 0;
  auto const failing = [&](Mlp& net, at::Tensor const& batch) {
    net.forward(batch);
    if (++calls == 2) throw std::runtime_error("no more");
  };
  std::vector<at::Tensor> const batches{samples(8).data, samples(8, 92).data};
  CHECK_THROWS_AS(frugal::update_batch_norm(module, batches, failing), std::runtime_error);
  CHECK(same_bits(before, tensors_of(module)));
  frugal::update_batch_norm(module, batches);
  CHECK_FALSE(same_bits(before, tensors_of(module)));
  CHECK(module.norm->options.momentum() == 0.1);
  CHECK_FALSE(module.is_training());
  CHECK_FALSE(module.norm->is_training());
}

TEST_CASE("update_batch_norm keeps the statistics of layers that it cannot compute") {
  torch::nn::Sequential net(torch::nn::Linear(4, 3), torch::nn::BatchNorm1d(3),
                            torch::nn::BatchNorm1d(3));
  auto& held = *net[1]->as<torch::nn::BatchNorm1d>();
  auto& unused = *net[2]->as<torch::nn::BatchNorm1d>();
  at::NoGradGuard const no_gradients;
  for (auto* const each : {&held, &unused}) each->running_mean.fill_(7);
  held.eval();  // as programs freeze it by hand
  auto const first_two = [&](auto&, at::Tensor const& rows) {
    held.forward(net[0]->as<torch::nn::Linear>()->forward(rows));
  };
  std::vector<at::Tensor> const batches{torch::randn({8, 4})};
  frugal::update_batch_norm(net, batches, first_two);
  CHECK((held.running_mean == 7).all().item<bool>());
  CHECK((unused.running_mean == 7).all().item<bool>());
  CHECK(unused.options.momentum() == 0.1);
  net->train();
  frugal::update_batch_norm(net, batches, first_two);
  CHECK_FALSE((held.running_mean == 7).any().item<bool>());
  CHECK((unused.running_mean == 7).all().item<bool>());
}

/// One parameter in BF16, which each step moves by the last bit of 1.
struct Growing : torch::nn::Module {
  at::Tensor weight{register_parameter("weight", at::ones({2}).to(at::kBFloat16))};
  at::Tensor forward(at::Tensor const& x) { return weight * x; }
};

TEST_CASE(
    "weights of 16 bits have averages in FP32, which steps smaller than their last bit move") {
  auto const module = std::make_shared<Growing>();
  at::Tensor byhand;
  std::vector<at::Tensor> measured;
  Spy spy{.each_step = [&](frugal::Counters const&) {
    at::Tensor const now = module->weight.detach().to(at::kFloat);
    byhand = byhand.defined() ? byhand.lerp(now, 1 - 0.999) : now;
  }};
  auto const loss = [&](std::shared_ptr<Growing>& net, frugal::Batch const& batch) {
    if (!at::GradMode::is_enabled()) measured.push_back(net->weight.detach().clone());
    return frugal::Loss{.value = -net->forward(batch.data.to(at::kBFloat16)).sum()};
  };
  frugal::Trainer trainer{module,
                          loss,
                          frugal::Settings{.epochs = 20},
                          Optimize<SGD>{.lr = 0.0078125},
                          Average<>{},
                          frugal::Validate<>{},
                          spy};
  TensorDataset train(at::ones({8, 2}), at::zeros({8}, at::kLong), {.batch = 1});
  TensorDataset valid(at::ones({1, 2}), at::zeros({1}, at::kLong), {.batch = 1, .shuffle = false});
  static_cast<void>(trainer.fit(train, valid));
  at::Tensor const found = trainer.policy<k::average>().weights().tensors.at("weight");
  REQUIRE((found.scalar_type() == at::kFloat));
  CHECK(at::equal(found, byhand));
  CHECK(found[0].item<float>() > 1.05);
  // What is measured and left in the module is the average, rounded.
  CHECK((measured.back().scalar_type() == at::kBFloat16));
  CHECK(at::equal(measured.back(), byhand.to(at::kBFloat16)));
  CHECK(at::equal(module->weight, byhand.to(at::kBFloat16)));
}

TEST_CASE("an average is not copied into a module whose type ends before it") {
  torch::nn::Linear half(1, 1);
  half->to(at::kHalf);
  frugal::AveragedWeights const large{
      .tensors = {{"weight", at::full({1, 1}, 1e5)}, {"bias", at::zeros({1})}}, .taken = 1};
  at::Tensor const before = half->weight.detach().clone();
  CHECK_THROWS_WITH_AS(large.copy_into(half), doctest::Contains("beyond the numbers"),
                       frugal::StateError);
  CHECK(at::equal(half->weight, before));
}

/// What a policy compares with its checkpoint.
struct Compared {
  std::map<std::string, double> numbers{};
  void compare_in_processes(std::string const& name, double value) { numbers[name] = value; }
};

TEST_CASE("the start and the cadence of Swa are compared with those of a checkpoint") {
  Compared found;
  frugal::detail::compare_numbers(found, "", frugal::Swa<frugal::From<20, Epoch>>{});
  CHECK(found.numbers == std::map<std::string, double>{{"every", 1}, {"from", 20}});
}

}  // namespace frugal_test::policy_average

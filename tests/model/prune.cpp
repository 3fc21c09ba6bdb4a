// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>

#include <frugal/model/load_weights.hpp>
#include <frugal/model/prune.hpp>
#include <frugal/policy/average.hpp>
#include <frugal/policy/checkpoint.hpp>
#include <frugal/policy/checkpoint/weights.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/rollback.hpp>
#include <frugal/policy/skip_non_finite.hpp>
#include <frugal/trainer.hpp>

#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <sstream>
#include <stop_token>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "support/running.hpp"

namespace frugal_test::model_prune {

using namespace frugal_test::support;
using frugal::AdamW;
using frugal::Cubic;
using frugal::Every;
using frugal::From;
using frugal::Global;
using frugal::Magnitude;
using frugal::Movement;
using frugal::NofM;
using frugal::Optimize;
using frugal::Prune;
using frugal::SGD;
using frugal::Sparsity;
using frugal::TensorDataset;
using frugal::Where;
namespace k = frugal::kinds;

/// The layers of tests/reference/prune.json.
struct Layers : torch::nn::Module {
  Layers() {
    at::NoGradGuard const no_gradients;
    std::uint32_t number = 0;
    for (auto const& child : named_children()) {
      for (auto& item : child.value()->named_parameters()) {
        std::uint32_t const which = number + (item.key() == "bias" ? 10 : 0);
        item.value().copy_(table(item.value().sizes().vec(), 70, which));
      }
      ++number;
    }
  }
  torch::nn::Linear first = register_module("first", torch::nn::Linear(6, 8));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(8, 3));
  torch::nn::Conv2d conv =
      register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 6, 3)));
};

/// A loss with a gradient for every parameter.
struct SumOfSquares {
  template <class Module>
  at::Tensor operator()(Module& module, at::Tensor const& batch) const {
    at::Tensor sum = batch.sum() * 0;
    for (at::Tensor const& each : module->parameters()) sum = sum + each.square().sum();
    return sum;
  }
};

/// A loss whose gradient is 1 for every weight, pruned or not.
struct Sum {
  template <class Module>
  at::Tensor operator()(Module& module, at::Tensor const& batch) const {
    at::Tensor sum = batch.sum() * 0;
    for (at::Tensor const& each : module->parameters()) sum = sum + each.sum();
    return sum;
  }
};

std::vector<at::Tensor> const one_batch{at::ones({1, 1})};

at::Tensor mask_in(std::string const& bits, at::IntArrayRef shape) {
  std::vector<std::int64_t> values;
  for (char const bit : bits) values.push_back(bit - '0');
  return at::tensor(values).to(at::kBool).view(shape);
}

/// The masks of one run without a change of weights, which are then zero where they say so.
template <class Policy>
std::map<std::string, at::Tensor> masks_of(Policy const& policy) {
  auto const module = std::make_shared<Layers>();
  auto const before = tensors_of(*module);
  frugal::Trainer trainer{module, SumOfSquares{}, Optimize<frugal::Nothing>{}, policy};
  trainer.fit(one_batch);
  auto const& found = trainer.template policy<k::prune>().result();
  for (auto const& item : module->named_parameters()) {
    auto const mask = found.masks.find(item.key());
    at::Tensor const kept =
        mask == found.masks.end() ? before.at(item.key()) : before.at(item.key()) * mask->second;
    CHECK(at::equal(item.value(), kept));
  }
  return found.masks;
}

void check_masks(std::map<std::string, at::Tensor> const& found, Json const& expected) {
  CHECK(found.size() == expected.size());
  for (auto const& [name, bits] : expected.items()) {
    CAPTURE(name);
    at::Tensor const& mask = found.at(name + ".weight");
    CHECK(at::equal(mask, mask_in(bits, mask.sizes())));
  }
}

TEST_CASE("masks of magnitude are those of torch.nn.utils.prune, for each layer and for all") {
  Json const file = reference("prune.json");
  for (Json const& which : file.at("magnitude")) {
    double const sparsity = which.at("sparsity");
    CAPTURE(sparsity);
    if (which.at("global")) {
      check_masks(masks_of(Prune<Magnitude, Sparsity<0.7>, Global>{.sparsity = sparsity}),
                  which.at("masks"));
    } else {
      check_masks(masks_of(Prune<Magnitude, Sparsity<0.7>>{.sparsity = sparsity}),
                  which.at("masks"));
    }
  }
}

TEST_CASE("masks of 2 of 4 are those of torch.ao.pruning, of a convolution along its channels") {
  check_masks(masks_of(Prune<NofM<2, 4>, Where<"second.weight", "conv.*">>{}),
              reference("prune.json").at("two_of_four"));
}

TEST_CASE("of each four weights the largest one stays, or all but the smallest") {
  Layers const layers;
  at::Tensor const groups = layers.second->weight.detach().abs().view({-1, 4});
  auto const mask = [](auto const& policy) {
    return masks_of(policy).at("second.weight").view({-1, 4});
  };
  CHECK(at::equal(mask(Prune<NofM<1, 4>, Where<"second.weight">>{}),
                  at::one_hot(groups.argmax(1), 4).to(at::kBool)));
  CHECK(at::equal(mask(Prune<NofM<3, 4>, Where<"second.weight">>{}),
                  at::one_hot(groups.argmin(1), 4).logical_not()));
}

/// The job of the file: two layers, batches in order.
struct Job {
  Json file = reference("prune.json");
  torch::nn::Sequential net{torch::nn::Linear(6, 8), torch::nn::ReLU(), torch::nn::Linear(8, 3)};

  Job() {
    at::NoGradGuard const no_gradients;
    Layers const layers;
    auto const from = layers.named_parameters();
    auto to = net->named_parameters();
    to["0.weight"].copy_(from["first.weight"]), to["0.bias"].copy_(from["first.bias"]);
    to["2.weight"].copy_(from["second.weight"]), to["2.bias"].copy_(from["second.bias"]);
  }
  TensorDataset batches() const {
    return TensorDataset({tensor_in(file.at("data").at("values"), {40, 6}),
                          at::tensor(file.at("target").get<std::vector<std::int64_t>>())},
                         {.batch = file.at("batch"), .shuffle = false});
  }
};

TEST_CASE("training under a mask ends with the weights of torch.nn.utils.prune") {
  Job const job;
  Seen seen;
  frugal::Trainer trainer{job.net,
                          frugal::CrossEntropy{},
                          frugal::Settings{.epochs = job.file.at("epochs")},
                          Optimize<SGD>{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01},
                          Prune<Magnitude, Sparsity<0.5>>{},
                          Spy{.seen = &seen}};
  trainer.fit(job.batches());
  auto const side = [&](char const* type) { return job.file.at("training").at(type); };
  for (auto const& item : job.net->named_parameters()) {
    CAPTURE(item.key());
    auto const in = [&](char const* type, at::ScalarType as) {
      return tensor_in(side(type).at("final").at(item.key()), item.value().sizes().vec(), as);
    };
    at::Tensor const exact = in("float64", at::kDouble);
    CHECK(distance(item.value(), exact) <= 4 * distance(in("float32", at::kFloat), exact) + 1e-7);
    // The zeros are the same.
    CHECK(at::equal(item.value() == 0, exact == 0));
  }
  auto const losses = side("float64").at("losses").get<std::vector<double>>();
  REQUIRE(seen.losses.size() == losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    CHECK(seen.losses[i] == doctest::Approx(losses[i]).epsilon(1e-5));
  }
}

TEST_CASE("movement prunes what has moved towards zero, by the scores of a plain loop") {
  Job const job;
  Json const& expected = job.file.at("movement");
  frugal::StateDict state;
  Resume keeps;
  std::map<std::uint64_t, Frozen> after_step;
  keeps.after_step = &after_step;
  frugal::Trainer trainer{job.net, frugal::CrossEntropy{}, Optimize<SGD>{.lr = 0.1},
                          Prune<Movement, Sparsity<0.5>, From<5>>{}, keeps};
  trainer.fit(job.batches());
  auto const& found = trainer.policy<k::prune>().result();
  for (auto const& [name, bits] : expected.at("masks").items()) {
    CAPTURE(name);
    at::Tensor const& mask = found.masks.at(name);
    CHECK(at::equal(mask, mask_in(bits, mask.sizes())));
    at::Tensor const& score = after_step.at(5).run.tensors.at("policies/Prune/scores/" + name);
    CHECK(distance(score, tensor_in(expected.at("scores").at(name), mask.sizes().vec(),
                                    at::kDouble)) < 1e-5);
  }
}

/// A window whose gradients are NaN, if it is that of a given step.
struct NanOnce {
  std::uint64_t window;
  std::shared_ptr<std::uint64_t> seen = std::make_shared<std::uint64_t>(0);
  template <class Module>
  frugal::Loss operator()(Module& module, frugal::Batch const& batch) const {
    frugal::Loss loss = frugal::CrossEntropy{}(module, batch);
    if ((*seen)++ == window) loss.value = loss.value * std::nan("");
    return loss;
  }
};

TEST_CASE("a window that is skipped has no part in the scores of movement") {
  Job const job;
  std::map<std::uint64_t, Frozen> after_step;
  Resume keeps;
  keeps.after_step = &after_step;
  frugal::Trainer trainer{job.net,
                          NanOnce{2},
                          Optimize<SGD>{.lr = 0.1},
                          frugal::SkipNonFinite{},
                          Prune<Movement, Sparsity<0.5>, From<4>>{},
                          keeps};
  trainer.fit(job.batches());
  REQUIRE(after_step.contains(4));
  at::Tensor const& score = after_step.at(4).run.tensors.at("policies/Prune/scores/0.weight");
  CHECK(at::isfinite(score).all().item<bool>());
  CHECK(score.abs().max().item<double>() > 0);
}

/// A loss whose gradient is the batch.
struct AlongBatch {
  template <class Module>
  at::Tensor operator()(Module& module, at::Tensor const& batch) const {
    return (module->weight * batch.to(module->weight.scalar_type())).sum();
  }
};

TEST_CASE("movements of 16-bit weights are summed in FP32: small steps count") {
  torch::nn::Linear layer(torch::nn::LinearOptions(2, 1).bias(false));
  layer->to(at::kBFloat16);
  torch::nn::init::ones_(layer->weight);
  // The first weight moves by 1 and back by 0.6, in steps of less than half of a last bit of 1.
  std::vector<at::Tensor> batches(601, at::tensor({-0.001, 0.0}).view({1, 2}));
  batches.front() = at::tensor({1.0, 0.5}).view({1, 2});
  frugal::Trainer trainer{layer, AlongBatch{}, Optimize<frugal::Nothing>{},
                          Prune<Movement, Sparsity<0.5>, From<601>>{}};
  trainer.fit(batches);
  at::Tensor const mask = trainer.policy<k::prune>().result().masks.at("weight");
  CHECK(at::equal(mask, at::tensor({1, 0}).view({1, 2}).to(at::kBool)));
}

TEST_CASE("the cubic schedule: sparsity by step, and what is pruned stays so") {
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.features = 20, .hidden = 50});
  std::map<std::uint64_t, std::map<std::string, at::Tensor>> weights;
  Spy const spy{
      .each_step = [&](frugal::Counters const& now) { weights[now.step] = tensors_of(*module); }};
  frugal::Trainer trainer{module,
                          frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 5},
                          Optimize<AdamW>{.lr = 0.01},
                          Prune<Magnitude, Sparsity<0.8>, From<3>, Cubic<10>, Every<4>>{},
                          spy};
  trainer.fit(TensorDataset(samples(32, 91, 20), {.batch = 8}));
  REQUIRE(weights.size() == 20);
  auto const zeros = [&](std::uint64_t step) {
    at::Tensor const is_zero = weights.at(step).at("first.weight") == 0;
    return is_zero.sum().item<double>();
  };
  for (std::uint64_t step = 1; step <= 20; ++step) {
    CAPTURE(step);
    // Due at 0, 4, 8 steps after the third, and at the end of the curve.
    double const place = step < 7 ? 0 : step < 11 ? 4 : step < 13 ? 8 : 10;
    double const share = 0.8 * (1 - std::pow(1 - place / 10, 3));
    CHECK(zeros(step) == std::nearbyint(share * 1000));
    if (step == 1) continue;
    at::Tensor const revived = (weights.at(step - 1).at("first.weight") == 0)
                                   .logical_and(weights.at(step).at("first.weight") != 0);
    CHECK_FALSE(revived.any().item<bool>());
  }
  CHECK(trainer.policy<k::prune>().result().sparsity == doctest::Approx(0.8).epsilon(1e-3));
}

TEST_CASE("a norm for clipping is that of the gradients that train") {
  auto const norm_of = [](auto... policies) {
    auto const module = std::make_shared<Layers>();
    frugal::Trainer trainer{module, Sum{}, Optimize<SGD>{.lr = 1}, policies...};
    trainer.fit(one_batch);
    return module;
  };
  // Clipped to 1, the step of what is not pruned has the length lr.
  auto const before = std::make_shared<Layers>();
  auto const after =
      norm_of(frugal::ClipNorm<>{}, Prune<Magnitude, Sparsity<0.5>, Where<"first.weight">>{});
  double squares = 0;
  for (auto const& item : after->named_parameters()) {
    at::Tensor const was = before->named_parameters()[item.key()];
    squares += (item.value() - was * (item.value() != 0)).square().sum().item<double>();
  }
  CHECK(std::sqrt(squares) == doctest::Approx(1).epsilon(1e-4));
}

TEST_CASE("a run that goes back to before it was pruned is pruned again") {
  Job const job;
  frugal::Trainer trainer{job.net,
                          NanOnce{7},
                          frugal::Settings{.epochs = 2},
                          Optimize<SGD>{.lr = 0.1},
                          Prune<Magnitude, Sparsity<0.5>, From<6>>{},
                          frugal::Rollback<Every<4>>{}};
  auto const report = trainer.fit(job.batches());
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings.front().find("back to step 4") != std::string::npos);
  CHECK(trainer.policy<k::prune>().result().sparsity == 0.5);
  CHECK((job.net->named_parameters()["0.weight"] == 0).sum().item<std::int64_t>() == 24);
}

/// A run with dropout, and the same from a state in the middle.
template <class... Policies>
void resumes_bitwise(Policies const&... policies) {
  auto const make = [] { return std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3, .norm = true}); };
  std::map<std::uint64_t, Frozen> after_step;
  auto const run = [&](std::shared_ptr<Mlp> const& module, Resume const& resume) {
    frugal::Trainer trainer{module,
                            frugal::CrossEntropy{},
                            frugal::Settings{.epochs = 3},
                            Optimize<AdamW>{.lr = 0.02},
                            policies...,
                            resume};
    trainer.fit(TensorDataset(samples(40), {.batch = 8, .shuffle = true}));
    return tensors_of(*module);
  };
  auto const whole = run(make(), {.after_step = &after_step});
  REQUIRE(after_step.size() == 15);
  for (std::uint64_t const step : {1U, 4U, 7U, 11U}) {
    CAPTURE(step);
    CHECK(same_bits(run(make(), {.from = &after_step.at(step)}), whole));
  }
}

TEST_CASE("a resumed run ends with the same bits") {
  resumes_bitwise(Prune<Magnitude, Sparsity<0.6>>{});
  resumes_bitwise(Prune<Magnitude, Sparsity<0.6>, From<2>, Cubic<8>, Every<3>, Global>{});
  resumes_bitwise(Prune<Movement, Sparsity<0.6>, Cubic<10>>{});
  resumes_bitwise(Prune<NofM<2, 4>, From<5>, Where<"second.weight">>{});
  resumes_bitwise(Prune<Magnitude, Sparsity<0.6>, Cubic<8>>{}, frugal::Rollback<Every<2>>{});
}

TEST_CASE("a checkpoint has the masks, and its weights are pruned wherever they are loaded") {
  TemporaryFolder const folder;
  auto const run = [&](std::string const& name, std::uint64_t stop_at) {
    auto const module = std::make_shared<Mlp>();
    std::stop_source stop;
    Spy const spy{.each_step = [&](frugal::Counters const& now) {
      if (now.step == stop_at) stop.request_stop();
    }};
    frugal::Trainer trainer{
        module,
        frugal::CrossEntropy{},
        frugal::Settings{.run_dir = folder / name, .epochs = 2, .stop = stop.get_token()},
        Optimize<AdamW>{.lr = 0.02},
        Prune<Magnitude, Sparsity<0.5>, Cubic<6>, Every<2>>{},
        frugal::Checkpoint<Every<100>>{},
        spy};
    auto const report = trainer.fit(TensorDataset(samples(32), {.batch = 8, .shuffle = true}));
    CHECK(report.preempted == (stop_at < 8));
    return tensors_of(*module);
  };
  auto const whole = run("whole", 100);
  run("stopped", 5);
  CHECK(same_bits(run("stopped", 100), whole));

  Mlp loaded;
  frugal::load_weights(loaded, folder / "stopped");
  CHECK(at::equal(loaded.first->weight, whole.at("first.weight")));
  CHECK((loaded.first->weight == 0).sum().item<std::int64_t>() == 24);
  CHECK((loaded.second->weight == 0).sum().item<std::int64_t>() == 12);
}

TEST_CASE("weights alone of a run without a mask are pruned when the run begins") {
  TemporaryFolder const folder;
  auto const module = std::make_shared<Mlp>();
  frugal::Trainer dense{module, frugal::CrossEntropy{},
                        frugal::Settings{.run_dir = folder / "dense"}, Optimize<SGD>{.lr = 0.5},
                        frugal::Checkpoint<Every<100>>{}};
  dense.fit(TensorDataset(samples(16), {.batch = 4}));
  at::Tensor const trained = module->first->weight.detach().clone();
  auto const other = std::make_shared<Mlp>();
  frugal::Trainer pruned{
      other,
      frugal::CrossEntropy{},
      frugal::Settings{.run_dir = folder / "pruned"},
      Optimize<frugal::Nothing>{},
      Prune<Magnitude, Sparsity<0.5>>{},
      frugal::Checkpoint<Every<100>>{.resume = frugal::Resume::Weights, .from = folder / "dense"}};
  pruned.fit(TensorDataset(samples(16), {.batch = 4}));
  at::Tensor const expected = trained * pruned.policy<k::prune>().result().masks.at("first.weight");
  CHECK(at::equal(other->first->weight, expected));
  CHECK((expected == 0).sum().item<std::int64_t>() == 24);
}

TEST_CASE("an average of pruned weights is pruned, and a validation measures pruned weights") {
  auto const module = std::make_shared<Mlp>();
  frugal::Trainer trainer{module, frugal::CrossEntropy{}, Optimize<AdamW>{.lr = 0.05},
                          Prune<Magnitude, Sparsity<0.5>>{}, frugal::Average<>{}};
  TensorDataset valid(samples(8, 92), {.batch = 8});
  auto const report = trainer.fit(TensorDataset(samples(32), {.batch = 4}), valid);
  CHECK((module->first->weight == 0).sum().item<std::int64_t>() == 24);
  CHECK(trainer.evaluate(valid) == report.last());
}

TEST_CASE("best weights from before the last pruning are named") {
  auto const module = std::make_shared<Mlp>();
  frugal::Trainer trainer{module,
                          frugal::CrossEntropy{},
                          frugal::Settings{.epochs = 4},
                          Optimize<SGD>{.lr = 0.5},
                          Prune<Magnitude, Sparsity<0.9>, From<14>>{},
                          frugal::EarlyStop<frugal::Patience<9>>{.restore_best = true}};
  auto const report =
      trainer.fit(TensorDataset(samples(32), {.batch = 8}), TensorDataset(samples(8, 92)));
  REQUIRE(report.restored_step.has_value());
  REQUIRE(*report.restored_step < 14);
  REQUIRE_FALSE(report.warnings.empty());
  CHECK(report.warnings.back().find("from before the last ones were pruned") != std::string::npos);
}

TEST_CASE("a run that is too short for the schedule says so") {
  frugal::Trainer trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, Optimize<SGD>{},
                          Prune<Magnitude, Sparsity<0.9>, From<2>, Cubic<100>>{}};
  auto const report = trainer.fit(TensorDataset(samples(32), {.batch = 8}));
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings.front() ==
        "Prune: the last weights are pruned at step 102, and the run ends at step 4");
}

TEST_CASE("a dry run prunes nothing") {
  auto const module = std::make_shared<Mlp>();
  auto const before = tensors_of(*module);
  frugal::Trainer trainer{module, frugal::CrossEntropy{}, Optimize<SGD>{},
                          Prune<Magnitude, Sparsity<0.9>>{}};
  std::ostringstream out;
  CHECK(trainer.dry_run(TensorDataset(samples(32), {.batch = 8}), out));
  CHECK(same_bits(tensors_of(*module), before));
}

template <class Policy, class Module>
std::string refused(Policy const& policy, std::shared_ptr<Module> const& module) {
  auto const before = tensors_of(*module);
  frugal::Trainer trainer{module, SumOfSquares{}, Optimize<SGD>{}, policy};
  try {
    trainer.fit(one_batch);
  } catch (frugal::SettingsError const& error) {
    CHECK(same_bits(tensors_of(*module), before));
    return error.fault().what;
  }
  return "not refused";
}

TEST_CASE("settings that prune nothing, or everything, are refused, and nothing is pruned") {
  auto const layers = [] { return std::make_shared<Layers>(); };
  CHECK(refused(Prune<Magnitude, Sparsity<0.5>>{.sparsity = 1}, layers()) ==
        "Prune has a sparsity of 1.000000");
  CHECK(refused(Prune<Magnitude, Sparsity<0.5>>{.sparsity = std::nan("")}, layers())
            .starts_with("Prune has a sparsity of"));
  CHECK(refused(Prune<Magnitude, Sparsity<0.5>, Where<"thrid.*">>{}, layers()) ==
        "the pattern 'thrid.*' matches nothing");
  CHECK(refused(Prune<Magnitude, Sparsity<0.5>, Where<"*.bias">>{}, layers()) ==
        "the pattern '*.bias' matches nothing");
  CHECK(refused(Prune<NofM<2, 4>>{}, layers()) ==
        "the inputs of 'first.weight' are no multiple of 4");
  CHECK(refused(Prune<Magnitude, Sparsity<0.5>>{},
                std::make_shared<torch::nn::EmbeddingImpl>(4, 4)) == "there is nothing to prune");
  frugal::Trainer trainer{layers(), SumOfSquares{}, Prune<Magnitude, Sparsity<0.5>>{}};
  CHECK_THROWS_AS(trainer.policy<k::prune>().result(), frugal::StateError);
}

TEST_CASE("a mask's bits, of any size") {
  for (std::int64_t const size : {1, 7, 8, 9, 1000}) {
    at::Tensor const mask = table({size}, 73, 0) > 0;
    at::Tensor const packed = frugal::detail::packed_bits(mask);
    CHECK((packed.scalar_type() == at::kByte));
    CHECK(packed.numel() == (size + 7) / 8);
    CHECK(at::equal(frugal::detail::unpacked_bits(packed, {size}), mask));
  }
}

}  // namespace frugal_test::model_prune

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <torch/optim/adam.h>
#include <frugal/core/libtorch/devices.hpp>
#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/dry_run.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/policy/precision.hpp>
#include <frugal/report/log.hpp>
#include <sstream>

#include "support/files.hpp"
#include "support/scripted.hpp"

namespace frugal_test::policy_smoke {

using namespace frugal_test::support;
using frugal::AdamW;
using frugal::DryRun;
using frugal::Optimize;
using frugal::TensorDataset;

bool contains(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TensorDataset data() { return TensorDataset(samples(18), {.batch = 4, .shuffle = true}); }

std::shared_ptr<Mlp> network() {
  return std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.5, .norm = true});
}

/// The result and output of Trainer::dry_run.
template <class Module, class Objective, class... Ps>
std::pair<bool, std::string> smoked(Module const& module, Objective const& objective,
                                    Ps const&... policies) {
  std::ostringstream out;
  frugal::Trainer trainer{module, objective, frugal::Settings{}, policies...};
  bool const passed = trainer.dry_run(data(), out);
  return {passed, out.str()};
}

TEST_CASE("a valid job passes, with one line per check") {
  auto const [passed, text] = smoked(network(), frugal::CrossEntropy{}, Optimize<AdamW>{});
  CAPTURE(text);
  CHECK(passed);
  CHECK(lines_of(text).size() == 4);
  CHECK(contains(text,
                 "dry run: pass  forward and backward: 2 batches, data [4, 6] Float, target "
                 "[4] Long"));
  CHECK(contains(text, "dry run: pass  finite loss: "));
  CHECK(contains(text, "dry run: pass  gradients reach every parameter: 6 parameters"));
  CHECK(contains(text, "dry run: pass  checkpoint round trip: "));
}

TEST_CASE("a job with each optimizer passes") {
  CHECK(smoked(network(), frugal::CrossEntropy{}, Optimize<frugal::SGD>{.momentum = 0.9}).first);
  CHECK(smoked(network(), frugal::CrossEntropy{}, Optimize<frugal::Adagrad>{}).first);
  CHECK(smoked(network(), frugal::CrossEntropy{}, Optimize<frugal::Nothing>{}).first);
  auto const [passed, text] =
      smoked(network(), frugal::CrossEntropy{}, Optimize<frugal::Any>{.make = [](auto parameters) {
               return std::make_unique<torch::optim::Adam>(parameters, 1e-3);
             }});
  CAPTURE(text);
  CHECK(passed);
}

TEST_CASE("a job in each format passes") {
  for (bool const half : {false, true}) {
    CAPTURE(half);
    auto const [passed, text] = half ? smoked(network(), frugal::CrossEntropy{}, Optimize<AdamW>{},
                                              frugal::Precision<frugal::FP16>{})
                                     : smoked(network(), frugal::CrossEntropy{}, Optimize<AdamW>{},
                                              frugal::Precision<frugal::BF16>{});
    CAPTURE(text);
    CHECK(passed);
  }
}

TEST_CASE("LibTorch's error in a dry run is reported without its stack") {
  auto const [passed, text] = smoked(
      network(),
      [](std::shared_ptr<Mlp> const& module, frugal::Batch const& batch) {
        return module->forward(batch.data).sum() * at::ones({2}).view({3});
      },
      Optimize<AdamW>{});
  CAPTURE(text);
  CHECK_FALSE(passed);
  CHECK(contains(text, "dry run: FAIL  forward and backward: "));
  CHECK_FALSE(contains(text, "frame #"));
  CHECK(lines_of(text).size() < 8);
}

TEST_CASE("a dry run changes nothing: weights, buffers, gradients, mode, generator, files") {
  TemporaryFolder const folder;
  auto const module = network();
  module->dropout->eval();
  auto const before = tensors_of(*module);
  auto const generator = at::detail::getDefaultCPUGenerator().get_state();
  std::ostringstream out;
  frugal::Trainer trainer{module, frugal::CrossEntropy{},
                          frugal::Settings{.run_dir = folder / "run", .seed = 3}, Optimize<AdamW>{},
                          frugal::Log<>{}};
  CHECK(trainer.dry_run(data(), out));
  CHECK(same_bits(tensors_of(*module), before));
  for (at::Tensor const& parameter : module->parameters()) CHECK_FALSE(parameter.grad().defined());
  CHECK(module->is_training());
  CHECK_FALSE(module->dropout->is_training());
  CHECK(at::equal(at::detail::getDefaultCPUGenerator().get_state(), generator));
  CHECK_FALSE(std::filesystem::exists(folder / "run"));
}

TEST_CASE("a module in evaluation mode is tried in training mode and restored") {
  auto const module = network();
  module->eval();
  std::ostringstream out;
  frugal::Trainer trainer{module, frugal::CrossEntropy{}, frugal::Settings{}, Optimize<AdamW>{}};
  CHECK(trainer.dry_run(data(), out));
  for (auto const& part : module->modules()) CHECK_FALSE(part->is_training());
}

struct Unused : Mlp {
  Unused() : spare(register_module("spare", torch::nn::Linear(2, 2))) {}
  torch::nn::Linear spare;
};

TEST_CASE("a parameter without a gradient is named, unless it is frozen") {
  auto const module = std::make_shared<Unused>();
  {
    auto const [passed, text] = smoked(module, frugal::CrossEntropy{}, Optimize<AdamW>{});
    CHECK_FALSE(passed);
    CHECK(contains(text,
                   "dry run: FAIL  gradients reach every parameter: none at: spare.weight, "
                   "spare.bias"));
  }
  for (at::Tensor& parameter : module->spare->parameters()) parameter.set_requires_grad(false);
  CHECK(smoked(module, frugal::CrossEntropy{}, Optimize<AdamW>{}).first);
}

TEST_CASE("a loss that is NaN fails") {
  auto const nan = [](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    return module->forward(batch.data).sum() * std::nan("");
  };
  auto const [passed, text] = smoked(network(), nan, Optimize<AdamW>{});
  CHECK_FALSE(passed);
  CHECK(contains(text, "dry run: FAIL  finite loss: nan, nan"));
}

TEST_CASE("a batch of weight 0 whose loss is NaN is no fault") {
  int calls = 0;
  auto const naive = [&](std::shared_ptr<Mlp>& module, frugal::Batch const& batch) {
    frugal::Loss loss = frugal::CrossEntropy{}(module, batch);
    if (++calls == 1) loss = {.value = loss.value * std::nan(""), .weight = 0.0};
    return loss;
  };
  auto const [passed, text] = smoked(network(), naive, Optimize<AdamW>{});
  CAPTURE(text);
  CHECK(passed);
}

TEST_CASE("shapes that do not fit fail with both shapes, and nothing is changed") {
  auto const module = std::make_shared<Mlp>(Mlp::Shape{.features = 5, .norm = true});
  auto const before = tensors_of(*module);
  auto const [passed, text] = smoked(module, frugal::CrossEntropy{}, Optimize<AdamW>{});
  CAPTURE(text);
  CHECK_FALSE(passed);
  CHECK(contains(text, "dry run: FAIL  forward and backward: "));
  CHECK(contains(text, "data [4, 6] Float"));
  CHECK(contains(text, "4x6 and 5x8"));
  CHECK(same_bits(tensors_of(*module), before));
}

TEST_CASE("an optimizer that cannot be set up fails the check and does not throw") {
  auto const [passed, text] =
      smoked(network(), frugal::CrossEntropy{}, Optimize<AdamW>{.lr = -1.0});
  CHECK_FALSE(passed);
  CHECK(contains(text, "dry run: FAIL  set-up: "));
  CHECK(contains(text, "lr is -1"));
}

TEST_CASE("a fit with DryRun ends with the same bits as one without") {
  auto const run = [](auto const&... policies) {
    auto const module = network();
    Seen seen;
    frugal::Trainer trainer{module,
                            frugal::CrossEntropy{},
                            frugal::Settings{.epochs = 2, .seed = 3},
                            Optimize<AdamW>{.lr = 0.05},
                            frugal::Precision<frugal::BF16>{},
                            frugal::Accumulate<2>{},
                            Spy{.seen = &seen},
                            policies...};
    auto source = data();
    static_cast<void>(trainer.fit(source, TensorDataset(samples(9, 92), {.batch = 4})));
    return std::pair(tensors_of(*module), seen.losses);
  };
  std::ostringstream out;
  auto const with = run(DryRun<3>{.out = &out});
  auto const without = run();
  CHECK(same_bits(with.first, without.first));
  CHECK(with.second == without.second);
  CHECK(contains(out.str(), "3 batches"));
}

TEST_CASE("a fit whose dry run fails trains nothing, writes nothing and says what failed") {
  TemporaryFolder const folder;
  auto const module = std::make_shared<Unused>();
  auto const before = tensors_of(*module);
  std::ostringstream out;
  frugal::Trainer trainer{module,
                          frugal::CrossEntropy{},
                          frugal::Settings{.run_dir = folder / "run"},
                          Optimize<AdamW>{},
                          frugal::Log<>{},
                          DryRun<>{.out = &out}};
  try {
    static_cast<void>(trainer.fit(data()));
    FAIL("no error came");
  } catch (frugal::DryRunError const& error) {
    CHECK(contains(error.fault().why, "none at: spare.weight, spare.bias"));
  }
  CHECK(contains(out.str(), "dry run: FAIL"));
  CHECK(same_bits(tensors_of(*module), before));
  CHECK_FALSE(std::filesystem::exists(folder / "run"));
}

TEST_CASE("a data set shorter than the dry run is tried as far as it goes") {
  std::ostringstream out;
  frugal::Trainer trainer{network(), frugal::CrossEntropy{}, frugal::Settings{}, Optimize<AdamW>{}};
  CHECK(trainer.dry_run(TensorDataset(samples(4), {.batch = 4}), out, 5));
  CHECK(contains(out.str(), "1 batches"));
}

TEST_CASE("a dry run is on the CPU, unless the module computes on its own device alone") {
  struct Stays : torch::nn::Module, frugal::detail::StaysOnDevice {
    c10::Device own_device() const override { return c10::Device(c10::kCUDA, 1); }
  };
  CHECK(frugal::detail::dry_run_device(*network()) == c10::kCPU);
  CHECK(frugal::detail::dry_run_device(Stays()) == c10::Device(c10::kCUDA, 1));
}

}  // namespace frugal_test::policy_smoke

// SPDX-License-Identifier: Apache-2.0
// Gradients on a device are looked at there: no step waits, and the host learns of it later.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/fake_device.hpp"
#include "support/non_finite.hpp"
#include "support/running.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <string>

namespace frugal_test::device_skip_non_finite {

namespace fr = frugal;
using namespace support;

struct Outcome {
  fr::Report report;
  std::map<std::string, at::Tensor> tensors;
  std::size_t waits = 0;
};

template <class... Ps>
Outcome train(fr::Batch const& data, c10::Device device, Ps const&... policies) {
  auto const module = std::make_shared<Mlp>();
  fr::Trainer trainer{module, Rooted{}, fr::Settings{.epochs = 2, .device = device},
                      fr::Optimize<fr::AdamW>{}, policies...};
  fr::TensorDataset source(data, {.batch = 4, .shuffle = false});
  fake::waits();
  Outcome outcome;
  outcome.report = trainer.fit(source);
  outcome.waits = fake::waits();
  module->to(c10::kCPU);
  outcome.tensors = tensors_of(*module);
  CHECK(fake::complaints().empty());
  return outcome;
}

TEST_CASE("a bad window is skipped on a device as on the CPU, and no step waits") {
  fr::Batch const bad = marked(44, 20, 4);
  Outcome const here = train(bad, c10::kCPU, fr::SkipNonFinite{});
  Outcome const there = train(bad, fake::device(), fr::SkipNonFinite{});
  CHECK(same_bits(there.tensors, here.tensors));
  CHECK(there.report.steps == here.report.steps);
  CHECK(there.report.non_finite_windows == here.report.non_finite_windows);
  CHECK(there.report.non_finite_windows == 2);
  // Nothing is read but the flags: the fake device counts their copies to page-locked memory, which
  // a real device makes while the host goes on.
  Outcome const plain = train(support::without(bad, 20, 4), fake::device());
  Outcome const good = train(support::without(bad, 20, 4), fake::device(), fr::SkipNonFinite{});
  CHECK(same_bits(good.tensors, plain.tensors));
  CHECK(good.waits == plain.waits + good.report.steps);
}

TEST_CASE("ClipNorm's bad norm on a device names its window when the losses are read") {
  fr::Batch const bad = marked(44, 20, 4);
  CHECK_THROWS_WITH_AS(train(bad, fake::device(), fr::ClipNorm<100.0>{}),
                       doctest::Contains("the norm of the gradients is NaN (epoch 0, step 5)"),
                       fr::NonFiniteGradientError);
  fake::complaints();
  Outcome const skipped = train(bad, fake::device(), fr::ClipNorm<100.0>{}, fr::SkipNonFinite{});
  CHECK(skipped.report.non_finite_windows == 2);
}

template <class Cadence, class... Ps>
void passes_over(Ps const&... policies) {
  fr::Batch const bad = marked(44, 20, 4);
  Outcome const clean = train(support::without(bad, 20, 4), fake::device(), policies...);
  Outcome const outcome =
      train(bad, fake::device(), fr::Rollback<Cadence>{.slow_down = 1}, policies...);
  CHECK(same_bits(outcome.tensors, clean.tensors));
  CHECK(outcome.report.steps == clean.report.steps);
}

TEST_CASE("Rollback finds the window of a NaN gradient on a device") {
  passes_over<fr::Every<1>>();
  passes_over<fr::Every<4>>();
  passes_over<fr::Every<4>>(fr::ClipNorm<100.0>{});
}

TEST_CASE("Rollback passes over a window whose loss is NaN on a device, and no other") {
  fr::Batch bad = samples(44);
  bad.data = bad.data.clone();
  bad.data.narrow(0, 20, 4).fill_(std::numeric_limits<float>::quiet_NaN());
  Outcome const clean = train(support::without(bad, 20, 4), fake::device());
  Outcome const outcome = train(bad, fake::device(), fr::Rollback<fr::Every<4>>{.slow_down = 1});
  CHECK(same_bits(outcome.tensors, clean.tensors));
  CHECK(outcome.report.warnings.size() == 2);
}

TEST_CASE("FP16 skips a window whose loss is NaN on a device") {
  fr::Batch bad = samples(44);
  bad.data = bad.data.clone();
  bad.data.narrow(0, 20, 4).fill_(std::numeric_limits<float>::quiet_NaN());
  Outcome const outcome =
      train(bad, fake::device(), fr::Precision<fr::FP16>{.scaling = {.initial = 8}});
  CHECK(outcome.report.non_finite_windows == 2);
  CHECK(std::isfinite(outcome.report.train_loss));
}

TEST_CASE("the first tensor that is not finite is found with one wait for each device") {
  at::Tensor const fine = at::ones({9}).to(fake::device());
  at::Tensor const wrong =
      at::full({3}, std::numeric_limits<double>::infinity()).to(fake::device());
  fake::waits();
  CHECK_FALSE(fr::detail::first_non_finite({fine, fine, fine}));
  CHECK(fake::waits() == 1);
  CHECK(fr::detail::first_non_finite({at::ones({2}), fine, wrong, at::ones({2})}) == 2);
  CHECK(fake::waits() == 1);
  at::Tensor const flag = fr::detail::non_finite_flag({fine, wrong});
  CHECK(fake::waits() == 0);
  CHECK(flag.item<bool>());
  CHECK(fake::complaints().empty());
}

}  // namespace frugal_test::device_skip_non_finite

// SPDX-License-Identifier: Apache-2.0
// Metrics and losses of segmentation, detection and text on a device: the values of the host, without a wait before
// the result.
#include <doctest/doctest.h>

#include <frugal/data/pad.hpp>
#include <frugal/losses.hpp>
#include <frugal/metrics.hpp>

#include "losses/cases.hpp"
#include "metrics/cases.hpp"
#include "support/fake_device.hpp"

#include <string>
#include <utility>
#include <vector>

namespace frugal_test::device_task_metrics {

using namespace frugal_test::metrics;
using frugal_test::objectives::Identity;

/// The metric of two batches on the device, after checking that nothing has waited for them.
template <class M>
M measured(Set const& set) {
  at::Tensor const output = set.output.to(fake::device()), target = set.target.to(fake::device());
  std::int64_t const half = output.size(0) / 2;
  static_cast<void>(fake::waits());
  M metric;
  metrics::add(metric, output.narrow(0, 0, half), target.narrow(0, 0, half));
  metrics::add(metric, output.narrow(0, half, output.size(0) - half),
               target.narrow(0, half, output.size(0) - half));
  CHECK(fake::waits() == 0);
  return metric;
}

template <class M>
void same_as_on_host(Set const& set) {
  Metrics const wanted = over<M>(set).result();
  Metrics const found = measured<M>(set).result();
  for (auto const& [name, value] : wanted) {
    CAPTURE(name);
    CHECK(found[name] == doctest::Approx(value).epsilon(1e-12));
  }
  for (auto const& [name, table] : wanted.tables()) {
    CHECK((found.table(name) - table).abs().nansum().item<double>() < 1e-12);
    CHECK(found.table(name).is_cpu());
  }
  Metrics const continued = resumed(measured<M>(set)).result();
  CHECK(continued[M::name] == doctest::Approx(wanted[M::name]).epsilon(1e-12));
  CHECK(fake::complaints().empty());
}

TEST_CASE("metrics of labels wait for nothing before the result") {
  at::manual_seed(1);
  at::Tensor const labels = at::randint(3, {7, 4}, at::kLong);
  labels[2].fill_(-100);
  Set const pixels{at::randn({7, 3, 4}), labels};
  same_as_on_host<IoU>(pixels);
  same_as_on_host<Dice>(pixels);
  same_as_on_host<CalibrationError<>>(pixels);
  same_as_on_host<SpanF1<"O", "B-PER", "I-PER">>(pixels);
}

TEST_CASE("labels that name no class are refused with the result") {
  Set const set{at::zeros({2, 3, 4}), at::full({2, 4}, 9, at::kLong)};
  CHECK_THROWS_AS(static_cast<void>(measured<IoU>(set).result()), MetricError);
  CHECK_THROWS_AS(static_cast<void>(measured<CalibrationError<>>(set).result()), MetricError);
  CHECK_THROWS_AS(static_cast<void>(measured<SpanF1<"O", "B-X", "I-X">>(set).result()),
                  MetricError);
  CHECK(fake::complaints().empty());
}

TEST_CASE("boxes wait for nothing before the result") {
  at::Tensor const boxes = at::tensor({0.0, 0.0, 8.0, 8.0}).expand({4, 1, 4});
  at::Tensor const score = at::tensor({0.1, 0.4, 0.2, 0.3}).view({4, 1, 1});
  at::Tensor const label = at::zeros({4, 1, 1});
  same_as_on_host<MeanAveragePrecision>(
      {at::cat({boxes, score, label}, 2), at::cat({boxes, label}, 2)});
  same_as_on_host<MeanAveragePrecision>(
      {at::cat({boxes, score, label}, 2), at::cat({boxes + 1, label, label}, 2)});
}

/// Value, weight and gradient on the device are those of the host; returns the waits.
template <class Objective, class B>
std::size_t same_loss(Objective const& objective, B batch) {
  Identity identity;
  auto const of = [&](B const& part) {
    frugal::Loss loss = objective(identity, part);
    loss.value.backward();
    return loss;
  };
  batch.data.requires_grad_();
  frugal::Loss const wanted = of(batch);
  at::Tensor const gradient = batch.data.grad();
  B there = batch;
  there.data = batch.data.detach();
  frugal::batch_to(there, fake::device());
  there.data.requires_grad_();
  static_cast<void>(fake::waits());
  frugal::Loss const found = of(there);
  std::size_t const waits = fake::waits();
  CHECK(found.value.template item<double>() ==
        doctest::Approx(wanted.value.template item<double>()).epsilon(1e-6));
  CHECK(distance(there.data.grad().cpu(), gradient) < 1e-6);
  CHECK(fake::complaints().empty());
  return waits;
}

TEST_CASE("losses have the values of the host, without a wait") {
  at::manual_seed(2);
  at::Tensor const labels = at::tensor({0, 2, -100, 1, 1}).to(at::kLong);
  CHECK(same_loss(frugal::Focal{}, Batch{at::randn({5, 3}), labels}) == 0);
  CHECK(same_loss(frugal::DiceLoss{}, Batch{at::randn({5, 3}), labels}) == 0);
  CHECK(same_loss(frugal::Triplet{}, Batch{at::randn({5, 3, 4}), at::zeros({5})}) == 0);
  CHECK(same_loss(frugal::Contrastive{}, Batch{at::randn({5, 2, 4}), at::zeros({5})}) == 0);
}

TEST_CASE("Ctc reads the labels of a plain batch once more than those of a padded one") {
  at::manual_seed(3);
  at::Tensor const target = at::tensor({1, 2, 3, -100, 2, -100}).to(at::kLong).view({3, 2});
  std::size_t const plain = same_loss(frugal::Ctc{}, Batch{at::randn({3, 4, 6}), target});

  // Data [T, 4] become logits [B, 4, T].
  struct Turned : torch::nn::Module {
    at::Tensor forward(at::Tensor const& data) { return data.transpose(1, 2); }
  } turned;
  std::vector<std::pair<at::Tensor, at::Tensor>> samples;
  for (std::int64_t i = 0; i < 3; ++i) samples.emplace_back(at::randn({4 + i, 4}), target[i]);
  frugal::PaddedBatch batch = frugal::Pad{}(samples);
  double const wanted = frugal::Ctc{}(turned, batch).value.item<double>();
  frugal::batch_to(batch, fake::device());
  static_cast<void>(fake::waits());
  at::Tensor const value = frugal::Ctc{}(turned, batch).value;
  // LibTorch's own copy of the lengths.
  CHECK(fake::waits() == 1);
  CHECK(plain == 2);
  CHECK(value.item<double>() == doctest::Approx(wanted).epsilon(1e-6));
  CHECK(fake::complaints().empty());
}

TEST_CASE("a label of Ctc that is no class is NaN on a device, and reads no other memory") {
  Identity identity;
  for (std::int64_t const label : {0, 4, -1, 1000000}) {
    Batch batch{at::randn({1, 4, 6}), at::tensor({std::int64_t{1}, label}).view({1, 2})};
    frugal::batch_to(batch, fake::device());
    CHECK(std::isnan(frugal::Ctc{}(identity, batch).value.item<double>()));
  }
  CHECK(fake::complaints().empty());
}

}  // namespace frugal_test::device_task_metrics

// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, C classes, T positions.
#include <doctest/doctest.h>

#include <frugal/data/pad.hpp>
#include <frugal/losses/ctc.hpp>

#include "cases.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace frugal_test::losses_ctc {

using namespace frugal_test::losses;
using frugal::Ctc;
using frugal::FieldsBatch;
using frugal::PaddedBatch;

/// Samples `begin` to `begin + count`, with the lengths as a field.
FieldsBatch part_of(Case const& all, at::Tensor const& output, at::Tensor const& lengths,
                    std::int64_t begin, std::int64_t count) {
  return {.data = output.narrow(0, begin, count),
          .target = all.target.narrow(0, begin, count),
          .fields = {{"input_lengths", lengths.narrow(0, begin, count)}}};
}

TEST_CASE("Ctc is PyTorch's, values and gradients, of one batch and of a window") {
  int const compared = each_loss("Ctc", [](Json const& which) {
    Case const expected(which);
    Identity identity;
    Ctc const objective{.blank = which.at("blank"), .zero_infinity = which.at("zero_infinity")};
    at::Tensor const lengths = at::tensor(which.at("lengths").get<std::vector<std::int64_t>>());
    std::int64_t const samples = expected.output.size(0);

    at::Tensor const output = expected.output.clone().requires_grad_();
    Loss const whole = objective(identity, part_of(expected, output, lengths, 0, samples));
    whole.value.backward();
    CHECK(whole.weight == static_cast<double>(samples));
    CHECK(whole.value.item<double>() == doctest::Approx(expected.value).epsilon(2e-6));
    CHECK(distance(output.grad(), expected.gradient) < 2e-6);

    // The mean over micro-batches of 2, 2 and 1 samples.
    at::Tensor const pieces = expected.output.clone().requires_grad_();
    at::Tensor sum = at::zeros({});
    for (std::int64_t begin = 0; begin < samples; begin += 2) {
      std::int64_t const count = std::min<std::int64_t>(2, samples - begin);
      Loss const loss = objective(identity, part_of(expected, pieces, lengths, begin, count));
      sum = sum + loss.value * *loss.weight;
    }
    sum = sum / static_cast<double>(samples);
    sum.backward();
    CHECK(sum.item<double>() == doctest::Approx(expected.value).epsilon(2e-6));
    CHECK(distance(pieces.grad(), expected.gradient) < 2e-6);
  });
  CHECK(compared == 7);
}

/// Logits [B, C, T'] of data [B, T]: every `stride`-th position, by a fixed table.
struct Strided : torch::nn::Module {
  explicit Strided(std::int64_t the_stride) : stride(the_stride) {}
  at::Tensor forward(at::Tensor const& data_BT) {
    at::Tensor const taken = data_BT.slice(1, 0, data_BT.size(1), stride);
    return taken.unsqueeze(1) * at::linspace(-1, 1, 4).view({1, 4, 1});
  }
  std::int64_t stride;
};

TEST_CASE("lengths of a padded batch are its data's over subsampling, and padding has no effect") {
  std::vector<std::pair<at::Tensor, at::Tensor>> const samples{
      {at::randn({9}), at::tensor({1, 2, -100})},
      {at::randn({6}), at::tensor({3, -100, -100})},
      {at::randn({5}), at::tensor({1, 1, -100})}};
  PaddedBatch const batch = frugal::Pad{.value = 99}(samples);
  for (std::int64_t const stride : {1, 2}) {
    Strided module(stride);
    Ctc const objective{.subsampling = stride};
    Loss const loss = objective(module, batch);
    CHECK(loss.weight == 3);
    double sum = 0;
    for (auto const& [data, target] : samples) {
      sum += Ctc{}(module, Batch{data.unsqueeze(0), target.unsqueeze(0)}).value.item<double>();
    }
    CHECK(loss.value.item<double>() == doctest::Approx(sum / 3).epsilon(1e-6));
  }
  Strided module(2);
  CHECK(says(text_of([&] { Ctc{}(module, batch); }),
             "logits are [3, 4, 5] Float, the data have 9 positions, and with subsampling = 1"));
}

TEST_CASE("a sample with too few positions is infinite, or 0 where that is asked for") {
  Identity identity;
  at::Tensor const logits = at::randn({1, 4, 2}).requires_grad_();
  Batch const batch{logits, at::tensor({1, 2, 3}).view({1, 3})};
  CHECK(std::isinf(Ctc{}(identity, batch).value.item<double>()));
  Loss const loss = Ctc{.zero_infinity = true}(identity, batch);
  CHECK(loss.value.item<double>() == 0);
  loss.value.backward();
  CHECK(logits.grad().equal(at::zeros_like(logits)));
}

TEST_CASE("logits of 16 bits are widened, and labels of any integer type are read") {
  at::Tensor const labels = at::tensor({1, 2, 3, -100}).view({2, 2});
  at::Tensor const logits = at::randn({2, 4, 6});
  widens(Ctc{}, logits, labels);
  Identity identity;
  CHECK(Ctc{}(identity, Batch{logits, labels.to(at::kInt)}).value.item<double>() ==
        Ctc{}(identity, Batch{logits, labels}).value.item<double>());
}

TEST_CASE("labels that are no class, lengths and shapes that do not fit are refused") {
  Identity identity;
  auto const refused = [&](Ctc const& objective, at::Tensor const& logits,
                           at::Tensor const& labels) {
    return text_of([&] { objective(identity, Batch{logits, labels}); });
  };
  at::Tensor const logits = at::zeros({1, 4, 6});
  CHECK(says(refused({}, logits, at::tensor({4, 1}).view({1, 2})), "1 labels are no class"));
  CHECK(says(refused({}, logits, at::tensor({0, 1}).view({1, 2})), "without 0"));
  CHECK_THROWS_AS(Ctc{}(identity, Batch{logits, at::tensor({-1, 9}).view({1, 2})}),
                  frugal::LabelError);
  CHECK(says(refused({.blank = 4}, logits, at::tensor({1}).view({1, 1})), "4 classes"));
  CHECK(says(refused({}, logits, at::tensor({1})), "labels are [1] Int"));
  FieldsBatch batch{.data = logits,
                    .target = at::tensor({1}).view({1, 1}),
                    .fields = {{"input_lengths", at::tensor({7})}}};
  CHECK(says(text_of([&] { Ctc{}(identity, batch); }), "lengths are from 7 to 7"));
  batch.fields["input_lengths"] = at::tensor({3, 3});
  CHECK(says(text_of([&] { Ctc{}(identity, batch); }), "the field input_lengths is [2] Int"));
}

}  // namespace frugal_test::losses_ctc

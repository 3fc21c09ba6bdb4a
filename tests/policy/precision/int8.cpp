// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/autograd.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>

#include <frugal/policy/optimize.hpp>
#include <frugal/policy/precision.hpp>
#include <frugal/policy/precision/int8_kernels.hpp>
#include <frugal/policy/recompute.hpp>
#include <frugal/policy/validate.hpp>
#include <frugal/trainer.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "support/quantized.hpp"
#include "support/running.hpp"

namespace frugal_test::policy_precision_int8 {

using namespace frugal_test::support;
using frugal::FP32;
using frugal::INT8;
using frugal::Optimize;
using frugal::Precision;
using frugal::SGD;
using frugal::detail::Int8Format;

TEST_CASE("a layer in INT8 has torchao's output and gradients") {
  Json const file = reference("quantized_training.json");
  for (Json const& which : file.at("cases")) {
    if (which.at("recipe") != "int8") continue;
    CAPTURE(which.at("name").get<std::string>());
    check_layer<Int8Format>(which, 1e-5);
  }
}

/// torchao's quantize_int8_rowwise, by operators.
frugal::detail::Quantized by_operators(at::Tensor const& matrix, std::int64_t along) {
  at::Tensor const scales = matrix.abs().amax(along, /*keepdim=*/true) / 127;
  at::Tensor const values = (matrix * scales.clamp_min(1e-12).reciprocal()).round().to(at::kChar);
  return {values, scales.reshape({-1})};
}

TEST_CASE("rows and columns of any size have the integers of ready operators") {
  torch::manual_seed(3);
  for (std::int64_t const rows : {1, 3, 64, 130}) {
    for (std::int64_t const columns : {1, 15, 16, 33, 200}) {
      at::Tensor const matrix = torch::randn({rows, columns}) * torch::rand({rows, 1});
      matrix[0] = 0;
      auto const by_row = Int8Format::rows(matrix);
      auto const by_column = Int8Format::columns(matrix);
      auto const rows_expected = by_operators(matrix, 1);
      auto const columns_expected = by_operators(matrix, 0);
      CHECK(at::equal(by_row.values, rows_expected.values));
      CHECK(at::equal(by_row.scales, rows_expected.scales));
      CHECK(at::equal(by_column.values, columns_expected.values));
      CHECK(at::equal(by_column.scales, columns_expected.scales));
    }
  }
}

TEST_CASE("ties go to the even integer") {
  // The largest magnitude is 127, so that the scale is 1.
  at::Tensor const row = at::tensor({127.0F, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 126.5F});
  std::vector<int> const expected{127, 0, 2, 2, 0, -2, -2, 126};
  auto const made = Int8Format::rows(row.repeat({1, 3}).view({1, 24})).values;
  for (std::int64_t i = 0; i < 24; ++i) {
    CHECK(made[0][i].item<int>() == expected[static_cast<std::size_t>(i % 8)]);
  }
}

TEST_CASE("every instruction set gives the same integers") {
  torch::manual_seed(4);
  at::Tensor const matrix = torch::randn({20, 83});
  auto const widest = Int8Format::rows(matrix);
  at::Tensor const values = at::empty({20, 83}, at::kChar);
  at::Tensor const scales = at::empty({20});
  frugal::detail::QuantizeRows::run(matrix.const_data_ptr<float>(), 20, 83,
                                    values.data_ptr<std::int8_t>(), scales.data_ptr<float>());
  CHECK(at::equal(values, widest.values));
  CHECK(at::equal(scales, widest.scales));
}

TEST_CASE("a CPU without INT8 dot products has the integers of those with them") {
  torch::manual_seed(5);
  // The third has one term more than FP32 adds up exactly, if all are extreme.
  for (std::int64_t const terms : {1, 40, 1025, 3000}) {
    for (bool const extreme : {false, true}) {
      auto const draw = [&](std::int64_t rows, std::int64_t columns) {
        if (extreme) return at::full({rows, columns}, -128, at::kChar);
        return at::randint(-128, 128, {rows, columns}, at::kChar);
      };
      at::Tensor const a = draw(19, terms);
      at::Tensor const b = draw(21, terms).t();
      at::Tensor const integers = at::empty({19, 21}, at::kInt);
      Int8Format::multiply_in_parts(integers, a, b);
      if (terms > 1) CHECK(at::equal(integers, at::_int_mm(a, b)));
      CHECK(at::equal(integers.to(at::kDouble), a.to(at::kDouble).mm(b.to(at::kDouble))));
    }
  }
}

// On some processors LibTorch's kernel takes wrong strides for a dimension of one. The gradient of a weight has one
// term for each row, so a last batch of one sample comes to it.
TEST_CASE(
    "products of one row, one column or one term are exact, whatever the layout of their factors") {
  torch::manual_seed(6);
  for (std::int64_t const rows : {1, 2, 19}) {
    for (std::int64_t const terms : {1, 2, 64}) {
      for (std::int64_t const columns : {1, 3, 32}) {
        for (bool const turned : {false, true}) {
          CAPTURE(rows);
          CAPTURE(terms);
          CAPTURE(columns);
          CAPTURE(turned);
          auto const draw = [&](std::int64_t of, std::int64_t by) {
            return turned ? at::randint(-128, 128, {by, of}, at::kChar).t()
                          : at::randint(-128, 128, {of, by}, at::kChar);
          };
          frugal::detail::Quantized const a{draw(rows, terms), at::ones({rows})};
          frugal::detail::Quantized const b{draw(terms, columns), at::ones({columns})};
          at::Tensor const exact = a.values.to(at::kDouble).mm(b.values.to(at::kDouble));
          CHECK(at::equal(Int8Format::multiply(a, b, {rows, columns}).to(at::kDouble), exact));
        }
      }
    }
  }
}

TEST_CASE("a number that is not finite makes the results that depend on it so") {
  for (float const bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (std::int64_t const at : {2, 16}) {  // in a register, and after the last whole one
      at::Tensor const matrix = torch::randn({3, 17});
      matrix[1][at] = bad;
      auto const by_row = Int8Format::rows(matrix);
      auto const by_column = Int8Format::columns(matrix);
      CHECK_FALSE(std::isfinite(by_row.scales[1].item<float>()));
      CHECK(std::isfinite(by_row.scales[0].item<float>()));
      CHECK_FALSE(std::isfinite(by_column.scales[at].item<float>()));
      CHECK(std::isfinite(by_column.scales[0].item<float>()));
      auto const factor = Int8Format::rows(torch::randn({8, 17})).t();
      at::Tensor const product = Int8Format::multiply(by_row, factor, {3, 8});
      CHECK_FALSE(product[1].isfinite().any().item<bool>());
      CHECK(product[0].isfinite().all().item<bool>());
    }
  }
}

torch::nn::Sequential network() {
  return torch::nn::Sequential(torch::nn::Linear(8, 16), torch::nn::ReLU(),
                               torch::nn::Linear(16, 32), torch::nn::ReLU(),
                               torch::nn::Linear(32, 3));
}

struct Classes {
  template <class Module>
  at::Tensor operator()(Module& module, frugal::Batch const& batch) const {
    return at::cross_entropy_loss(frugal::forward(module, batch.data), batch.target);
  }
};

std::vector<frugal::Batch> batches(int count = 4) {
  torch::manual_seed(5);
  std::vector<frugal::Batch> made;
  for (int i = 0; i < count; ++i) {
    at::Tensor const x = torch::randn({24, 8});
    made.push_back({x, x.slice(1, 0, 3).argmax(1)});
  }
  return made;
}

template <class... Ps>
std::map<std::string, at::Tensor> trained(Ps const&... policies) {
  torch::manual_seed(6);
  torch::nn::Sequential net = network();
  frugal::Trainer trainer{net, Classes{}, frugal::Settings{.epochs = 3}, Optimize<SGD>{.lr = 0.5},
                          policies...};
  static_cast<void>(trainer.fit(batches()));
  return tensors_of(*net);
}

TEST_CASE("training in INT8 follows that in FP32 closely, with other bits, and repeats itself") {
  auto const plain = trained();
  auto const quantized = trained(Precision<INT8>{});
  CHECK(same_bits(quantized, trained(Precision<INT8>{})));
  for (auto const& [name, weight] : plain) CHECK(distance(weight, quantized.at(name)) < 0.05);
  CHECK_FALSE(same_bits(plain, quantized));
}

TEST_CASE("a validation, an evaluation and a prediction compute in INT8 too") {
  torch::manual_seed(6);
  torch::nn::Sequential net = network();
  auto const source = batches(1);
  frugal::Trainer trainer{net, Classes{}, frugal::Settings{}, Optimize<frugal::Nothing>{},
                          Precision<INT8>{}};
  frugal::Trainer plain{net, Classes{}, frugal::Settings{}, Optimize<frugal::Nothing>{}};
  auto const loss_of = [&](frugal::Metrics const& metrics) { return metrics["loss"]; };
  double const in_fp32 = loss_of(plain.evaluate(source));
  double const in_int8 = loss_of(trainer.evaluate(source));
  CHECK(in_fp32 != in_int8);
  CHECK(in_fp32 == doctest::Approx(in_int8).epsilon(0.02));
  CHECK(loss_of(trainer.fit(source, source).validations.back().metrics) == in_int8);
  at::Tensor predicted;
  trainer.predict(source, [&](at::Tensor const& out, auto const&) { predicted = out; });
  CHECK(at::cross_entropy_loss(predicted, source.front().target).item<double>() ==
        doctest::Approx(in_int8));
  // The recipe without it computes as before, and so does the module by itself.
  CHECK(loss_of(plain.evaluate(source)) == in_fp32);
  at::NoGradGuard const no_gradients;
  CHECK(at::cross_entropy_loss(net->forward(source.front().data), source.front().target)
            .item<double>() == doctest::Approx(in_fp32).epsilon(1e-7));
}

TEST_CASE(
    "layers whose sides are no multiples of 8, and embeddings that share a weight, stay FP32") {
  torch::manual_seed(7);
  torch::nn::Sequential net{torch::nn::Linear(6, 16), torch::nn::Linear(16, 9)};
  auto const weights = frugal::detail::linear_weights(*net, 8);
  CHECK(weights.empty());
  torch::nn::Linear head(16, 24);
  torch::nn::Embedding words(24, 16);
  words->weight = head->weight;
  frugal::detail::ScaledLayers const layers(std::type_identity<Int8Format>{}, *head);
  at::Tensor const plain = head->forward(head->weight);
  auto const acting = layers.act();
  at::Tensor const rows = words->forward(at::arange(24));
  CHECK(at::equal(rows, head->weight));
  CHECK_FALSE(at::equal(head->forward(rows), plain));
}

TEST_CASE("a product whose sums could exceed 32 bits stays FP32") {
  auto const of = [](std::int64_t rows, std::int64_t inputs, std::int64_t outputs) {
    at::Tensor const one = at::empty({1});
    return Int8Format::takes(one.expand({rows, inputs}), one.expand({outputs, inputs}));
  };
  CHECK(of(132104, 8, 8));
  CHECK_FALSE(of(132105, 8, 8));
  CHECK_FALSE(of(8, 133152, 8));
  CHECK_FALSE(of(8, 8, 200000));
}

TEST_CASE("a module without a layer for INT8 is a note in the report") {
  frugal::Trainer trainer{torch::nn::Linear(8, 3), Classes{}, frugal::Settings{}, Optimize<SGD>{},
                          Precision<INT8>{}};
  auto const report = trainer.fit(batches(1));
  REQUIRE_FALSE(report.warnings.empty());
  CHECK(report.warnings.front().find("multiples of 8, and this module has none") !=
        std::string::npos);
}

TEST_CASE("a CPU without INT8 dot products is a note that names the better format") {
  CHECK(frugal::detail::int8_caution(true, true).empty());
  CHECK(frugal::detail::int8_caution(false, true).find("Precision<BF16> is faster") !=
        std::string::npos);
  CHECK(frugal::detail::int8_caution(false, false).find("Precision<FP32> is faster") !=
        std::string::npos);
  CHECK(Precision<INT8>::caution(/*on_gpu=*/false).empty() == frugal::detail::cpu_has_int8());
}

TEST_CASE("recomputation computes in INT8 as the first time") {
  CHECK(same_bits(trained(Precision<INT8>{}), trained(Precision<INT8>{}, frugal::Recompute<>{})));
}

TEST_CASE("inputs are kept for backward in INT8") {
  torch::nn::Linear layer(64, 64);
  frugal::detail::ScaledLayers const layers(std::type_identity<Int8Format>{}, *layer);
  auto const acting = layers.act();
  at::Tensor input = torch::randn({32, 64});
  at::Tensor const output = layer->forward(input);
  CHECK(input.storage().use_count() == 1);  // the test's own
}

TEST_CASE("a second derivative is refused") {
  torch::nn::Linear layer(16, 16);
  frugal::detail::ScaledLayers const layers(std::type_identity<Int8Format>{}, *layer);
  auto const acting = layers.act();
  at::Tensor input = torch::randn({4, 16}, torch::requires_grad());
  at::Tensor const output = layer->forward(input).pow(2).sum();
  CHECK_THROWS_AS(torch::autograd::grad({output}, {input}, {}, true, /*create_graph=*/true),
                  frugal::ModuleError);
}

TEST_CASE("the format of the environment may be INT8") {
  REQUIRE(setenv("FRUGAL_PRECISION", "int8", 1) == 0);
  auto const from_env = trained(Precision<frugal::FromEnv<FP32, INT8>>{});
  REQUIRE(unsetenv("FRUGAL_PRECISION") == 0);
  CHECK(same_bits(from_env, trained(Precision<INT8>{})));
}

}  // namespace frugal_test::policy_precision_int8

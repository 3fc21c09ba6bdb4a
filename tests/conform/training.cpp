// SPDX-License-Identifier: Apache-2.0
// Whole runs compared with plain PyTorch loops: the loss of every step, and the final weights.
#include <doctest/doctest.h>

#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/clip.hpp>
#include <frugal/policy/precision.hpp>
#include <frugal/policy/schedule.hpp>

#include "support/training.hpp"

namespace frugal_test::conform_training {

using namespace frugal_test::support;

TEST_CASE("30 steps of AdamW have PyTorch's losses and weights") {
  TrainingFile const file;
  Json const& which = case_named(file.file.at("cases"), "plain");
  check_follows(train_as(file, which, RowWeighted{false}), which);
}

TEST_CASE("30 steps with clipping, warm-up and cosine have PyTorch's losses, rates and weights") {
  TrainingFile const file;
  Json const& which = case_named(file.file.at("cases"), "clip, warm-up, cosine");
  REQUIRE(which.at("max_norm") == 1.0);
  REQUIRE(which.at("warmup") == 5);
  auto const trained = train_as(
      file, which, RowWeighted{false}, frugal::ClipNorm<>{},
      frugal::Schedule<frugal::Warmup<5>, frugal::CosineDecay<frugal::Rational{0, 1}, 25>>{});
  check_follows(trained, which);
  auto const rates = which.at("float32").at("rates").get<std::vector<double>>();
  REQUIRE(trained.rates.size() == rates.size());
  for (std::size_t i = 0; i < rates.size(); ++i) {
    CHECK(trained.rates[i] * 1e-2 == doctest::Approx(rates[i]).epsilon(1e-12));
  }
}

TEST_CASE("30 windows of micro-batches have the losses and weights of PyTorch's big batches") {
  TrainingFile const file;
  for (char const* name : {"accumulate", "accumulate, weighted"}) {
    CAPTURE(name);
    Json const& which = case_named(file.file.at("cases"), name);
    REQUIRE(which.at("window") == 4);
    bool const weighted = std::string(name) != "accumulate";
    check_follows(train_as(file, which, RowWeighted{weighted}, frugal::Accumulate<4>{}), which);
  }
}

TEST_CASE("30 steps under BF16 autocast have PyTorch's losses to three decimal places") {
  TrainingFile const file;
  Json const& which = case_named(file.file.at("cases"), "bf16 autocast");
  auto const trained = train_as(file, which, RowWeighted{false}, frugal::Precision<frugal::BF16>{});
  // BF16 has 8 bits; which sums a matrix unit rounds to it, and when, depends on the machine.
  Apart const found = apart(trained, which.at("float32"));
  CHECK(found.losses < 1e-3);
  CHECK(found.weights < 1e-2);
}

}  // namespace frugal_test::conform_training

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <atomic>
#include <frugal/policy/flush_denormals.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>
#include <limits>
#include <stdexcept>

#include "support/running.hpp"

namespace frugal_test::policy_flush_denormals {

using namespace frugal_test::support;
using frugal::FlushDenormals;
using frugal::Optimize;
using frugal::SGD;
using frugal::TensorDataset;

/// Half of the smallest normal number, as this thread computes it.
float half_of_smallest() {
  float const volatile smallest = std::numeric_limits<float>::min();
  float const volatile half = smallest / 2;
  return half;
}

/// Threads of LibTorch's pool, this one included, that compute with denormals.
int threads_with_denormals() {
  std::atomic<int> count = 0;
  at::parallel_for(0, at::get_num_threads(), 1, [&](std::int64_t begin, std::int64_t end) {
    if (half_of_smallest() != 0.0F) count += static_cast<int>(end - begin);
  });
  return count;
}

template <class Body>
void fit_with(Body&& body) {
  Spy spy{.each_step = [&](frugal::Counters const& at) { body(at.step); }};
  frugal::Trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, frugal::Settings{},
                  Optimize<SGD>{},         FlushDenormals{},       spy}
      .fit(TensorDataset(samples(8), {.batch = 4}));
}

TEST_CASE("denormals are zero in every thread during a fit, and normal afterwards") {
  REQUIRE(threads_with_denormals() == at::get_num_threads());
  int steps = 0;
  fit_with([&](std::uint64_t) {
    CHECK(threads_with_denormals() == 0);
    ++steps;
  });
  CHECK(steps == 2);
  CHECK(threads_with_denormals() == at::get_num_threads());
}

TEST_CASE("a fit that ends with an exception restores the threads as well") {
  CHECK_THROWS_AS(fit_with([](std::uint64_t) { throw std::domain_error("enough"); }),
                  std::domain_error);
  CHECK(threads_with_denormals() == at::get_num_threads());
}

TEST_CASE("a mode that was set before stays set") {
  REQUIRE(at::globalContext().setFlushDenormal(true));
  fit_with([](std::uint64_t) {});
  CHECK(half_of_smallest() == 0.0F);
  at::globalContext().setFlushDenormal(false);
}

TEST_CASE("a run without denormals is the same with it, bit for bit") {
  auto const trained = [](auto... policies) {
    auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3});
    frugal::Trainer{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 3},
                    Optimize<SGD>{.lr = 0.1}, policies...}
        .fit(TensorDataset(samples(22), {.batch = 4}));
    return tensors_of(*module);
  };
  auto const plain = trained();
  auto const flushed = trained(FlushDenormals{});
  for (auto const& [name, tensor] : plain) CHECK(at::equal(tensor, flushed.at(name)));
}

}  // namespace frugal_test::policy_flush_denormals

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/resource.h>

#include <frugal/policy/keep_host_memory.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include "support/running.hpp"

namespace frugal_test::policy_keep_memory {

using namespace frugal_test::support;
using frugal::KeepHostMemory;
using frugal::Optimize;
using frugal::SGD;
using frugal::TensorDataset;

/// Page faults of this process so far.
long faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// Page faults of a tensor of 64 MiB, allocated, filled and freed ten times.
long faults_of_ten_tensors() {
  long const before = faults();
  for (int i = 0; i < 10; ++i) at::ones({64 << 18});
  return faults() - before;
}

TEST_CASE("after its fit has begun, freed memory is reused and not requested again") {
#ifdef __GLIBC__
  constexpr long pages = (64 << 20) / 4096;
  // 64 MiB is above every threshold of glibc: without the policy each of the ten is mapped afresh.
  // The first ten fill the heap's gaps. Large pages may reduce the faults, so only one side is
  // compared with a number.
  TensorDataset data(samples(8), {.batch = 4});
  frugal::Trainer{std::make_shared<Mlp>(), frugal::CrossEntropy{}, frugal::Settings{},
                  Optimize<SGD>{}, KeepHostMemory{}}
      .fit(data);
  faults_of_ten_tensors();
  CHECK(faults_of_ten_tensors() < 2 * pages);
#endif
}

TEST_CASE("the run with it is the run without it, bit for bit") {
  auto const trained = [](auto... policies) {
    auto const module = std::make_shared<Mlp>(Mlp::Shape{.dropout = 0.3});
    frugal::Trainer{module, frugal::CrossEntropy{}, frugal::Settings{.epochs = 3},
                    Optimize<SGD>{.lr = 0.1}, policies...}
        .fit(TensorDataset(samples(22), {.batch = 4}));
    return tensors_of(*module);
  };
  auto const plain = trained();
  auto const kept = trained(KeepHostMemory{});
  for (auto const& [name, tensor] : plain) CHECK(at::equal(tensor, kept.at(name)));
}

}  // namespace frugal_test::policy_keep_memory

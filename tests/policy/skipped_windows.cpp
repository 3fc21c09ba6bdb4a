// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/policy/skipped_windows.hpp>

#include "support/running.hpp"

namespace frugal_test::policy_skipped_windows {

using frugal::detail::FlagQueue;
using frugal::detail::KeptBuffers;

at::Tensor flag(int value) { return at::full({}, value, at::kFloat); }

std::vector<bool> read(FlagQueue& queue, std::vector<int> const& flags) {
  std::vector<bool> all;
  for (int const each : flags) all.push_back(queue.next(flag(each)));
  return all;
}

TEST_CASE("a flag in host memory is read at once") {
  FlagQueue queue;
  CHECK((read(queue, {0, 1, 0, 1}) == std::vector{false, true, false, true}));
}

TEST_CASE("a flag with a lag is read that many windows later") {
  FlagQueue queue(2);
  CHECK((read(queue, {1, 0, 1, 0, 0, 0}) == std::vector{false, false, true, false, true, false}));
}

TEST_CASE("a flag that is overwritten after it was enqueued keeps its value") {
  FlagQueue queue(1);
  at::Tensor const shared = flag(1);
  CHECK_FALSE(queue.next(shared));
  shared.zero_();
  CHECK(queue.next(shared));
  CHECK_FALSE(queue.next(shared));
}

TEST_CASE("pending flags survive a resume") {
  frugal::StateDict memory;
  FlagQueue before(2);
  read(before, {1, 0, 1});
  frugal::StateWriter writer(memory);
  before.persist(writer);
  FlagQueue after(2);
  frugal::StateReader reader(memory);
  after.persist(reader);
  std::vector<int> const rest{0, 1, 0, 0};
  CHECK((read(after, rest) == read(before, rest)));
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Statistics : torch::nn::Module {
  Statistics() {
    mean = register_buffer("mean", at::arange(6, at::kFloat).view({2, 3}).t());
    scale = register_buffer("scale", at::ones({}, at::kDouble));
    count = register_buffer("count", at::zeros({}, at::kLong));
    mask = register_buffer("mask", at::full({3}, -infinity));
  }
  at::Tensor mean, scale, count, mask;
};

TEST_CASE("what became NaN is put back with its group, and what is finite stays") {
  Statistics module;
  at::Tensor const before = module.mean.clone();
  KeptBuffers kept;
  kept.begin(module);
  CHECK_FALSE(kept.empty());
  kept.take();
  module.mean.add_(1);
  module.count.add_(1);
  kept.put_back(kept.is_bad());
  CHECK(at::equal(module.mean, before + 1));

  kept.take();
  module.mean[0][1] = not_a_number;
  module.scale.fill_(3);
  module.count.add_(1);
  kept.put_back(kept.is_bad());
  CHECK(at::equal(module.mean, before + 1));
  CHECK(module.scale.item<double>() == 1);
  CHECK(module.count.item<std::int64_t>() == 2);
  CHECK(module.mask.isinf().all().item<bool>());
}

TEST_CASE("with a flag that the host does not read, likewise") {
  Statistics module;
  KeptBuffers kept;
  kept.begin(module);
  for (bool const skipped : {false, true}) {
    for (double const value : {2.0, infinity, not_a_number}) {
      module.mean.fill_(7);
      module.scale.fill_(1);
      kept.take();
      module.mean[2][0] = value;
      module.scale.fill_(3);  // of another type, and finite
      kept.put_back(at::full({}, skipped ? 1 : 0, at::kFloat));
      double const found = module.mean[2][0].item<double>();
      bool const back = skipped && value != 2.0;
      CHECK((back ? found == 7 : found == value || (value != value && found != found)));
      CHECK(module.scale.item<double>() == (back ? 1 : 3));
      CHECK(module.mean.strides() == at::IntArrayRef({1, 3}));
    }
  }
}

TEST_CASE("a range that has seen nothing is put back as others are, and a mask is never bad") {
  struct Ranges : torch::nn::Module {
    at::Tensor least{register_buffer("least", at::full({}, infinity))};
    at::Tensor mask{register_buffer("mask", at::tensor({0.0, -infinity, not_a_number}))};
  };
  for (bool const on_device : {false, true}) {
    Ranges module;
    KeptBuffers kept;
    kept.begin(module);
    auto const back = [&] {
      on_device ? kept.put_back(at::ones({})) : kept.put_back(kept.is_bad());
      return module.least.item<double>();
    };
    kept.take();
    module.least.fill_(not_a_number);
    CHECK(back() == infinity);
    kept.take();
    module.least.fill_(-2);
    CHECK(back() == -2);
    kept.take();
    for (double const bad : {not_a_number, infinity, -infinity}) {
      module.least.fill_(bad);
      CHECK(back() == -2);
    }
    CHECK(module.mask[2].isnan().item<bool>());
    CHECK(module.mask[1].item<double>() == -infinity);
  }
}

TEST_CASE("a module without such buffers costs nothing, and takes and puts back nothing") {
  torch::nn::Linear linear(2, 2);
  KeptBuffers kept;
  kept.begin(*linear);
  CHECK(kept.empty());
  kept.take();
  kept.put_back(kept.is_bad());
  kept.put_back(at::ones({}));
}

}  // namespace frugal_test::policy_skipped_windows

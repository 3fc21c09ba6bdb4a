// SPDX-License-Identifier: Apache-2.0
// Case 8: under a limit of the allocator AutoBatch finds what fits, Accumulate<Auto> splits a step
// that runs out of memory in its forward or backward pass, a step that cannot be split is a
// MemoryError, and the next fit works.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "device_memory.hpp"
#include "support/running.hpp"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <string>

namespace frugal_test::gpu_out_of_memory {

using namespace frugal_test::support;
namespace memory = frugal_test::device_memory;
using frugal::Accumulate;
using frugal::Auto;
using frugal::AutoBatch;
using memory::mib;

// 16 samples of 40 MiB take 640 MiB and fit; 16 of 96 take 1,536 and do not, 8 take 768 and do. The
// rest is for the network and for cuBLAS.
constexpr std::int64_t limit = 1152 * mib;
constexpr std::int64_t little = 40 * mib;
constexpr std::int64_t much = 96 * mib;
constexpr std::int64_t too_much = 2048 * mib;

enum class Where { forward, backward };

/// Takes a number of bytes per sample on the device: saved from forward until backward, or during
/// backward.
struct Eats : torch::autograd::Function<Eats> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, at::Tensor const& loss,
                            std::int64_t bytes, bool in_backward) {
    context->saved_data["bytes"] = bytes;
    context->saved_data["in_backward"] = in_backward;
    if (!in_backward) context->save_for_backward({eaten(bytes, loss)});
    return loss.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list const& gradients) {
    if (context->saved_data["in_backward"].toBool()) {
      eaten(context->saved_data["bytes"].toInt(), gradients[0]);
    }
    return {gradients[0], at::Tensor(), at::Tensor()};
  }
  static at::Tensor eaten(std::int64_t bytes, at::Tensor const& where) {
    return at::empty({bytes}, where.options().dtype(at::kByte).requires_grad(false));
  }
};

/// Cross entropy that takes memory, and a different amount from some step on.
struct Hungry {
  std::int64_t bytes = little;  ///< per sample
  std::int64_t later = little;
  std::uint64_t from = 0;  ///< steps
  Where where = Where::forward;
  std::uint64_t const* step = nullptr;

  template <class Module>
  frugal::Loss operator()(Module& module, frugal::Batch const& batch) const {
    frugal::Loss loss = frugal::CrossEntropy{}(module, batch);
    if (!at::GradMode::is_enabled()) return loss;
    std::int64_t const each = step != nullptr && *step >= from ? later : bytes;
    loss.value = Eats::apply(loss.value, each * batch.data.size(0), where == Where::backward);
    return loss;
  }
};

struct Ended {
  frugal::Report report;
  std::map<std::string, at::Tensor> tensors;
  std::int64_t micro_batch = 0;
};

/// Nine steps of batches of 16, 16 and 12 samples.
template <class... Ps>
Ended run(Hungry hungry, Ps const&... policies) {
  Ended ended;
  std::uint64_t step = 0;
  hungry.step = &step;
  auto const module = std::make_shared<Mlp>();
  frugal::Trainer trainer{
      module,
      hungry,
      frugal::Settings{.epochs = 3, .seed = 5, .device = c10::Device(c10::kCUDA, 0)},
      frugal::Optimize<frugal::SGD>{.lr = 0.1, .momentum = 0.9},
      Accumulate<Auto>{},
      Spy{.each_step = [&](frugal::Counters const& at) { step = at.step; }},
      policies...};
  ended.report = trainer.fit(frugal::TensorDataset(samples(44), {.batch = 16, .shuffle = true}));
  CHECK(ended.report.steps == 9);
  ended.micro_batch = trainer.template policy<frugal::kinds::accumulate>().micro_batch();
  module->to(c10::kCPU);
  ended.tensors = tensors_of(*module);
  return ended;
}

bool advises(frugal::Report const& report, std::string const& words) {
  return std::any_of(report.warnings.begin(), report.warnings.end(), [&](std::string const& line) {
    return line.find(words) != std::string::npos;
  });
}

void check_near(Ended const& a, Ended const& b) {
  CHECK(std::abs(a.report.train_loss - b.report.train_loss) <=
        1e-5 * std::abs(b.report.train_loss));
  for (auto const& [name, tensor] : a.tensors) {
    CAPTURE(name);
    CHECK(distance(tensor, b.tensors.at(name)) < 1e-5);
  }
}

/// Without a limit, in whole batches. The first run also makes cuBLAS allocate its workspace.
Ended const& whole() {
  static Ended const kept = run({.bytes = mib, .later = mib});
  return kept;
}

TEST_CASE("AutoBatch finds the largest micro-batch for which the allocator has memory") {
  CHECK(whole().micro_batch == 0);
  memory::Limit const held(limit);
  Ended const halved = run({.bytes = much, .later = much}, AutoBatch{});
  CHECK(halved.micro_batch == 8);
  CHECK(advises(halved.report, "AutoBatch: micro-batches of 8 samples fit, of batches of 16"));
  // The size found holds: no later step runs out of memory.
  CHECK_FALSE(advises(halved.report, "memory ran out"));
  check_near(halved, whole());
  Ended const fits = run({}, AutoBatch{});
  CHECK(fits.micro_batch == 0);
  CHECK(advises(fits.report, "AutoBatch: a batch of 16 samples fits whole"));
}

void splits_in_mid_run(Where where) {
  whole();
  memory::Limit const held(limit);
  Ended const split = run({.later = much, .from = 4, .where = where});
  CHECK(split.micro_batch == 8);
  CHECK(split.report.warnings.size() == 1);
  CHECK(advises(split.report, "memory ran out at step 4 with 16 samples"));
  check_near(split, whole());
}

TEST_CASE("a step that runs out of memory in its forward pass is split, and the run continues") {
  splits_in_mid_run(Where::forward);
}

TEST_CASE("a step that runs out of memory in its backward pass is split, and the run continues") {
  splits_in_mid_run(Where::backward);
}

/// One sample is too large: a frugal Error, nothing is left behind, and the next fit works.
template <class... Ps>
void refuses(Hungry const& hungry, std::string const& where, Ps const&... policies) {
  whole();
  memory::Limit const held(limit);
  std::int64_t const before = memory::allocated();
  try {
    run(hungry, policies...);
    FAIL("nothing was thrown");
  } catch (frugal::MemoryError const& error) {
    CHECK(error.fault().where.find(where) != std::string::npos);
  }
  CHECK(memory::allocated() <= before + mib);
  Ended const next = run({}, policies...);
  check_near(next, whole());
}

TEST_CASE("one sample that is too large is a MemoryError before the first step") {
  refuses({.bytes = too_much, .later = too_much}, "AutoBatch, before the first step", AutoBatch{});
}

TEST_CASE("one sample that is too large is a MemoryError in mid-run, forward and backward") {
  refuses({.later = too_much, .from = 2}, "step 2, Accumulate<Auto>");
  refuses({.later = too_much, .from = 2, .where = Where::backward}, "step 2, Accumulate<Auto>");
}

TEST_CASE("with Accumulate<N> LibTorch's error names the step, and the next fit works") {
  whole();
  memory::Limit const held(limit);
  bool ran_out = false;
  try {
    frugal::Trainer trainer{std::make_shared<Mlp>(), Hungry{.bytes = too_much},
                            frugal::Settings{.device = c10::Device(c10::kCUDA, 0)},
                            frugal::Optimize<frugal::SGD>{.lr = 0.1}};
    static_cast<void>(trainer.fit(frugal::TensorDataset(samples(44), {.batch = 16})));
  } catch (frugal::ModuleError const& error) {
    ran_out = frugal::detail::is_out_of_memory(std::current_exception());
    CHECK(error.fault().where.find("step 0") != std::string::npos);
  }
  CHECK(ran_out);
  check_near(run({}), whole());
}

}  // namespace frugal_test::gpu_out_of_memory

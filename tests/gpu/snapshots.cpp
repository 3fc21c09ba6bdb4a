// SPDX-License-Identifier: Apache-2.0
// Case 10: a checkpoint that is written while training continues has the weights of its own step,
// eagerly and with CudaGraph, and validations of the average between replays do not affect the replays.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::gpu_snapshots {

using namespace frugal_test::support;
using frugal::Every;

using Tensors = std::map<std::string, at::Tensor>;

constexpr std::uint64_t steps = 40;
constexpr std::int64_t features = 1024;
constexpr std::int64_t classes = 8;

/// Copies the module after each step, synchronously on the device. Not part of a step, so CudaGraph can
/// capture it.
struct Records {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.Records";
  };
  using listens = frugal::list<frugal::on::step>;
  using after = everything;

  std::map<std::uint64_t, Tensors>* out = nullptr;

  class State {
   public:
    using transient = void;
    explicit State(Records const& settings) : out_(settings.out) {}
    void on_step(frugal::Step& phase) {
      if (out_ == nullptr) return;
      out_->insert_or_assign(phase.counters().step,
                             tensors_of(frugal::base_module(phase.module())));
    }

   private:
    std::map<std::uint64_t, Tensors>* out_;
  };
};

Tensors on_host(Tensors all) {
  for (auto& [name, tensor] : all) tensor = tensor.cpu();
  return all;
}

struct Ended {
  frugal::Report report;
  Tensors tensors;
  Tensors averages;
};

/// 40 steps of 16 samples, with dropout and normalization; a checkpoint has about 25 MiB.
template <class... Ps>
Ended run(std::filesystem::path const& folder, bool validates, Ps const&... policies) {
  static frugal::Batch const set = samples(320, 91, features, classes);
  static frugal::Batch const watched = samples(48, 92, features, classes);
  Ended ended;
  auto const module = std::make_shared<Mlp>(Mlp::Shape{
      .features = features, .hidden = 2048, .classes = classes, .dropout = 0.3, .norm = true});
  frugal::Trainer trainer{
      module, frugal::CrossEntropy{},
      frugal::Settings{
          .run_dir = folder, .epochs = 2, .seed = 7, .device = c10::Device(c10::kCUDA, 0)},
      frugal::Optimize<frugal::AdamW>{.lr = 1e-2},
      // The module keeps what was trained, so that both are compared.
      frugal::Average<frugal::Ema<0.9>>{.at_end = frugal::Weights::trained}, policies...};
  frugal::TensorDataset train(set, {.batch = 16, .shuffle = true});
  frugal::TensorDataset valid(watched, {.batch = 16});
  ended.report = validates ? trainer.fit(train, valid) : trainer.fit(train);
  CHECK(ended.report.steps == steps);
  // All windows have one shape, so CudaGraph only advises if it gave up.
  for (std::string const& line : ended.report.warnings) {
    CAPTURE(line);
    CHECK(line.find("CudaGraph") == std::string::npos);
  }
  module->to(c10::kCPU);
  ended.tensors = tensors_of(*module);
  ended.averages = on_host(trainer.template policy<frugal::kinds::average>().weights().tensors);
  return ended;
}

/// Compared with a run that saves nothing and copies its weights after each step.
template <class... Ps>
void saves_its_own_step(Ps const&... policies) {
  TemporaryFolder const folder;
  std::map<std::uint64_t, Tensors> recorded;
  Ended const watched = run(folder / "watched", false, Records{.out = &recorded}, policies...);
  Ended const saved =
      run(folder / "saved", false, Records{},
          frugal::Checkpoint<Every<3>, frugal::Async, frugal::Keep<100>>{}, policies...);
  CHECK(same_bits(saved.tensors, watched.tensors));
  CHECK(same_bits(saved.averages, watched.averages));

  std::size_t compared = 0;
  auto const list = frugal::RunDirectory(folder / "saved", frugal::Access::read).list();
  for (auto const& checkpoint : list.whole) {
    std::uint64_t const step = checkpoint.step();
    if (step == 0) continue;
    CAPTURE(step);
    auto const file = frugal::Safetensors::open(checkpoint.folder / "model.safetensors");
    Tensors found;
    for (std::size_t i = 0; i < file.size(); ++i) {
      found.emplace(file[i].name, frugal::detail::tensor_in_file(file[i]));
    }
    REQUIRE(recorded.contains(step));
    CHECK(same_bits(found, on_host(recorded.at(step))));
    ++compared;
  }
  // 3, 6, ..., 39, and the end.
  CHECK(compared == 14);
}

TEST_CASE("eagerly, the file of a step has the weights of that step, while training continues") {
  saves_its_own_step();
}

TEST_CASE(
    "with CudaGraph, the file of a step has the weights of that step, while replays continue") {
  saves_its_own_step(frugal::CudaGraph<frugal::WholeStep>{});
}

TEST_CASE("validations of the average between replays change no bit of them") {
  frugal::CudaGraph<frugal::WholeStep> const graph{};
  Ended const alone = run({}, false, graph);
  Ended const validated = run({}, true, graph, frugal::Validate<Every<3>>{});
  CHECK(same_bits(validated.tensors, alone.tensors));
  CHECK(same_bits(validated.averages, alone.averages));
  CHECK_FALSE(same_bits(alone.tensors, alone.averages));

  // A run that never captures validates the same weights.
  frugal::CudaGraph<frugal::WholeStep> eager{};
  eager.warm_up = 1 << 20;
  Ended const never = run({}, true, eager, frugal::Validate<Every<3>>{});
  REQUIRE(never.report.validations.size() == validated.report.validations.size());
  CHECK(never.report.validations.size() >= steps / 3);
  for (std::size_t i = 0; i < never.report.validations.size(); ++i) {
    CAPTURE(i);
    CHECK(never.report.validations[i].step == validated.report.validations[i].step);
    CHECK(never.report.validations[i].metrics == validated.report.validations[i].metrics);
  }
  CHECK(same_bits(never.averages, validated.averages));
}

}  // namespace frugal_test::gpu_snapshots

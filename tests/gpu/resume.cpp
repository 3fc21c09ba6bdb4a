// SPDX-License-Identifier: Apache-2.0
// Case 6: a run that dies on a GPU resumes with the bits of an uninterrupted one, eagerly and with
// CudaGraph; between CPU and GPU it resumes with nearly the same losses.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include "support/dying_runs.hpp"
#include "support/files.hpp"
#include "support/running.hpp"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace frugal_test::gpu_resume {

using namespace frugal_test::support;
using namespace frugal_test::support::dying_runs;
using frugal::Every;

c10::Device const any_gpu(c10::kCUDA);
c10::Device const first_gpu(c10::kCUDA, 0);
c10::Device const cpu(c10::kCPU);

/// Steps after which a run dies: its next micro-batch is 2, 6 or 14.
std::vector<std::uint64_t> const deaths{1, 5, 13};

template <class... Ps>
Outcome run_eagerly(Job const& job, Ps const&... policies) {
  return run(job, frugal::Optimize<frugal::AdamW>{.lr = 1e-2}, frugal::ClipNorm<0.5>{},
             frugal::Average<frugal::Ema<0.9>>{}, frugal::Checkpoint<Every<3>>{}, policies...);
}

/// Stops after `job.dies_at` - 1 steps on one device, like a kill, and resumes on the other.
Outcome stopped(Job job, std::uint64_t step, c10::Device from, c10::Device to) {
  job.dies_at = step + 1;
  job.device = from;
  CHECK(run_eagerly(job).died);
  job.dies_at = 0;
  job.device = to;
  Outcome rest = run_eagerly(job);
  REQUIRE(rest.report.resumed);
  CHECK(rest.report.resumed->step == step - step % 3);
  return rest;
}

TEST_CASE("eagerly, a run that died resumes with the same bits, with either spelling of its GPU") {
  TemporaryFolder const folder;
  Outcome const whole = run_eagerly({.folder = folder / "whole", .device = first_gpu});
  CHECK(whole.report.steps == 33);
  for (std::uint64_t const step : deaths) {
    CAPTURE(step);
    for (bool const named : {false, true}) {
      CAPTURE(named);
      auto const where = folder / (std::to_string(step) + (named ? "-named" : ""));
      Outcome const rest = stopped({.folder = where}, step, named ? first_gpu : any_gpu, first_gpu);
      CHECK(same_bits(rest.tensors, whole.tensors));
      CHECK(rest.report.train_loss == whole.report.train_loss);
      CHECK_FALSE(advises(rest.report, "the checkpoint was saved on"));
    }
  }
}

/// A replayed step does not call the objective, so this run dies at the end of a step.
struct Dies {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.Dies";
  };
  using listens = frugal::list<frugal::on::step>;
  using after = everything;

  std::uint64_t at = 0;  ///< steps; 0: never

  class State {
   public:
    using transient = void;
    explicit State(Dies const& settings) : at_(settings.at) {}
    void on_step(frugal::Step& phase) {
      if (phase.counters().step == at_) throw Gone{};
    }

   private:
    std::uint64_t at_;
  };
};

/// The run of dying_runs with CudaGraph, and with an objective without host syncs.
Outcome run_captured(std::filesystem::path const& folder, std::uint64_t dies_after,
                     c10::Device device) {
  Job const job{.folder = folder, .device = device};
  return run_with(job, frugal::CrossEntropy{}, frugal::Optimize<frugal::AdamW>{.lr = 1e-2},
                  frugal::ClipNorm<0.5>{}, frugal::Average<frugal::Ema<0.9>>{},
                  frugal::Checkpoint<Every<3>>{}, frugal::CudaGraph<frugal::WholeStep>{},
                  Dies{.at = dies_after});
}

TEST_CASE("with CudaGraph, a run that died resumes with the same bits") {
  TemporaryFolder const folder;
  Outcome const whole = run_captured(folder / "whole", 0, first_gpu);
  CHECK(whole.report.steps == 33);
  CHECK_FALSE(advises(whole.report, "cannot be captured"));
  for (std::uint64_t const step : deaths) {
    CAPTURE(step);
    auto const where = folder / std::to_string(step);
    CHECK(run_captured(where, step, any_gpu).died);
    Outcome const rest = run_captured(where, 0, first_gpu);
    REQUIRE(rest.report.resumed);
    CHECK(rest.report.resumed->step == step - step % 3);
    CHECK_FALSE(advises(rest.report, "cannot be captured"));
    CHECK(same_bits(rest.tensors, whole.tensors));
    CHECK(rest.report.train_loss == whole.report.train_loss);
  }
}

TEST_CASE("a run resumes from GPU to CPU and back, reports that, and has nearly the same losses") {
  TemporaryFolder const folder;
  // Dropout would draw other numbers on the other device.
  Mlp::Shape const shape{.dropout = 0, .norm = true};
  auto const crosses = [&](std::string const& name, c10::Device from, c10::Device to,
                           std::string const& kind) {
    CAPTURE(name);
    Outcome const whole =
        run_eagerly({.folder = folder / (name + "-whole"), .shape = shape, .device = from});
    Outcome const rest = stopped({.folder = folder / name, .shape = shape}, 13, from, to);
    CHECK(advises(rest.report, "the checkpoint was saved on " + kind));
    CHECK(rest.report.steps == 33);
    REQUIRE(rest.losses.size() == 33 - 12);
    for (std::size_t i = 0; i < rest.losses.size(); ++i) {
      CAPTURE(i);
      double const expected = whole.losses.at(12 + i);
      CHECK(std::abs(rest.losses[i] - expected) < 1e-3 * std::abs(expected) + 1e-4);
    }
  };
  crosses("down", first_gpu, cpu, "cuda");
  crosses("up", cpu, first_gpu, "cpu");
}

TEST_CASE("a run that went to the CPU and came back ends nearly like one that did not") {
  TemporaryFolder const folder;
  Mlp::Shape const shape{.dropout = 0, .norm = true};
  Outcome const whole =
      run_eagerly({.folder = folder / "whole", .shape = shape, .device = first_gpu});
  Job job{.folder = folder / "there and back", .shape = shape, .device = first_gpu};
  job.dies_at = 8;  // after 7 steps; saved at 6
  CHECK(run_eagerly(job).died);
  job.device = cpu;
  job.dies_at = 9;  // after 14 steps; saved at 12
  CHECK(run_eagerly(job).died);
  job.device = first_gpu;
  job.dies_at = 0;
  Outcome const rest = run_eagerly(job);
  REQUIRE(rest.report.resumed);
  CHECK(rest.report.resumed->step == 12);
  CHECK(advises(rest.report, "the checkpoint was saved on cpu"));
  CHECK(std::abs(rest.report.train_loss - whole.report.train_loss) <
        1e-3 * std::abs(whole.report.train_loss) + 1e-4);
}

}  // namespace frugal_test::gpu_resume

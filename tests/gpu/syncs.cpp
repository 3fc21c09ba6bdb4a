// SPDX-License-Identifier: Apache-2.0
// Case 3: no step of a recipe that declares 0 host syncs waits for the GPU.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>

#include <c10/cuda/CUDAFunctions.h>

#include "counting_capture.hpp"
#include "support/running.hpp"

namespace frugal_test::gpu_syncs {

using namespace frugal_test::gpu;
using namespace frugal_test::support;
using c10::cuda::SyncDebugMode;
using frugal::AdamW;
using frugal::Optimize;
using frugal::TensorDataset;

// One epoch, because its end reads the losses.
constexpr int windows = 48;
constexpr std::int64_t batch = 1024;  // activations of 256 KB, the first that Offload takes
constexpr std::uint64_t first_step = 5;
constexpr std::uint64_t last_step = 40;

/// LibTorch throws at every sync between steps. (It does not detect waits for an event.)
struct NoSyncs {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.NoSyncs";
  };
  using listens = frugal::list<frugal::on::fit_begin, frugal::on::step>;
  using after = everything;
  std::uint64_t* watched = nullptr;  ///< steps made under watch
  bool asks = false;                 ///< syncs in the middle of it

  class State {
   public:
    using transient = void;
    explicit State(NoSyncs const& settings) : watched_(settings.watched), asks_(settings.asks) {}

    void on_fit_begin(frugal::FitBegin& phase) {
      number_ = at::ones({}, at::TensorOptions().device(phase.settings().device));
    }
    void on_step(frugal::Step& phase) {
      auto& state = c10::cuda::warning_state();
      std::uint64_t const step = phase.counters().step;
      if (state.get_sync_debug_mode() == SyncDebugMode::L_ERROR) ++*watched_;
      if (asks_ && step == 20) static_cast<void>(number_.item<float>());
      if (step == first_step) state.set_sync_debug_mode(SyncDebugMode::L_ERROR);
      if (step == last_step) state.set_sync_debug_mode(SyncDebugMode::L_DISABLED);
    }

   private:
    std::uint64_t* watched_;
    bool asks_;
    at::Tensor number_;
  };
};

/// Restores the mode after a fit that throws.
struct Restored {
  ~Restored() { c10::cuda::warning_state().set_sync_debug_mode(SyncDebugMode::L_DISABLED); }
};

inline c10::Device gpu() { return {c10::kCUDA, 0}; }

/// Returns the number of steps made under watch.
template <class... Policies>
std::uint64_t watch(bool asks, at::Device data_on, Policies const&... policies) {
  std::uint64_t watched = 0;
  frugal::Trainer trainer{
      std::make_shared<Mlp>(
          Mlp::Shape{.features = 16, .hidden = 64, .classes = 8, .dropout = 0.25, .norm = true}),
      frugal::CrossEntropy{}, frugal::Settings{.epochs = 1, .device = gpu()},
      NoSyncs{&watched, asks}, policies...};
  using Job = decltype(trainer);
  static_assert(Job::host_syncs_per_step == 0);
  constexpr std::int64_t micro_batches =
      frugal::detail::RecipeTraits<typename Job::policies>::batches;
  frugal::Batch set = samples(windows * micro_batches * batch, 91, 16, 8);
  Restored const restored;
  auto const report = trainer.fit(TensorDataset(set.data.to(data_on), set.target.to(data_on),
                                                {.batch = batch, .shuffle = true}));
  CHECK(report.steps + report.non_finite_windows == windows);
  CHECK(lines_with("cannot be captured", report.warnings) == 0);
  CHECK(c10::cuda::warning_state().get_sync_debug_mode() == SyncDebugMode::L_DISABLED);
  return watched;
}

template <class... Policies>
void waits_for_nothing(Policies const&... policies) {
  CHECK(watch(false, c10::kCPU, policies...) == last_step - first_step);
}

TEST_CASE("a policy with a host sync is detected") {
  // Otherwise a watch that detects nothing would pass all the others.
  CHECK_THROWS_WITH_AS(watch(true, c10::kCPU, Optimize<AdamW>{}),
                       doctest::Contains("synchronizing"), c10::Error);
}

TEST_CASE("AdamW with ClipNorm, a schedule and an average, data on the host and on the GPU") {
  auto const watched = [](at::Device data_on) {
    return watch(false, data_on, Optimize<AdamW>{.amsgrad = true}, frugal::ClipNorm<0.3>{},
                 frugal::Schedule<frugal::Warmup<5>, frugal::Cosine>{},
                 frugal::Average<frugal::Ema<0.9>>{});
  };
  CHECK(watched(c10::kCPU) == last_step - first_step);
  CHECK(watched(gpu()) == last_step - first_step);
}

TEST_CASE("SGD with BF16, ClipValue and four micro-batches") {
  waits_for_nothing(Optimize<frugal::SGD>{.lr = 0.01, .momentum = 0.9}, frugal::Accumulate<4>{},
                    frugal::Precision<frugal::BF16>{}, frugal::ClipValue<0.05>{});
}

TEST_CASE("Adagrad with FP16") {
  waits_for_nothing(Optimize<frugal::Adagrad>{}, frugal::Precision<frugal::FP16>{});
}

TEST_CASE("Device, and an average at a cadence") {
  waits_for_nothing(Optimize<AdamW>{}, frugal::DevicePrefetch<>{}, frugal::ClipAdaptive<0.1>{},
                    frugal::Average<frugal::Ema<0.9, frugal::Every<3>>>{});
}

TEST_CASE("activations that are recomputed, halved or offloaded") {
  waits_for_nothing(Optimize<AdamW>{}, frugal::Recompute<>{});
  waits_for_nothing(Optimize<AdamW>{}, frugal::Activations<frugal::BF16>{});
  waits_for_nothing(Optimize<AdamW>{}, frugal::Activations<frugal::Offload>{});
}

TEST_CASE("windows that are split when memory is short") {
  waits_for_nothing(Optimize<AdamW>{}, frugal::Accumulate<frugal::Auto>{});
}

template <class... Policies>
void replays_wait_for_nothing(int replays_each, Policies const&... policies) {
  auto const log = std::make_shared<CaptureLog>();
  waits_for_nothing(policies..., counted(log));
  CHECK(log->broken_off == 0);
  CHECK(log->replays == (windows - 3) * replays_each);
}

TEST_CASE("CudaGraph") {
  replays_wait_for_nothing(1, Optimize<AdamW>{}, frugal::ClipNorm<0.3>{},
                           frugal::Schedule<frugal::Warmup<5>, frugal::Cosine>{},
                           frugal::Average<frugal::Ema<0.9>>{}, frugal::DevicePrefetch<>{});
}

TEST_CASE("CudaGraph with FP16 and four micro-batches") {
  replays_wait_for_nothing(5, Optimize<frugal::SGD>{.lr = 0.01, .momentum = 0.9},
                           frugal::Accumulate<4>{}, frugal::Precision<frugal::FP16>{});
}

}  // namespace frugal_test::gpu_syncs

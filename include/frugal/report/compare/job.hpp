// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/nn/module.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/cuda_memory.hpp>  // IWYU pragma: keep
#include <frugal/core/libtorch/host_meter.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/report/compare/comparison.hpp>

namespace frugal {

/// What all runs of a comparison have in common, next to the job itself.
struct CompareSettings {
  /// Settings of every run. Repeat r has the seed `seed + r`, for the weights as for the data. With
  /// a folder, each run gets its own within it.
  Settings settings{};
  TargetMetric target{};
  std::size_t repeats = 3;
  /// Steps of the run of each recipe that is not measured: first allocations, kernels and files.
  std::uint64_t warmup_steps = 5;
  std::optional<double> dollars_per_hour{};  ///< of the machine; nothing: no dollars in the table
  std::ostream* progress = nullptr;          ///< gets a line before each run

  /// SettingsError for what no comparison can be made with.
  void require(bool validates) const;
};

namespace detail {
struct NoSource {};
}  // namespace detail

/// What compare() trains with each recipe: how a module is made, its objective, its data. The data
/// must outlive it.
///
/// Make  a callable that returns a new module; it is called under each run's seed
/// Ps    policies that all recipes share: Validate<Accuracy>, Log<>. Names leave them out.
///
///     fr::CompareJob job{[] { return Net(); }, fr::CrossEntropy{}, train, valid,
///                 {.settings = {.epochs = 5, .seed = 1}}, fr::Validate<fr::Accuracy>{}};
template <class Make, class Objective, class Train, class Valid, class... Ps>
struct CompareJob {
  using module_type = std::remove_cvref_t<std::invoke_result_t<Make const&>>;
  static constexpr bool validates = !std::same_as<Valid, detail::NoSource>;

  CompareJob(Make make_, Objective objective_, Train& train_, Valid& valid_,
             CompareSettings settings_ = {}, Ps... values)
    requires validates
      : make(std::move(make_)),
        objective(std::move(objective_)),
        train(std::addressof(train_)),
        valid(std::addressof(valid_)),
        settings(std::move(settings_)),
        shared(std::move(values)...) {}
  /// Without validation data.
  CompareJob(Make make_, Objective objective_, Train& train_, CompareSettings settings_ = {},
             Ps... values)
    requires(!validates)
      : make(std::move(make_)),
        objective(std::move(objective_)),
        train(std::addressof(train_)),
        settings(std::move(settings_)),
        shared(std::move(values)...) {}

  Make make;
  Objective objective;
  Train* train;
  Valid* valid = nullptr;
  CompareSettings settings;
  std::tuple<Ps...> shared;
};

template <class Make, class Objective, class Train, class Valid>
  requires(!std::same_as<std::remove_cv_t<Valid>, CompareSettings>)
CompareJob(Make, Objective, Train&, Valid&) -> CompareJob<Make, Objective, Train, Valid>;
template <class Make, class Objective, class Train, class Valid, class... Ps>
  requires(!std::same_as<std::remove_cv_t<Valid>, CompareSettings>)
CompareJob(Make, Objective, Train&, Valid&, CompareSettings, Ps...)
    -> CompareJob<Make, Objective, Train, Valid, Ps...>;
template <class Make, class Objective, class Train>
CompareJob(Make, Objective, Train&) -> CompareJob<Make, Objective, Train, detail::NoSource>;
template <class Make, class Objective, class Train, class... Ps>
CompareJob(Make, Objective, Train&, CompareSettings, Ps...)
    -> CompareJob<Make, Objective, Train, detail::NoSource, Ps...>;

namespace detail {
template <class T>
inline constexpr bool is_job = false;
template <class... Ts>
inline constexpr bool is_job<CompareJob<Ts...>> = true;
}  // namespace detail

}  // namespace frugal

namespace frugal::detail {

/// The peak of a trial's tensor bytes: weights, gradients, the optimizer's state, activations,
/// batches. The resident size of the process would be that of all recipes so far.
class PeakMemory {
 public:
  /// Call before the module is made.
  PeakMemory() {
    try {
      HostMeter::install();
      host_ = true;
      HostMeter::forget_peak();
      live_ = HostMeter::live();
    } catch (SettingsError const&) {
      // The program has an allocator of its own: peaks on the CPU are unknown.
    }
  }

  /// Call before fit, with the device that it trains on.
  void begin(c10::Device device, [[maybe_unused]] torch::nn::Module const& module);

  /// Nothing where no allocator counts.
  std::optional<std::int64_t> above_start() const;

 private:
#ifdef FRUGAL_CUDA
  static std::int64_t bytes_there(at::Tensor const& tensor) {
    return tensor.is_cuda() ? static_cast<std::int64_t>(tensor.nbytes()) : 0;
  }
  c10::DeviceIndex index() const {
    c10::cuda::CUDAGuard const guard(device_);
    return guard.current_device().index();
  }
  c10::CachingAllocator::Stat stats() const {
    // The first entry is the sum over all pools.
    return c10::cuda::CUDACachingAllocator::getDeviceStats(index()).allocated_bytes[0];
  }
#endif

  bool host_ = false;
  c10::Device device_ = c10::kCPU;
  std::int64_t live_ = 0;
};

/// The time so far: of the wall, and of the processor in all threads of this process.
struct Clocks {
  double wall = 0;
  double processor = 0;

  static Clocks now();
  void add(Clocks const& from, Clocks const& to);
};

/// Times the steps of a trial, and notes when the target is reached. compare() adds it to every
/// recipe. It waits for a device after the first step, before validations and at the end. Takes the
/// metrics of the last validation if they are those of the final weights.
struct CompareWatch {
  struct kind : optional_kind {
    static constexpr std::string_view name = "CompareWatch";
    static constexpr Stage stage = Stage::leave;
  };
  using listens = list<on::step, around::validate, on::validated, on::fit_end>;
  using after = list<kinds::html_report, kinds::spot>;  // what others do in a step is part of it
  using properties = list<property::adds_no_metrics>;

  TargetMetric const* target = nullptr;
  Trial* trial = nullptr;

  class State {
   public:
    using transient = void;

    explicit State(CompareWatch const& watch) : target_(watch.target), trial_(watch.trial) {}

    void on_step(Step& phase) {
      last_ = phase.counters().step;
      if (first_) {
        end_ = Clocks::now();
        outside_at_end_ = outside_;
        return;
      }
      // The first step also allocates memory and chooses kernels.
      synchronize(phase);
      first_ = last_;
      begin_ = end_ = Clocks::now();
    }

    template <class Next>
    Metrics around_validate(ValidationRun const& phase, Next&& next) {
      synchronize(phase);
      Clocks const begin = Clocks::now();
      Metrics measured = next();
      if (first_) outside_.add(begin, Clocks::now());
      return measured;
    }

    flow on_validated(Validated& phase) {
      if (!target_ || !target_->given() || trial_->reached) return flow::proceed;
      if (!target_->reached(phase.metrics[target_->metric])) return flow::proceed;
      Counters const& now = phase.counters();
      trial_->reached = Trial::Reached{now.step, now.sample, phase.seconds()};
      return target_->stop ? flow::stop : flow::proceed;
    }

    void on_fit_end(FitEnd& phase) {
      RunState const& run = phase.run_state();
      if (run.is_judged()) {
        for (auto const& [name, value] : run.observed.validations().back().metrics) {
          trial_->metrics.emplace_back(name, value);
        }
      }
      if (!first_ || last_ <= *first_) return;
      if (!phase.settings().device.is_cpu()) {
        synchronize(phase);
        end_ = Clocks::now();
        outside_at_end_ = outside_;
      }
      auto const steps = static_cast<double>(last_ - *first_);
      Clocks const& less = outside_at_end_;
      trial_->step_seconds = (end_.wall - begin_.wall - less.wall) / steps;
      trial_->processor_seconds = (end_.processor - begin_.processor - less.processor) / steps;
    }

   private:
    static void synchronize(Phase const& phase) {
      c10::Device const device = phase.settings().device;
      if (device.is_cpu()) return;
      c10::impl::VirtualGuardImpl const guard(device.type());
      guard.getStream(device).synchronize();
    }

    TargetMetric const* target_;
    Trial* trial_;
    std::optional<std::uint64_t> first_;
    std::uint64_t last_ = 0;
    Clocks begin_, end_;
    Clocks outside_;         ///< time of validations since begin_
    Clocks outside_at_end_;  ///< likewise, up to end_: one after the last step is not in between
  };
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/compare/job.ipp>
#endif

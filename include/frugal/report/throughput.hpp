// SPDX-License-Identifier: Apache-2.0
// Shapes: M, K, N of products [M, K] x [K, N]; B batch, H heads, S positions, D width of a head; of
// a convolution input [B, C, ...], weight [C', C / groups, ...], where ... are spatial.
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/core/run/speed.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/options.hpp>
#include <frugal/report/plan/peak.hpp>

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/profiler/util.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

namespace detail {

using Shape = c10::IntArrayRef;

std::uint64_t elements(Shape shape);

/// 2 M K N, times the batch of a batched product: a multiply-add counts as two.
inline std::uint64_t product_flops(Shape a, Shape b) {
  return b.empty() ? 0 : 2 * elements(a) * static_cast<std::uint64_t>(b.back());
}

/// Each weight is applied at each position of the output, or of the input for a transposed
/// convolution.
std::uint64_t convolution_flops(Shape weight, Shape positions);

/// Scores of all pairs and their weighted sums of values; a causal mask is ignored.
std::uint64_t attention_flops(Shape q_BHSD, Shape k_BHSD, Shape v_BHSD, std::uint64_t of_d,
                              std::uint64_t of_v);

/// Input and output shapes of an operator call; empty for arguments that are not tensors.
struct CallShapes {
  std::vector<std::vector<std::int64_t>> inputs;
  std::vector<std::vector<std::int64_t>> outputs;

  Shape input(std::size_t at) const { return at < inputs.size() ? Shape(inputs[at]) : Shape(); }
  Shape output(std::size_t at) const { return at < outputs.size() ? Shape(outputs[at]) : Shape(); }
};

template <std::size_t First>
std::uint64_t of_product(CallShapes const& call) {
  return product_flops(call.input(First), call.input(First + 1));
}

/// The positions at which each weight is applied. The channels tell a transposed convolution from a
/// plain one; if both sides have equally many, it counts as transposed if it enlarges its input.
Shape positions(Shape input, Shape weight, Shape output);

/// (input, weight, ...) -> output
std::uint64_t of_convolution(CallShapes const& call);

/// (grad_output, input, weight, ...) -> the requested gradients of input, weight and bias: each of
/// the first two costs as much as forward.
std::uint64_t of_convolution_backward(CallShapes const& call);

/// (query, key, value, ...)
inline std::uint64_t of_attention(CallShapes const& call) {
  return attention_flops(call.input(0), call.input(1), call.input(2), 1, 1);
}

/// (grad, query, key, value, ...): recomputed scores, and four products.
inline std::uint64_t of_attention_backward(CallShapes const& call) {
  return attention_flops(call.input(1), call.input(2), call.input(3), 3, 2);
}

struct CountedOperator {
  std::string_view name;
  std::uint64_t (*flops)(CallShapes const&);
};

// Composite operators (linear, matmul, einsum) call these, so that each is counted once.
inline constexpr std::array counted_operators{
    CountedOperator{"aten::mm", of_product<0>},
    CountedOperator{"aten::addmm", of_product<1>},
    CountedOperator{"aten::bmm", of_product<0>},
    CountedOperator{"aten::baddbmm", of_product<1>},
    CountedOperator{"aten::_scaled_mm", of_product<0>},
    CountedOperator{"aten::_int_mm", of_product<0>},
    CountedOperator{"aten::convolution", of_convolution},
    CountedOperator{"aten::convolution_backward", of_convolution_backward},
    CountedOperator{"aten::_scaled_dot_product_flash_attention", of_attention},
    CountedOperator{"aten::_scaled_dot_product_flash_attention_for_cpu", of_attention},
    CountedOperator{"aten::_scaled_dot_product_efficient_attention", of_attention},
    CountedOperator{"aten::_scaled_dot_product_cudnn_attention", of_attention},
    CountedOperator{"aten::_scaled_dot_product_flash_attention_backward", of_attention_backward},
    CountedOperator{"aten::_scaled_dot_product_flash_attention_for_cpu_backward",
                    of_attention_backward},
    CountedOperator{"aten::_scaled_dot_product_efficient_attention_backward",
                    of_attention_backward},
    CountedOperator{"aten::_scaled_dot_product_cudnn_attention_backward", of_attention_backward},
};

}  // namespace detail

/// Counts the floating-point operations of matrix products, convolutions and attention that a
/// thread submits, autograd's threads included. Follows torch.utils.flop_counter, except for the
/// backward pass of grouped convolutions, which that counts as if they had one group, and products
/// of INT8, which it leaves out.
///
/// Only one counter per process is active at a time: LibTorch's callbacks carry no data.
class [[nodiscard]] FlopCounter {
 public:
  FlopCounter() = default;
  FlopCounter(FlopCounter const&) = delete;
  FlopCounter& operator=(FlopCounter const&) = delete;
  ~FlopCounter() { close(); }

  /// Starts from 0. False while another counter is open: try again later.
  bool open();
  /// Counts this thread's operations until pause(), which must be called in the same thread.
  void count();
  void pause();
  /// The count since open().
  std::uint64_t close();

 private:
  /// A counted operator, between its call and its return.
  struct Call : at::ObserverContext {
    explicit Call(detail::CountedOperator const& known) : counted(known) {}
    detail::CountedOperator const& counted;
    detail::CallShapes shapes;
  };

  static std::unique_ptr<at::ObserverContext> begin(at::RecordFunction const& function);

  static void end(at::RecordFunction const& function, at::ObserverContext* context);

  static inline std::atomic<FlopCounter*> active_{nullptr};

  std::atomic<std::uint64_t> flops_{0};
  at::CallbackHandle handle_ = 0;
};

/// Measures the training speed: seconds per step; samples, tokens and floating-point operations per
/// second; and the fraction of the device's peak.
///
/// Lever   none: it shows whether a machine is worth its price, and a lever its cost.
/// Cost    between cadences comparisons of flags. At its cadence a clock read and, on a device, one
///         host sync; the operators of the next step are counted.
/// State   none.
/// Errors  SettingsError for a negative peak. For a device with an unknown peak there is a note in
///         Report::warnings, and no utilisation.
/// Source  model FLOPs utilisation after Chowdhery et al., "PaLM" (2022), appendix B; operations
///         are counted as torch.utils.flop_counter does.
template <class... Options>
struct Throughput {
 private:
  using classes = list<detail::option::cadence>;
  static_assert(detail::options_known<classes, Options...>,
                "frugal: Throughput<...>: unknown option. Options: a cadence in steps, such as "
                "Every<100>.");
  static_assert(detail::options_unique<classes, Options...>,
                "frugal: Throughput<...>: two cadences. Keep one, such as Every<100>.");
  using Cadence = detail::option_of<detail::option::cadence, Every<100>, Options...>;
  static_assert(!Cadence::per_epoch,
                "frugal: Throughput measures between steps, not between epochs. Write "
                "Throughput<Every<100>>.");

 public:
  using kind = kinds::throughput;
  using listens = list<on::fit_begin, around::forward, on::backward, on::step, around::validate,
                       on::fit_end, on::undo>;
  // A dry run is no step; a log line has the speed measured at its step.
  using after = list<kinds::dry_run>;

  static constexpr About about{Term::none,
                               "at its cadence one reading of the clock and one counted step"};
  using properties = list<property::capturable, property::adds_no_metrics>;

  Cadence every{};
  /// Peak operations per second of the device; 0: looked up by its name.
  double peak_flops = 0;
  Outcome<Speed> outcome{};  ///< set by fit: the last measurement

  /// The last measurement of the last fit; nothing if there was none.
  std::optional<Speed> last() const {
    return outcome.get() == nullptr ? std::nullopt : std::optional(*outcome.get());
  }

  template <class Context>
  class State;
};

template <class... Options>
template <class Context>
class Throughput<Options...>::State {
  using Clock = std::chrono::steady_clock;
  using precision = detail::slot_of<kinds::precision, typename Context::policies>;

 public:
  using transient = void;  // a resumed run measures again, perhaps on another machine

  explicit State(Throughput const& settings)
      : every_(settings.every), peak_(settings.peak_flops), outcome_(&settings.outcome) {}

  void on_fit_begin(FitBegin& phase) {
    if (!(peak_ >= 0)) {
      throw SettingsError({.what = "the peak is " + std::to_string(peak_),
                           .where = "Throughput::peak_flops",
                           .why = "it is operations per second",
                           .fix = "Set it above 0, or to 0 to look it up by the device's name."});
    }
    outcome_->clear();
    wants_count_ = true;
    if (peak_ > 0) return;
    std::string const model =
        phase.settings().device.is_cuda() ? watch::gpu_model() : std::string("the CPU");
    // A user-defined precision without a format has no peak.
    if constexpr (requires { precision::format(); }) {
      peak_ = watch::peak_flops(model, precision::format()).value_or(0);
    }
    if (peak_ > 0) return;
    phase.warn("Throughput: the peak of " + (model.empty() ? "this device" : model) +
               " is not known, so there is no utilisation; set Throughput::peak_flops");
  }

  template <class Next>
  Loss around_forward(Forward const& phase, Next&& next) {
    if (wants_count_ && phase.training && !missed_) {
      // Another trainer in this process may be counting. A partial count is useless.
      if (counter_.open()) {
        counter_.count();
      } else {
        missed_ = true;
      }
    }
    return next();
  }
  void on_backward(Backward const&) {
    if (wants_count_) counter_.pause();
  }

  // Discards the count of a window that is retried; the next open() starts from 0.
  void on_undo(WindowRetry const&) { counter_.close(); }

  template <class Next>
  Metrics around_validate(ValidationRun const&, Next&& next) {
    auto const begin = Clock::now();
    Metrics metrics = next();
    elsewhere_ += Clock::now() - begin;
    return metrics;
  }

  void on_step(Step& phase) {
    bool const due = every_.due_at_step(phase.counters());
    if (!due && !wants_count_) [[likely]]
      return;
    if (wants_count_) take_count(phase.counters());
    if (due || !since_) measure(phase);
  }

  void on_fit_end(FitEnd&) {
    if (last_) outcome_->set(*last_);
  }

 private:
  struct Mark {
    Clock::time_point time;
    Counters at;
    std::optional<double> waited{};  ///< for data, seconds
  };

  void take_count(Counters const& now) {
    auto const flops = static_cast<double>(counter_.close());
    if (std::exchange(missed_, false)) return;  // wait for the next step
    // A replayed step runs no operators on the host: keep the count of an earlier, eager step.
    if (captures_steps<typename Context::policies> && flops == 0) return;
    wants_count_ = false;
    // Compiled code (StepPackage) calls kernels and not operators, so that nothing is known of it.
    if (now.window_samples == 0 || flops == 0) return;
    flops_per_sample_ = flops / static_cast<double>(now.window_samples);
  }

  void measure(Step& phase) {
    c10::Device const device = phase.settings().device;
    if (!device.is_cpu()) {
      // Wait for the work that the host has submitted.
      c10::impl::VirtualGuardImpl const guard(device.type());
      guard.getStream(device).synchronize();
    }
    Mark const now{Clock::now(), phase.counters(), phase.waited_for_data()};
    // The first step also sets up memory and kernels: measure from its end.
    if (since_) {
      std::chrono::duration<double> const spent = now.time - since_->time - elsewhere_;
      if (spent.count() > 0) report(phase, *since_, spent.count());
      wants_count_ = true;
    }
    since_ = now;
    elsewhere_ = {};
  }

  void report(Step& phase, Mark const& since, double seconds) {
    Counters const& before = since.at;
    Counters const& now = phase.counters();
    // Rollback may have restored counters from before the stretch.
    if (now.step <= before.step) return;
    auto const per = [](std::uint64_t a, std::uint64_t b, double unit) {
      return static_cast<double>(a - b) / unit;
    };
    Speed speed{.step = now.step,
                .step_seconds = seconds / per(now.step, before.step, 1),
                .samples_per_second = per(now.sample, before.sample, seconds),
                .tokens_per_second = per(now.token, before.token, seconds)};
    if (flops_per_sample_) {
      speed.flops_per_second = *flops_per_sample_ * speed.samples_per_second;
      speed.flops_per_step = *speed.flops_per_second * speed.step_seconds;
      if (peak_ > 0) speed.utilisation = *speed.flops_per_second / peak_;
    }
    if (auto const waited = phase.waited_for_data(); waited && since.waited) {
      speed.data_wait = std::min(1.0, (*waited - *since.waited) / seconds);
    }
    phase.report_speed(speed);
    last_ = speed;
  }

  [[no_unique_address]] Cadence every_;
  double peak_;
  Outcome<Speed> const* outcome_;
  FlopCounter counter_;
  bool wants_count_ = false;
  bool missed_ = false;
  std::optional<double> flops_per_sample_;
  std::optional<Mark> since_;
  Clock::duration elsewhere_{};  ///< of the stretch, spent on validations
  std::optional<Speed> last_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/report/throughput.ipp>
#endif

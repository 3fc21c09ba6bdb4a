// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/loop/window.hpp>
#include <frugal/core/measure/measure.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/core/run/run.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// One process's share of a window that several processes train, and its weights.
///
/// A pass starts from w_i / u. The unit u is the smallest power of two, at least 1, that the weights need: no
/// pass starts from more than 1 (see Window). complete() multiplies by u, so that gradients can be summed over
/// processes whatever their weights, and normalize() divides by the weight of all processes.
class WindowShare : public WindowCounts {
 public:
  void open() {
    reset();
    unit_ = 1;
  }
  void open(std::int64_t /*micro_batches*/) { open(); }

  /// As Window's.
  double shrink(double weight) {
    require_valid(weight);
    if (weight <= unit_) [[likely]]
      return 1;
    double const before = unit_;
    unit_ = raised(before, weight);
    return before / unit_;
  }
  at::Tensor seed(Loss const& loss) { return constant(*loss.weight / unit_, loss.value); }

  /// After the last backward pass: scales the gradients to those of losses times their weights, which add up
  /// over processes.
  void complete(std::vector<at::Tensor> const& gradients) { scale(gradients, take_unit(), 1.0); }
  /// Likewise for a caller that multiplies them.
  double take_unit() { return std::exchange(unit_, 1.0); }
  /// Divides the gradients by the weight of all processes.
  static void normalize(std::vector<at::Tensor> const& gradients, double all) {
    scale(gradients, 1.0, all);
  }
  /// What complete() multiplies the gradients by.
  double unit() const { return unit_; }

 private:
  double unit_ = 1;
};

namespace detail {

/// What windows have in common that several processes train together.
template <class Context>
class WindowOfSeveral : public WindowShare {
  static_assert(!traits_of<Context>::reevaluates,
                "frugal: a line search evaluates a window as often as its own process needs, so "
                "the processes of this recipe (service::reduce) would wait for each other. Use "
                "Optimize<AdamW> or another optimizer that evaluates a window once.");

 public:
  /// The other processes continue this window up to the point where all agree.
  template <class Emit>
  void judge(Emit&& emit) {
    try {
      emit();
    } catch (LossError const&) {
      run_.losses.postpone(std::current_exception());
    }
  }

 protected:
  explicit WindowOfSeveral(Run<Context>& run) : run_(run) {}

  Run<Context>& run_;
};

/// A window of this process, of which a policy sums the gradients with those of others.
template <class Context>
class SummedWindow : public WindowOfSeveral<Context> {
  static_assert(
      !Context::facts.divides,
      "frugal: this policy provides service::share, whose processes divide windows. Write "
      "`using strategy = DividedWindows;` in it (cluster/divided_windows.hpp).");
  using WindowOfSeveral<Context>::run_;

 public:
  explicit SummedWindow(Run<Context>& run) : WindowOfSeveral<Context>(run) {}

  static bool agreed(RunState& run, bool verdict) {
    return run.reduce(Quantity::skip, verdict ? 1.0 : 0.0) != 0;
  }
  template <class Source>
  bool is_empty(Source const&) const {
    return this->empty();
  }
  void read(Loss const& loss) { add_loss(run_, loss); }
  /// Other processes add their gradients to those of this one, which may have no loss that counts.
  void pass_over() {
    if (this->weight() != 0) return;
    at::NoGradGuard const no_gradients;
    for (at::Tensor const& parameter : run_.parameters.tensors) {
      if (!parameter.requires_grad() || parameter.grad().defined()) continue;
      parameter.mutable_grad() = at::zeros_like(parameter);
    }
  }
  template <class Batch>
  void trained(Batch const&, Loss&) {
    run_.progress.count_micro_batch();
  }
  /// What sums gradients over processes does so next.
  void passed(bool is_last) {
    if (!is_last) return;
    run_.window.gradients().collect(run_.parameters);
    this->complete(run_.window.gradients().tensors());
  }
  template <class Source>
  void end(Source const&) {}
  /// A trial is local: its number depends on this process's memory.
  void finish_gradients(std::vector<at::Tensor> const& gradients, bool is_trial) {
    double all = this->weight();
    if (!is_trial) {
      all = run_.window_weight(all);
      require_weight(all, run_.counters(), run_.window.place().position);
    }
    this->complete(gradients);  // unless the last micro-batch has
    this->normalize(gradients, all);
  }
};

/// The processes of a recipe by the State that reduces over them.
template <class State>
class ReducingProcesses : public ProcessesInterface {
 public:
  explicit ReducingProcesses(State& state) : state_(state) {}
  double reduce(Quantity what, double value) final { return state_.reduce(what, value); }
  at::Tensor reduce(Quantity what, at::Tensor value) final {
    return state_.reduce(what, std::move(value));
  }
  bool is_first() const override { return true; }
  Processes processes() const override { return {}; }
  EqualShare measures() const override { return {}; }
  std::string from_first(std::string const& text) override { return text; }
  std::string first_of(std::string const& text) override { return text; }
  std::vector<std::string> texts_of_all(std::string const& text) override { return {text}; }
  std::vector<at::Tensor> norms(Parameters const&) override { return {}; }
  void collect_parts() override {}

 private:
  State& state_;
};

}  // namespace detail

/// The strategy of processes that each have a source and windows of their own, and whose policy
/// (service::reduce) sums their gradients.
struct SummedWindows : OneProcess {
  template <class Context>
  using Window = detail::SummedWindow<Context>;
  /// Processes that train together must all have a metric, or none.
  static constexpr detail::MetricErrors metric_errors = detail::MetricErrors::thrown;

  template <class Metrics, class Valid, class Measurement>
  static void measure(Valid& source, RunState& run, detail::ForwardOf<Valid> forward,
                      detail::Measuring const& how, Measurement& into, ScalarSpan& means) {
    detail::measure_all(source, run, forward, how, into, means);
    if (how.is_trial) return;
    into.reduce(
        [&]<class T>(Quantity what, T value) { return run.reduce(what, std::move(value)); });
    means.reduce([&](double value) { return run.reduce(Quantity::metric, value); });
  }
  template <class Engine>
  static std::unique_ptr<ProcessesInterface> processes(Engine& engine) {
    auto& reduces = engine.template provider<service::reduce>();
    return std::make_unique<detail::ReducingProcesses<std::remove_cvref_t<decltype(reduces)>>>(
        reduces);
  }
};

}  // namespace frugal

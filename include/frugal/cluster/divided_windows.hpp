// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Context.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/cluster/divided_source.hpp>
#include <frugal/cluster/summed_windows.hpp>
#include <frugal/core/compose/services.hpp>
#include <frugal/core/loop/interruption.hpp>
#include <frugal/core/measure/measure.hpp>
#include <frugal/core/measure/measured_parts.hpp>
#include <frugal/core/run/failure.hpp>
#include <frugal/core/run/interfaces.hpp>
#include <frugal/core/run/processes.hpp>
#include <frugal/core/run/run_state.hpp>
#include <frugal/core/run/scalar_accumulator.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/window_phases.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// Random numbers of a validation batch: the same in whatever process it is measured.
inline void seed_measuring(RunState const& run, std::uint64_t batch) {
  constexpr std::uint64_t measuring = 2;
  std::array<std::uint64_t, 6> const all{
      run.settings.seed, run.counters().epoch, run.counters().position, run.counters().step, batch,
      measuring};
  at::manual_seed(Hash::of(std::as_bytes(std::span(all))));
}

/// Divides a source that reads ahead; afterwards it is whole again.
template <class S>
class DividedReading {
 public:
  DividedReading(S& source, Division const& own) : source_(source) { divide(own); }
  DividedReading(DividedReading const&) = delete;
  DividedReading& operator=(DividedReading const&) = delete;
  ~DividedReading() { divide({}); }
  /// From the next seek on.
  void divide(Division const& own) {
    if constexpr (DividableSource<S>) source_.divide(own);
  }

 private:
  S& source_;
};

/// Consecutive batches that one process measures: so many that there are about 64 such blocks,
/// whatever the number of processes, because the sums of blocks are added up in their order.
template <class S>
std::uint64_t block_of_batches(S const& source) {
  constexpr std::uint64_t blocks = 64;
  if constexpr (SizedSource<S>) {
    auto const batches = static_cast<std::uint64_t>(source.batches());
    return std::max<std::uint64_t>((batches + blocks - 1) / blocks, 1);
  } else {
    return 8;
  }
}

/// Measures this process's batches of a source, and puts together what all have measured. Throws
/// where the source has no batch.
template <class Parts, class Valid>
void measure_divided(Valid& source, RunState& run, ForwardOf<Valid> forward, Measuring const& how,
                     typename Parts::Whole& whole, ScalarSpan& means) {
  EqualShare const share = how.is_trial || how.is_alone ? EqualShare{} : run.measures();
  std::uint64_t const block = block_of_batches(std::as_const(source));
  Division const own{.first = share.index * block, .count = block, .window = share.count * block};
  Cursor const start{run.settings.seed, 0, 0};
  Parts parts(whole.fresh());
  std::uint64_t batches = 0;
  {
    DividedReading<Valid> reading(source, own);
    source.seek(start);
    std::optional<ScalarAccumulator> scalars;
    auto const end_part = [&] {
      if (scalars) scalars->read_pending();
      scalars.reset();
    };
    for (; batches < how.batches; ++batches) {
      seed_measuring(run, batches);
      if (!own.has(batches)) {
        if (skip_batch(source, [](auto const& batch) { return batch_samples(batch); }) == 0) break;
        continue;
      }
      auto batch = source.next();
      if (!batch) break;
      if (parts.empty() || parts.last().key != batches / block) {
        end_part();
        parts.begin(batches / block);
      }
      batch_to(*batch, run.device);
      Loss const loss = forward(*batch);
      parts.last().measured.add(loss, *batch, how.errors);
      if (loss.scalars.empty()) continue;
      if (!scalars) scalars.emplace().follow(parts.last().scalars);
      scalars->add(loss.scalars, *loss.weight);
    }
    end_part();
    if (batches != 0 && parts.empty()) {
      // There are fewer blocks than processes, and a metric that has seen nothing knows no shapes.
      reading.divide({});
      source.seek(start);
      seed_measuring(run, 0);
      if (auto batch = source.next()) {
        batch_to(*batch, run.device);
        whole.add(forward(*batch), *batch, how.errors);
      }
    }
  }
  // What draws next draws the same in every process.
  seed_measuring(run, std::numeric_limits<std::uint64_t>::max());
  if (batches == 0) refuse_empty_source(how.which, run.counters().epoch);
  auto const exchange = [&](std::string const& text) {
    return share.count == 1 ? std::vector<std::string>{text} : run.texts_of_all(text);
  };
  if (!parts.join(exchange, whole, means)) {
    throw MetricError({.what = "a metric of this process has counted less than those of others",
                       .where = how.which,
                       .why = "processes divide the batches, and put together what they counted",
                       .fix = "Let each batch that has samples call `sum` equally often in the "
                              "metric's reduce."});
  }
}

}  // namespace frugal::detail

namespace frugal {

namespace detail {

template <class Policies>
constexpr bool require_share() {
  static_assert(
      provided<service::share, Policies>,
      "frugal: DividedWindows is the strategy of a policy that provides service::share. "
      "Write `using strategy = SummedWindows;` in this one (cluster/summed_windows.hpp).");
  return provided<service::share, Policies>;
}

/// This process's micro-batches of a window that processes divide. At its end, when the policy has joined them
/// with those of the others, it is the window of all: its gradients, losses and counts.
template <class Context>
class JoinedWindow : public WindowOfSeveral<Context> {
  static_assert(!traits_of<Context>::splits,
                "frugal: the processes of this recipe (service::share) divide a window's "
                "micro-batches, and Accumulate<Auto> makes these of one batch as each process's "
                "memory allows. Use Accumulate<8> or another number.");
  using WindowOfSeveral<Context>::run_;

 public:
  explicit JoinedWindow(Run<Context>& run) : WindowOfSeveral<Context>(run) {}

  /// Processes that divide a window skip it for reasons that are equal in all of them.
  static bool agreed(RunState&, bool verdict) { return verdict; }
  void open() {
    WindowShare::open();
    records_.clear();
  }
  /// Whether the source had no batch for the window, in any process.
  template <class Source>
  bool is_empty(Source const& source) const {
    if constexpr (WindowedSource<Source>) {
      return source.window_batches() == 0;
    } else {
      return this->empty();
    }
  }
  /// The losses are read when the window is joined. Refuses scalars that this process must not have, or that
  /// would be an error when all are read.
  void read(Loss const& loss) {
    if (loss.scalars.empty()) [[likely]]
      return;
    using Provider = std::remove_cvref_t<decltype(shares())>;
    if constexpr (requires { requires bool(Provider::carries_scalars); }) {
      ScalarAccumulator().add(loss.scalars, 0);
    } else {
      require_no_scalars(loss, run_.counters());
    }
  }
  at::Tensor seed(Loss const& loss) {
    run_.window.set_gradient_unit(this->unit());
    return WindowShare::seed(loss);
  }
  void pass_over() {}
  template <class Batch>
  void trained(Batch const& batch, Loss& loss) {
    records_.push_back({loss.value.detach(), *loss.weight,
                        static_cast<std::uint64_t>(batch_samples(batch)),
                        static_cast<std::uint64_t>(batch_tokens(batch)), std::move(loss.scalars)});
  }
  /// Each micro-batch is joined by itself.
  void passed(bool /*is_last*/) {
    run_.window.gradients().collect(run_.parameters);
    this->complete(run_.window.gradients().tensors());
    run_.window.set_gradient_unit(1);
  }
  /// After a pass: what its gradients are still to be multiplied by. It does not depend on the passes
  /// before.
  double take_unit() {
    run_.window.set_gradient_unit(1);
    return WindowShare::take_unit();
  }

  template <class Source>
  void end(Source const& source) {
    SharedWindow phase(run_, records_, preemption_requested(run_), !!run_.losses.bad());
    if constexpr (WindowedSource<Source>) phase.consumed = source.consumed();
    shares().join(phase);
    run_.control.agree_in_window(phase.preempts);
    WindowShare::open();
    for (MicroBatchRecord const& record : records_) {
      run_.losses.add(record.loss, record.weight, run_.counters());
      if (!record.scalars.empty()) [[unlikely]]
        run_.losses.add(record.scalars, run_.losses.leaves(record.loss) ? 0 : record.weight);
      run_.progress.count_micro_batch();
      this->add(record.weight, record.samples, record.tokens);
    }
    tell<service::recover>(phase, !phase.fails && !run_.losses.bad());
    if (phase.fails || run_.losses.bad()) run_.refuse_bad_loss();
    require_weight(this->weight(), run_.counters(), run_.counters().position);
    tell<service::measure>(phase, true);
  }
  void finish_gradients(std::vector<at::Tensor> const& gradients, bool /*is_trial*/) {
    this->complete(gradients);  // unless the last micro-batch has
    this->normalize(gradients, this->weight());
  }

 private:
  auto& shares() { return run_.engine->template provider<service::share>(); }

  /// Tells the provider of a service of the joined window, if there is one that listens.
  template <class Service>
  void tell(SharedWindow& phase, bool is_told) {
    if constexpr (provided<Service, typename Context::policies>) {
      auto& provider = run_.engine->template provider<Service>();
      if constexpr (requires { provider.on_joined(phase); }) {
        if (is_told) provider.on_joined(phase);
      }
    }
  }

  std::vector<MicroBatchRecord> records_{};
};

/// Likewise ReducingProcesses, of a recipe whose processes divide windows.
template <class Reduces, class Shares>
class SharingProcesses final : public ReducingProcesses<Reduces> {
 public:
  SharingProcesses(Reduces& reduces, Shares& shares)
      : ReducingProcesses<Reduces>(reduces), state_(shares) {}
  bool is_first() const override { return state_.is_first(); }
  Processes processes() const override { return state_.processes(); }
  EqualShare measures() const override {
    if constexpr (requires { state_.measures(); }) return state_.measures();
    return {};
  }
  std::string from_first(std::string const& text) override { return state_.from_first(text); }
  std::string first_of(std::string const& text) override { return state_.first_of(text); }
  std::vector<std::string> texts_of_all(std::string const& text) override {
    if constexpr (requires { state_.texts_of_all(text); }) return state_.texts_of_all(text);
    return {text};
  }
  std::vector<at::Tensor> norms(Parameters const& updated) override {
    return state_.norms(updated);
  }
  void collect_parts() override { state_.collect_parts(); }

 private:
  Shares& state_;
};

}  // namespace detail

/// The strategy of processes that divide the micro-batches of each window (service::share): all of them have
/// the cursor, counters and losses of the whole window.
struct DividedWindows {
  template <class Context>
  using Window = detail::JoinedWindow<Context>;
  static constexpr detail::MetricErrors metric_errors = detail::MetricErrors::thrown;

  template <class Metrics, class Valid, class Measurement>
  static void measure(Valid& source, RunState& run, detail::ForwardOf<Valid> forward,
                      detail::Measuring const& how, Measurement& into, ScalarSpan& means) {
    using Parts = typename detail::measured_parts_of<Metrics>::type;
    if constexpr (Parts::can_join) {
      detail::measure_divided<Parts>(source, run, forward, how, into, means);
    } else {
      detail::measure_all(source, run, forward, how, into, means);
    }
  }
  template <class Trainer, class Source, class Fit>
  static auto read(Trainer const& trainer, Source& source, int batches, Fit&& fit) {
    if constexpr (detail::require_share<typename Trainer::policies>()) {
      using Divides =
          typename detail::provider_of<service::share, void, typename Trainer::policies>::type;
      MicroBatches const own = trainer.template policy<typename Divides::kind>().own(batches);
      detail::DividedSource<Source> divided(source, own, static_cast<std::uint64_t>(batches));
      return fit(divided);
    } else {
      return fit(source);  // not reached: so that the sentence is the only error
    }
  }
  template <class... Sources>
  static constexpr bool require_sources() {
    return detail::require_whole_sources<Sources...>();
  }
  template <class Engine>
  static std::unique_ptr<ProcessesInterface> processes(Engine& engine) {
    auto& reduces = engine.template provider<service::reduce>();
    auto& shares = engine.template provider<service::share>();
    return std::make_unique<detail::SharingProcesses<std::remove_cvref_t<decltype(reduces)>,
                                                     std::remove_cvref_t<decltype(shares)>>>(
        reduces, shares);
  }
};

}  // namespace frugal

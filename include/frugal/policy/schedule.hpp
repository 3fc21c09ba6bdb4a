// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/fixed_string.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/compose/watching.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/run_limits.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/policy/schedule/plateau.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace frugal {

/// The length of a curve that fills what the other curves of a schedule leave.
inline constexpr std::uint64_t to_end = 0;

// Curves. Each gives the learning-rate factor at step t of its own length T, with t from 0. Values
// are those of the torch.optim.lr_scheduler class named next to it. An `endless` curve does not
// depend on its length, and may be the last one in a run without a known end. `effect` is the
// number of its own steps that an endless curve needs to show what its numbers ask for;
// `check()` throws SettingsError for numbers that are out of range. `may_be_empty`: of 0 steps it has none, and is not
// "to the end". `numbers(f)`, optional, calls `f(name, value)` for each besides `steps`: a resumed run says which have
// changed.

/// A constant factor (ConstantLR).
template <std::uint64_t Steps = to_end, Rational Factor = Rational{1, 1}>
struct Constant {
  static constexpr std::string_view name = "constant";
  static constexpr bool endless = true;
  std::uint64_t steps = Steps;
  double value = Factor.value();
  void numbers(auto&& f) const { f("value", value); }

  double factor(std::uint64_t, std::uint64_t) const { return value; }
};
template <>
inline constexpr std::string_view alias_name<Constant<>> = "Constant<>";

/// Rises from 1/N at the first step to 1 at step N - 1 (LinearLR with start_factor 1/N and
/// total_iters N - 1), and stays there: the first step is not wasted on a rate of 0.
template <std::uint64_t N>
struct Warmup {
  static_assert(N >= 1, "frugal: Warmup<0> has no step. Write Warmup<1>, or leave it out.");
  static constexpr std::string_view name = "warmup";
  static constexpr bool may_be_empty = true;
  std::uint64_t steps = N;  ///< 0: no warm-up

  double factor(std::uint64_t t, std::uint64_t length) const {
    if (t >= length) return 1.0;
    return static_cast<double>(t + 1) / static_cast<double>(length);
  }
};

/// A straight line between two factors (LinearLR).
template <Rational From, Rational To, std::uint64_t Steps = to_end>
struct Ramp {
  static constexpr std::string_view name = "linear";
  std::uint64_t steps = Steps;
  double from = From.value();
  double to = To.value();
  void numbers(auto&& f) const { f("from", from), f("to", to); }

  double factor(std::uint64_t t, std::uint64_t length) const {
    if (t >= length) return to;
    return from + (to - from) * static_cast<double>(t) / static_cast<double>(length);
  }
};

/// Falls from 1 to a floor along a straight line (LinearLR).
template <Rational Floor = Rational{0, 1}, std::uint64_t Steps = to_end>
using LinearDecay = Ramp<Rational{1, 1}, Floor, Steps>;
template <>
inline constexpr std::string_view alias_name<LinearDecay<>> = "LinearDecay<>";

/// Falls from 1 to a floor along half a cosine (CosineAnnealingLR, eta_min = floor * lr), of
/// Loshchilov and Hutter, "SGDR" (2017).
template <Rational Floor = Rational{0, 1}, std::uint64_t Steps = to_end>
struct CosineDecay {
  static constexpr std::string_view name = "cosine";
  std::uint64_t steps = Steps;
  double floor = Floor.value();
  void numbers(auto&& f) const { f("floor", floor); }

  double factor(std::uint64_t t, std::uint64_t length) const {
    if (t >= length) return floor;
    double const turn = std::numbers::pi * static_cast<double>(t) / static_cast<double>(length);
    return floor + (1 - floor) * (1 + std::cos(turn)) / 2;
  }
};
using Cosine = CosineDecay<>;
template <>
inline constexpr std::string_view alias_name<Cosine> = "Cosine";

/// Repeated cosines, the first of `First` steps and each `Growth` times as long as the previous one
/// (CosineAnnealingWarmRestarts).
template <std::uint64_t First, std::uint64_t Growth = 1, Rational Floor = Rational{0, 1}>
struct CosineRestarts {
  static_assert(First >= 1 && Growth >= 1,
                "frugal: CosineRestarts<first, growth>: the first period is 1 step or more, the "
                "growth is 1 or more. Write CosineRestarts<1000, 2>.");
  static constexpr std::string_view name = "restarts";
  static constexpr bool endless = true;
  std::uint64_t first = First;    ///< steps of the first cosine
  std::uint64_t growth = Growth;  ///< of the length, from each to the next
  double floor = Floor.value();
  std::uint64_t steps = to_end;
  void numbers(auto&& f) const { f("first", first), f("growth", growth), f("floor", floor); }

  std::uint64_t effect() const { return first; }  // the first cosine; it need not restart
  void check() const {
    detail::counted(first, "CosineRestarts::first");
    detail::counted(growth, "CosineRestarts::growth");
  }

  double factor(std::uint64_t t, std::uint64_t) const {
    std::uint64_t length = first;
    if (growth == 1) t %= first;
    while (t >= length) {
      t -= length;
      length *= growth;
    }
    double const turn = std::numbers::pi * static_cast<double>(t) / static_cast<double>(length);
    return floor + (1 - floor) * (1 + std::cos(turn)) / 2;
  }
};

/// Falls from 1 to 0 as a power of the remaining fraction (PolynomialLR).
template <Rational Power = Rational{1, 1}, std::uint64_t Steps = to_end>
struct PolynomialDecay {
  static constexpr std::string_view name = "polynomial";
  std::uint64_t steps = Steps;
  double power = Power.value();
  void numbers(auto&& f) const { f("power", power); }

  double factor(std::uint64_t t, std::uint64_t length) const {
    if (t >= length) return 0.0;
    return std::pow(1 - static_cast<double>(t) / static_cast<double>(length), power);
  }
};
using Polynomial = PolynomialDecay<>;
template <>
inline constexpr std::string_view alias_name<Polynomial> = "Polynomial";

/// Multiplied by gamma every N steps (StepLR).
template <std::uint64_t N, Rational Gamma = Rational{1, 10}>
struct StepDecay {
  static_assert(N >= 1,
                "frugal: StepDecay<N>: N is the number of steps between two decays, at least 1. "
                "Write StepDecay<1>.");
  static constexpr std::string_view name = "step_decay";
  static constexpr bool endless = true;
  std::uint64_t every = N;  ///< steps between two decays
  double gamma = Gamma.value();
  std::uint64_t steps = to_end;
  void numbers(auto&& f) const { f("every", every), f("gamma", gamma); }

  std::uint64_t effect() const { return every + 1; }
  void check() const { detail::counted(every, "StepDecay::every"); }

  double factor(std::uint64_t t, std::uint64_t) const {
    std::uint64_t const decays = t / every;
    return std::pow(gamma, static_cast<double>(decays));
  }
};

/// Multiplied by gamma at each milestone (MultiStepLR).
template <Rational Gamma, std::uint64_t... Milestones>
struct MultiStepDecay {
  static constexpr std::string_view name = "multi_step";
  static constexpr bool endless = true;
  double gamma = Gamma.value();
  std::vector<std::uint64_t> milestones{
      Milestones...};  ///< steps; a step that comes twice counts twice
  std::uint64_t steps = to_end;
  void numbers(auto&& f) const { f("gamma", gamma), f("milestones", milestones); }

  std::uint64_t effect() const {
    return milestones.empty() ? 1 : *std::ranges::max_element(milestones) + 1;
  }

  double factor(std::uint64_t t, std::uint64_t) const {
    return std::pow(gamma, static_cast<double>(std::ranges::count_if(
                               milestones, [&](std::uint64_t each) { return t >= each; })));
  }
};

}  // namespace frugal

namespace frugal::detail {

/// A curve of a schedule, without its type, and its steps in a run: [begin, end).
struct LaidCurve {
  std::string_view type;                ///< as the compiler spells it
  std::uint64_t steps;                  ///< its length, or to_end
  bool endless;                         ///< does not depend on its length
  std::optional<std::uint64_t> effect;  ///< of its own steps, until it does what it is for
  bool is_empty = false;                ///< has no step
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

[[noreturn]] void refuse_length(std::string const& why, std::string const& fix);

/// Computes where each curve ends. One curve "to the end" fills what the others leave.
void lay_over(std::vector<LaidCurve>& curves, RunLimits const& horizon);

std::string factor_text(double value);

/// What a run of `total` steps does not come to, or comes to long before its end; empty if there is
/// nothing to say. `last_factor` is that of its last step.
std::string outlook_of(std::vector<LaidCurve> const& curves, std::uint64_t total,
                       double last_factor);

}  // namespace frugal::detail

namespace frugal {

namespace detail {

/// A curve: its length, or to_end, and its factor at a step of it.
template <class Part>
inline constexpr bool is_curve = requires(Part const& curve, std::uint64_t step) {
  { curve.steps } -> std::convertible_to<std::uint64_t>;
  { curve.factor(step, step) } -> std::convertible_to<double>;
};

template <class Part>
using curve_of = std::conditional_t<is_plateau<Part>, list<>, list<Part>>;

/// A Schedule of its own, which is no part of another.
template <class Part>
inline constexpr bool is_schedule = requires(Part const& part) {
  typename Part::kind;
  part.parts;
};

template <class... Parts>
struct plateau_in {
  using type = void;
};
template <class Part, class... Rest>
struct plateau_in<Part, Rest...> : plateau_in<Rest...> {};
template <class Part, class... Rest>
  requires is_plateau<Part>
struct plateau_in<Part, Rest...> {
  using type = Part;
};

/// Consecutive curves over a run.
template <class... Parts>
class CurveState {
 public:
  explicit CurveState(std::tuple<Parts...> const& parts) : parts_(parts) {}

  /// Computes where each curve ends. One curve "to the end" fills what the others leave.
  void lay_over(RunLimits const& horizon) {
    laid_.clear();
    each_curve([&]<class Curve>(Curve const& curve) {
      constexpr bool endless = requires { curve.endless; };
      LaidCurve laid{type_name<Curve>(), curve.steps, endless, {}};
      if constexpr (requires { curve.check(); }) curve.check();
      if constexpr (requires { curve.effect(); }) laid.effect = curve.effect();
      if constexpr (requires { curve.may_be_empty; }) laid.is_empty = curve.steps == 0;
      laid_.push_back(laid);
    });
    detail::lay_over(laid_, horizon);
  }

  /// The factor at an optimizer step, counted from 0. Beyond its end the last curve continues.
  double factor(std::uint64_t step) const {
    double value = 1.0;
    std::size_t at = 0;
    bool found = false;
    each_curve([&](auto const& curve) {
      LaidCurve const& laid = laid_[at++];
      if (!found && (step < laid.end || at == laid_.size())) {
        value = curve.factor(step - laid.begin, laid.end - laid.begin);
        found = true;
      }
    });
    return value;
  }

  /// What the run does not come to, or comes to long before its end; empty if there is nothing to
  /// say. Call lay_over before.
  std::string outlook(RunLimits const& horizon) const {
    std::uint64_t const total = horizon.total_steps.value_or(0);
    return total == 0 ? "" : outlook_of(laid_, total, factor(total - 1));
  }

 protected:
  std::tuple<Parts...> const& parts() const { return parts_; }

 private:
  template <class F>
  void each_curve(F&& f) const {
    auto const visit = [&](auto const& part) {
      if constexpr (!is_plateau<std::remove_cvref_t<decltype(part)>>) f(part);
    };
    std::apply([&](auto const&... part) { (visit(part), ...); }, parts_);
  }

  std::tuple<Parts...> parts_;
  std::vector<LaidCurve> laid_;
};

inline void advise_of(std::string const& outlook, FitBegin& phase) {
  if (!outlook.empty()) phase.warn_of_plan("Schedule: " + outlook);
}

template <class... Parts>
class ScheduleState : CurveState<Parts...> {
 public:
  // The factor is a function of the step count, and the lengths follow from the settings.
  using transient = void;

  template <class Settings>
  explicit ScheduleState(Settings const& settings) : CurveState<Parts...>(settings.parts) {}

  void on_fit_begin(FitBegin& phase) {
    this->lay_over(phase.horizon());
    advise_of(this->outlook(phase.horizon()), phase);
    compare_numbers_of(phase, "Schedule", this->parts());
    phase.set_learning_rate_factor(this->factor(phase.counters().step));
  }
  // A resumed run may have another length than the one that saved a factor.
  void on_ready(Ready& phase) {
    phase.set_learning_rate_factor(this->factor(phase.counters().step));
  }
  void on_step(Step& phase) { phase.set_learning_rate_factor(this->factor(phase.counters().step)); }
};

template <class... Parts>
class PlateauState : CurveState<Parts...> {
  using Plateau = typename plateau_in<Parts...>::type;

 public:
  template <class Settings>
  explicit PlateauState(Settings const& settings) : CurveState<Parts...>(settings.parts) {}

  void on_fit_begin(FitBegin& phase) {
    std::get<Plateau>(this->parts()).check();
    this->lay_over(phase.horizon());
    advise_of(this->outlook(phase.horizon()), phase);
    compare_numbers_of(phase, "Schedule", this->parts());
    set(phase);
  }
  void on_ready(Ready& phase) { set(phase); }
  void on_step(Step& phase) { set(phase); }
  void on_validated(Validated& phase) {
    Plateau const& plateau = std::get<Plateau>(this->parts());
    plateau.observe(phase.metrics[Plateau::watches::name], memory_);
    if (plateau.misjudges(memory_)) {
      phase.warn("Plateau: \"" + std::string(Plateau::watches::name) +
                 "\" is negative, and a threshold relative to it takes a slightly worse value as "
                 "better, as in PyTorch: set by_magnitude, or relative = false");
    }
    set(phase);
  }

  template <class Archive>
  void persist(Archive& archive) {
    memory_.persist(archive);
    if (forgets_best(archive, "Plateau", Plateau::watches::name)) memory_.forget_best();
  }

 private:
  template <class Phase>
  void set(Phase& phase) {
    phase.set_learning_rate_factor(this->factor(phase.counters().step) * memory_.scale);
  }

  typename Plateau::Memory memory_;
};

FRUGAL_DIAGNOSTIC(
    plateau_without_metric,
    "frugal: Plateau watches a metric that this recipe does not measure; the compiler's note names "
    "it. Add the "
    "metric to Validate, as in Validate<Accuracy>, or watch the loss with WatchLoss.");
FRUGAL_DIAGNOSTIC(plateau_without_validation,
                  "frugal: Plateau watches validation, and fit(train) has no validation data. Call "
                  "fit(train, valid).");

template <class Part>
struct watches_of_part {
  using type = list<>;
};
template <class Part>
  requires is_plateau<Part>
struct watches_of_part<Part> {
  using type = list<watched<typename Part::watches, plateau_without_metric>>;
};

}  // namespace detail

/// The learning rate over the steps of a run: consecutive curves, and at most one Plateau that
/// scales them.
///
/// Lever   runs to convergence.
/// Cost    one cosine or so on the host per step; no host sync, no operator.
/// State   the factor is a function of the step count; Plateau's counters survive a resume.
/// Errors  SettingsError if a curve runs "to the end" of a run without a known end. A Plateau whose
///         metric the recipe does not measure does not compile.
/// Source  the torch.optim.lr_scheduler classes named next to the curves.
///
///     Schedule<Warmup<200>, Cosine>                          // to the end of the run
///     Schedule<Warmup<200>, Constant<>, LinearDecay<0, 1000>>   // warm-up, stable, decay
///     Schedule<Plateau<0.1, Patience<3>>>
///
/// Steps are optimizer steps. The factor multiplies the rate of every parameter group.
template <class... Parts>
struct Schedule {
 private:
  static constexpr int plateaus = (0 + ... + int{detail::is_plateau<Parts>});
  static_assert((true && ... && !detail::is_schedule<Parts>),
                "frugal: Schedule<...>: a part is a whole Schedule, as WarmupStableDecay<W, D> is. "
                "Write it in the recipe by itself.");
  static_assert((true && ... &&
                 (detail::is_plateau<Parts> || detail::is_curve<Parts> ||
                  detail::is_schedule<Parts>)),
                "frugal: Schedule<...>: unknown part. Parts: Warmup<N>, Constant<>, "
                "LinearDecay<...>, Cosine, CosineDecay<...>, CosineRestarts<...>, Polynomial, "
                "PolynomialDecay<...>, StepDecay<N>, MultiStepDecay<...>, Ramp<...>, one "
                "Plateau<...>, or a curve of your own with `steps` and `factor(step, length)`.");
  static_assert(plateaus <= 1, "frugal: Schedule<...>: more than one Plateau. Keep one.");

  template <class Part>
  static constexpr std::string_view name_of_part() {
    if constexpr (requires { std::string_view(Part::name); }) return Part::name;
    return {};
  }
  template <fixed_string Name>
  static consteval std::size_t checked_place() {
    constexpr std::size_t place = place_of(Name);
    static_assert(place < sizeof...(Parts),
                  "frugal: this Schedule has no part of that name. Name one that it has, such as "
                  "warmup().");
    return place;
  }
  static consteval std::size_t place_of(std::string_view name) {
    std::string_view const names[] = {name_of_part<Parts>()...};
    for (std::size_t i = 0; i < sizeof...(Parts); ++i) {
      if (names[i] == name) return i;
    }
    return sizeof...(Parts);
  }

 public:
  using kind = kinds::schedule;
  using listens =
      std::conditional_t<plateaus != 0, list<on::fit_begin, on::ready, on::step, on::validated>,
                         list<on::fit_begin, on::ready, on::step>>;
  using watches_validation =
      std::conditional_t<plateaus != 0, detail::plateau_without_validation, void>;
  using watches = concat<typename detail::watches_of_part<Parts>::type...>;

  static constexpr About about{Term::runs_to_convergence, "one curve on the host per step"};

  std::tuple<Parts...> parts{};

  // The first part of a name, to read its numbers or set them: `schedule.warmup().steps = 200`.
  auto& warmup() { return curve<"warmup">(); }
  auto const& warmup() const { return curve<"warmup">(); }
  auto& constant() { return curve<"constant">(); }
  auto const& constant() const { return curve<"constant">(); }
  auto& linear() { return curve<"linear">(); }
  auto const& linear() const { return curve<"linear">(); }
  auto& cosine() { return curve<"cosine">(); }
  auto const& cosine() const { return curve<"cosine">(); }
  auto& restarts() { return curve<"restarts">(); }
  auto const& restarts() const { return curve<"restarts">(); }
  auto& polynomial() { return curve<"polynomial">(); }
  auto const& polynomial() const { return curve<"polynomial">(); }
  auto& step_decay() { return curve<"step_decay">(); }
  auto const& step_decay() const { return curve<"step_decay">(); }
  auto& multi_step() { return curve<"multi_step">(); }
  auto const& multi_step() const { return curve<"multi_step">(); }
  auto& plateau() { return curve<"plateau">(); }
  auto const& plateau() const { return curve<"plateau">(); }
  /// The same for a curve of your own, by its `name`.
  template <fixed_string Name>
  auto& curve() {
    return std::get<checked_place<Name>()>(parts);
  }
  template <fixed_string Name>
  auto const& curve() const {
    return std::get<checked_place<Name>()>(parts);
  }

  /// What a run of this length does not come to, for explain; empty if there is nothing to say.
  std::string outlook(RunLimits const& horizon) const {
    detail::CurveState<Parts...> laid(parts);
    try {
      laid.lay_over(horizon);
    } catch (SettingsError const&) {
      return {};  // fit refuses it
    }
    return laid.outlook(horizon);
  }

  using State = std::conditional_t<plateaus != 0, detail::PlateauState<Parts...>,
                                   detail::ScheduleState<Parts...>>;
};

/// The optimizer's learning rates, unchanged.
template <>
struct Schedule<> {
  using kind = kinds::schedule;
  using listens = list<>;
};

template <>
struct null_policy<kinds::schedule> {
  using type = Schedule<>;
};

/// Warm-up, a long stable phase, and a decay to 0 in the last steps (WSD), from Hu et al.,
/// "MiniCPM" (2024).
template <std::uint64_t WarmupSteps, std::uint64_t DecaySteps>
using WarmupStableDecay =
    Schedule<Warmup<WarmupSteps>, Constant<>, LinearDecay<Rational{0, 1}, DecaySteps>>;

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/schedule.ipp>
#endif

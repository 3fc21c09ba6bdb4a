// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include <frugal/core/compose/fixed_string.hpp>
#include <frugal/core/compose/rational.hpp>

namespace frugal {

/// The length of a curve that fills what the other curves of a schedule leave.
inline constexpr std::uint64_t to_end = 0;

// Curves. Each gives the learning-rate factor at step t of its own length T, with t from 0. Values
// are those of the torch.optim.lr_scheduler class named next to it. An `endless` curve does not
// depend on its length, and may be the last one in a run without a known end. `effect` is the
// number of its own steps that an endless curve needs to show what its arguments ask for.

/// A constant factor (ConstantLR).
template <std::uint64_t Steps = to_end, Rational Factor = Rational{1, 1}>
struct Constant {
  static constexpr bool endless = true;
  std::uint64_t steps = Steps;
  double value = Factor.value();

  double factor(std::uint64_t, std::uint64_t) const { return value; }
};
template <>
inline constexpr std::string_view alias_name<Constant<>> = "Constant<>";

/// Rises from 1/N at the first step to 1 at step N - 1 (LinearLR with start_factor 1/N and
/// total_iters N - 1), and stays there: the first step is not wasted on a rate of 0.
template <std::uint64_t N>
struct Warmup {
  static_assert(N >= 1, "frugal: Warmup<0> has no step. Write Warmup<1>, or leave it out.");
  std::uint64_t steps = N;

  double factor(std::uint64_t t, std::uint64_t length) const {
    if (t >= length) return 1.0;
    return static_cast<double>(t + 1) / static_cast<double>(length);
  }
};

/// A straight line between two factors (LinearLR).
template <Rational From, Rational To, std::uint64_t Steps = to_end>
struct Ramp {
  std::uint64_t steps = Steps;
  double from = From.value();
  double to = To.value();

  double factor(std::uint64_t t, std::uint64_t length) const {
    if (t >= length) return to;
    return from + (to - from) * static_cast<double>(t) / static_cast<double>(length);
  }
};

/// Falls from 1 to a floor along a straight line (LinearLR).
template <Rational Floor = Rational{0, 1}, std::uint64_t Steps = to_end>
using LinearDecay = Ramp<Rational{1, 1}, Floor, Steps>;
using Linear = LinearDecay<>;
template <>
inline constexpr std::string_view alias_name<Linear> = "Linear";

/// Falls from 1 to a floor along half a cosine (CosineAnnealingLR, eta_min = floor * lr), of
/// Loshchilov and Hutter, "SGDR" (2017).
template <Rational Floor = Rational{0, 1}, std::uint64_t Steps = to_end>
struct CosineDecay {
  std::uint64_t steps = Steps;
  double floor = Floor.value();

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
  static constexpr bool endless = true;
  static constexpr std::uint64_t effect = First;  // the first cosine; it need not restart
  std::uint64_t steps = to_end;
  double floor = Floor.value();

  double factor(std::uint64_t t, std::uint64_t) const {
    std::uint64_t length = First;
    if constexpr (Growth == 1) t %= First;
    while (t >= length) {
      t -= length;
      length *= Growth;
    }
    double const turn = std::numbers::pi * static_cast<double>(t) / static_cast<double>(length);
    return floor + (1 - floor) * (1 + std::cos(turn)) / 2;
  }
};

/// Falls from 1 to 0 as a power of the remaining fraction (PolynomialLR).
template <Rational Power = Rational{1, 1}, std::uint64_t Steps = to_end>
struct PolynomialDecay {
  std::uint64_t steps = Steps;
  double power = Power.value();

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
  static constexpr bool endless = true;
  static constexpr std::uint64_t effect = N + 1;
  std::uint64_t steps = to_end;
  double gamma = Gamma.value();

  double factor(std::uint64_t t, std::uint64_t) const {
    std::uint64_t const decays = t / N;
    return std::pow(gamma, static_cast<double>(decays));
  }
};

/// Multiplied by gamma at each milestone (MultiStepLR).
template <Rational Gamma, std::uint64_t... Milestones>
struct MultiStepDecay {
  static constexpr bool endless = true;
  static constexpr std::uint64_t effect = std::max({std::uint64_t{0}, Milestones...}) + 1;
  std::uint64_t steps = to_end;
  double gamma = Gamma.value();

  double factor(std::uint64_t t, std::uint64_t) const {
    return std::pow(gamma, static_cast<double>((0U + ... + (t >= Milestones ? 1U : 0U))));
  }
};

}  // namespace frugal

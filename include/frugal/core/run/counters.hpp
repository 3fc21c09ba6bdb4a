// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include <frugal/core/compose/fixed_string.hpp>

namespace frugal {

/// Training progress. All counts begin at zero and survive a resume.
struct Counters {
  std::uint64_t epoch = 0;               ///< completed epochs
  std::uint64_t position = 0;            ///< samples consumed in the current epoch
  std::uint64_t step = 0;                ///< optimizer steps
  std::uint64_t micro_batch = 0;         ///< forward and backward passes
  std::uint64_t sample = 0;              ///< samples
  std::uint64_t token = 0;               ///< tokens (batch_traits::tokens)
  std::uint64_t non_finite_windows = 0;  ///< windows whose gradients are not finite: not steps
                                         ///< (Precision<FP16>, SkipNonFinite)
  std::uint64_t skipped_windows = 0;     ///< windows that a policy skipped: not steps either

  // The contribution of the last window and of the skipped ones before it. A cadence in samples or
  // tokens is due when a step crosses a multiple, and needs no memory to detect that.
  std::uint64_t window_micro_batches = 0;
  std::uint64_t window_samples = 0;
  std::uint64_t window_tokens = 0;
  std::uint64_t window_skipped = 0;  ///< 1: the last window made no step, and the next adds to
                                     ///< these

  template <class Archive>
  void persist(Archive& archive) {
    archive("epoch", epoch);
    archive("position", position);
    archive("step", step);
    archive("micro_batch", micro_batch);
    archive("sample", sample);
    archive("token", token);
    archive("skipped", non_finite_windows);
    archive("window_micro_batches", window_micro_batches);
    archive("window_samples", window_samples);
    archive("window_tokens", window_tokens);
    archive("window_skipped", window_skipped);
    archive("passed_over", skipped_windows);
  }

  friend bool operator==(Counters const&, Counters const&) = default;
};

// Units of a cadence; optimizer steps by default.
struct OptimizerStep {};
struct MicroBatch {};
struct Sample {};
struct Token {};
struct Epoch {};
struct Second {};  ///< of wall time; only for policies that support it

/// `Every<Auto>`: the policy chooses its cadence from its measurements, if it supports that.
struct Automatic {
  friend constexpr bool operator==(Automatic, Automatic) = default;
};
inline constexpr Automatic Auto{};
template <>
inline constexpr std::string_view alias_name<Automatic> = "Auto";

namespace detail {

/// A count that is given at run time: SettingsError for less than one.
std::uint64_t require_count(std::int64_t given, char const* what);
template <std::integral T>
constexpr std::uint64_t counted(T given, char const* what) {
  return given >= 1 ? static_cast<std::uint64_t>(given)
                    : require_count(static_cast<std::int64_t>(given), what);
}

}  // namespace detail

/// A cadence: `Every<500>` optimizer steps, `Every<1, Epoch>`, `Every<100000, Token>`.
///
/// N is the default of a number that a program may set: `Validate<Every<500>>{.every = 200}`.
/// SettingsError for less than 1.
///
/// Micro-batches, samples and tokens are checked when an optimizer step completes: the cadence is
/// due at the first step that reaches or passes a multiple of the count.
template <auto N, class Unit = OptimizerStep>
class Every {
  static_assert(N >= 1, "frugal: Every<0> would never be due. Write Every<1> or more.");

 public:
  using unit = Unit;
  static constexpr bool per_epoch = std::same_as<Unit, Epoch>;

  constexpr Every() = default;
  // Implicit on purpose: a cadence is set by its number.
  template <std::integral T>
  constexpr Every(T count)  // NOLINT(google-explicit-constructor)
      : count_(detail::counted(count, "Every")) {}

  constexpr std::uint64_t count() const { return count_; }

  /// Whether it is due after the optimizer step that `now` has just counted.
  constexpr bool due_at_step(Counters const& now) const {
    if constexpr (std::same_as<Unit, OptimizerStep>) {
      return now.step % count_ == 0;
    } else if constexpr (std::same_as<Unit, MicroBatch>) {
      return crossed(now.micro_batch, now.window_micro_batches);
    } else if constexpr (std::same_as<Unit, Sample>) {
      return crossed(now.sample, now.window_samples);
    } else if constexpr (std::same_as<Unit, Token>) {
      return crossed(now.token, now.window_tokens);
    } else {
      static_assert(
          per_epoch,
          "frugal: Every counts OptimizerStep, MicroBatch, Sample, Token or Epoch; Second "
          "and Auto are for Checkpoint.");
      return false;
    }
  }

  /// Whether it is due after the epoch that `now` has just counted.
  constexpr bool due_at_epoch_end(Counters const& now) const {
    return per_epoch && now.epoch % count_ == 0;
  }

  friend constexpr bool operator==(Every const&, Every const&) = default;

 private:
  constexpr bool crossed(std::uint64_t now, std::uint64_t added) const {
    return now / count_ != (now - added) / count_;
  }

  std::uint64_t count_ = N;
};

template <>
struct Every<Auto, OptimizerStep> {
  using unit = Automatic;
  static constexpr bool per_epoch = false;

  template <class C>
  static constexpr bool due_at_step(C const&) {
    static_assert(!std::same_as<C, Counters>,
                  "frugal: this policy cannot find its own cadence. Write Every<N>; Every<Auto> is "
                  "for Checkpoint.");
    return false;
  }
  static constexpr bool due_at_epoch_end(Counters const&) { return false; }
};

/// Once per epoch.
using PerEpoch = Every<1, Epoch>;

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/counters.ipp>
#endif

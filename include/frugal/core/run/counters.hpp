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

/// A cadence: `Every<500>` optimizer steps, `Every<1, Epoch>`, `Every<100000, Token>`.
///
/// Micro-batches, samples and tokens are checked when an optimizer step completes: the cadence is
/// due at the first step that reaches or passes a multiple of N.
template <auto N, class Unit = OptimizerStep>
struct Every {
  static_assert(N >= 1, "frugal: Every<0> would never be due. Write Every<1> or more.");
  static constexpr std::uint64_t count = N;
  using unit = Unit;
  static constexpr bool per_epoch = std::same_as<Unit, Epoch>;

  /// Whether it is due after the optimizer step that `now` has just counted.
  static constexpr bool due_at_step(Counters const& now) {
    if constexpr (std::same_as<Unit, OptimizerStep>) {
      return now.step % count == 0;
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
  static constexpr bool due_at_epoch_end(Counters const& now) {
    return per_epoch && now.epoch % count == 0;
  }

 private:
  static constexpr bool crossed(std::uint64_t now, std::uint64_t added) {
    return now / count != (now - added) / count;
  }
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>
#include <c10/core/StorageImpl.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <frugal/base/number_texts.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/cuda_memory.hpp>  // IWYU pragma: keep
#include <frugal/core/libtorch/host_meter.hpp>
#include <frugal/core/libtorch/out_of_memory.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/recipe_traits.hpp>
#include <frugal/policy/accumulate/split.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::detail {

/// Bytes of a module's parameters and buffers; those that the meter does not count, separately.
struct ModuleBytes {
  std::int64_t all = 0;
  std::int64_t not_counted = 0;

  static ModuleBytes of(torch::nn::Module& module);
};

/// Memory of the CPU's tensors, up to a limit: the module's, and allocations from here on.
class HostMemory {
 public:
  HostMemory(std::int64_t limit, torch::nn::Module& module)
      : limit_(limit), module_(ModuleBytes::of(module).all), base_(HostMeter::live() - module_) {}

  std::int64_t room() const { return limit_; }
  void begin() { HostMeter::forget_peak(); }
  /// Peak of the allocated bytes since begin().
  std::int64_t taken() const { return HostMeter::peak() - base_; }
  void after_failure() {}
  /// For the lifetime of the result, allocations of this thread above `bytes` fail.
  HostMeter::Limit limit(std::int64_t bytes) const { return HostMeter::Limit(base_ + bytes); }
  HostMeter::Limit limit() const { return limit(limit_); }
  /// Excludes bytes that came or went in between and do not belong to training.
  void forgive(std::int64_t bytes) { base_ += bytes; }

 private:
  std::int64_t limit_;
  std::int64_t module_;
  std::int64_t base_;
};

/// Memory of a device that reports nothing, except that an allocation fails.
class UnknownMemory {
 public:
  UnknownMemory(c10::Device, std::int64_t) {}

  static std::int64_t room() { return HostMeter::unlimited; }
  static void begin() {}
  static std::int64_t taken() { return 0; }
  static void after_failure() {}
};

#ifdef FRUGAL_CUDA
using DeviceMemory = CudaMemory;
#else
using DeviceMemory = UnknownMemory;
#endif

/// Whether a step fits with the margin. False if it ran out of memory or used more. `memory` is
/// queried before and after the step.
template <class Memory, class Step>
bool fits(Memory& memory, double margin, Step&& step) {
  memory.begin();
  auto const most = static_cast<std::int64_t>(static_cast<double>(memory.room()) * (1 - margin));
  bool failed = false;
  try {
    step(most);
  } catch (...) {
    if (!is_out_of_memory(std::current_exception())) throw;
    failed = true;  // the exception may keep tensors alive until this block ends
  }
  if (failed) memory.after_failure();
  return !failed && memory.taken() <= most;
}

/// The largest number from 1 to `most` that fits, by doubling and bisection; 0 if not even 1 fits.
/// Calls `fits(n)` at most 2 log2(most) + 2 times, once per number, and assumes that everything
/// above a number that does not fit does not fit either.
template <class Fits>
std::int64_t largest_that_fits(std::int64_t most, Fits&& fits) {
  std::int64_t good = 0;
  std::int64_t bad = most + 1;
  for (std::int64_t next = 1; good < most && bad > most; next = std::min(2 * next, most)) {
    (fits(next) ? good : bad) = next;
  }
  while (bad - good > 1) {
    std::int64_t const middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace frugal::detail

namespace frugal {

/// Finds the largest micro-batch that fits into memory, before the first step, and keeps the CPU's
/// tensors below a limit.
///
/// Lever   memory: no run fails because of a batch that is too large, and no memory stays
///         unused because of one that is too small.
/// Cost    at the beginning two trial steps for each doubling of the micro-batch and each
///         bisection; with a limit on the CPU, one atomic addition per allocation and per release.
/// State   none: Accumulate<Auto> keeps the result, and a resumed run does not search again.
/// Errors  SettingsError on the CPU without a limit and for a margin out of range; MemoryError if
///         one sample does not fit.
///
/// Trial steps are real: forward, backward, gradients and the optimizer, whose moments the second
/// one finds in place. The slots take part, and around_forward of all policies; other hooks of
/// observers are not called. Afterwards everything is restored: weights, buffers, gradients, modes,
/// the slots' states, generators, counters, losses, the source's position.
struct AutoBatch {
  using kind = kinds::auto_batch;
  using listens = list<on::fit_begin>;
  // DryRun makes no step, and goes before what takes longer.
  using after = list<kinds::dry_run>;

  static constexpr About about{Term::memory, "some steps when fit begins"};

  /// Memory limit in bytes. On the CPU it limits tensors, and is required; on a device it limits
  /// what the allocator holds during the search, and 0 means all available memory.
  std::int64_t limit = 0;
  double margin = 0.1;   ///< fraction of the memory that the largest trial step leaves free
  std::size_t look = 4;  ///< batches of the source to examine; the largest is tried
  Outcome<std::string> outcome{};

  /// The last fit's result in one line; empty before a fit.
  std::string finding() const { return outcome.get() == nullptr ? std::string() : *outcome.get(); }

  template <class Context>
  class State;
};

template <class Context>
class AutoBatch::State {
  static_assert(detail::traits_of<Context>::splits,
                "frugal: AutoBatch sets the micro-batch of Accumulate<Auto>, and this recipe has "
                "another Accumulate. Write Accumulate<Auto>.");

 public:
  using transient = void;

  explicit State(AutoBatch const& settings)
      : limit_(settings.limit),
        margin_(settings.margin),
        look_(settings.look),
        outcome_(&settings.outcome) {}

  void on_fit_begin(FitBegin& phase) {
    outcome_->clear();
    c10::Device const device = phase.settings().device;
    require_settings(device);
    if (device.is_cpu()) {
      detail::HostMeter::install();
      host_.emplace(limit_, base_module(phase.module()));
    } else {
      device_.emplace(device, limit_);
    }
  }

  // Called by the loop.

  std::size_t look() const { return look_; }

  /// Holds for the passes of one window.
  detail::HostMeter::Limit limit() const {
    return host_ ? host_->limit() : detail::HostMeter::Limit(detail::HostMeter::unlimited);
  }

  /// The largest micro-batch that fits, for batches of `batch` samples; 0: the whole batch.
  ///
  /// `step(samples)` makes a step with micro-batches of that size and returns whether it was a
  /// step, without overflow. `undo()` restores the slots, which a failed step may have left
  /// half-updated. `held()` returns the bytes held for restoring.
  template <class Step, class WindowRetry>
  std::int64_t find(Phase const& phase, std::int64_t batch, std::int64_t held, Step&& step,
                    WindowRetry&& undo) {
    if (host_) host_->forgive(held);
    std::int64_t least = 1;  // BatchNorm needs two samples
    bool moments = false;    // whether the optimizer has allocated its state
    std::map<std::int64_t, bool> tried;
    auto const try_one = [&](std::int64_t samples) {
      bool const fit = measured([&] {
        if (!moments) first_step(least, step);
        moments = true;
        step(samples);
      });
      if (!fit) {
        moments = false;
        undo();
      }
      return fit;
    };
    std::int64_t const found = detail::largest_that_fits(batch, [&](std::int64_t samples) {
      // Try only one of the sizes that give the same number of parts: their parts are equal.
      detail::Parts const parts(batch, samples);
      if (auto const known = tried.find(parts.count); known != tried.end()) return known->second;
      bool fit = true;
      try {
        fit = try_one(parts.largest());
      } catch (std::exception const&) {
        if (samples != 1 || batch == 1) throw;
        least = 2;  // not a lack of memory, whatever it is: two samples will tell
        undo();
      }
      return tried[parts.count] = fit;
    });
    if (host_) host_->forgive(-held);
    if (found < least) refuse(batch);
    std::int64_t const samples = detail::Parts(batch, found).largest();
    report(phase, samples, batch);
    return samples == batch ? 0 : samples;
  }

 private:
  // In FP16 the first steps of an optimizer may overflow, and then are no steps.
  static constexpr int most_overflows = 30;

  template <class Step>
  static void first_step(std::int64_t samples, Step& step) {
    for (int i = 0; i < most_overflows && !step(samples); ++i) {
    }
  }

  template <class Steps>
  bool measured(Steps&& steps) {
    if (!host_) return detail::fits(*device_, margin_, [&](std::int64_t) { steps(); });
    return detail::fits(*host_, margin_, [&](std::int64_t most) {
      auto const limit = host_->limit(most);
      steps();
    });
  }

  void require_settings(c10::Device device) const {
    auto const refuse = [](std::string what, std::string where, std::string why, std::string fix) {
      throw SettingsError({.what = std::move(what),
                           .where = std::move(where),
                           .why = std::move(why),
                           .fix = std::move(fix)});
    };
    if (limit_ < 0 || (limit_ == 0 && device.is_cpu())) {
      refuse(limit_ == 0 ? "AutoBatch has no limit on the CPU"
                         : "the limit is " + std::to_string(limit_) + " bytes",
             "AutoBatch::limit", "the system promises a process more memory than the machine has",
             "Set the bytes that training may take, such as .limit = std::int64_t{8} << 30.");
    }
    if (!(margin_ >= 0 && margin_ < 1)) {
      refuse("the margin is " + std::to_string(margin_), "AutoBatch::margin",
             "it is the share of the memory that stays free", "Give 0 or more and less than 1.");
    }
    if (look_ == 0) {
      refuse("AutoBatch tries no batch", "AutoBatch::look",
             "it measures memory on batches of the source", "Give 1 or more; 4 is the default.");
    }
  }

  std::int64_t room() const { return host_ ? host_->room() : device_->room(); }

  void report(Phase const& phase, std::int64_t samples, std::int64_t batch) const {
    std::string const text = samples == batch
                                 ? "a batch of " + std::to_string(batch) + " samples fits whole"
                                 : "micro-batches of " + std::to_string(samples) +
                                       " samples fit, of batches of " + std::to_string(batch);
    phase.warn("AutoBatch: " + text);
    phase.record({"auto_batch",
                  {{"samples", static_cast<std::uint64_t>(samples)},
                   {"batch", static_cast<std::uint64_t>(batch)}}});
    outcome_->set(text);
  }

  [[noreturn]] void refuse(std::int64_t batch) const {
    auto const bytes = [](std::int64_t count) {
      return detail::bytes_text(static_cast<double>(count));
    };
    throw MemoryError(
        {.what = "memory does not hold a step with micro-batches of one sample",
         .where =
             "AutoBatch, before the first step, batches of " + std::to_string(batch) + " samples",
         .why = room() == detail::HostMeter::unlimited
                    ? std::string("the device's allocator refused")
                    : "there are " + bytes(room()) + ", of which a margin of " +
                          std::to_string(margin_) + " stays free",
         .fix = "Use a smaller model or shorter samples, Precision<BF16>, Recompute<> or "
                "Activations<BF16>, or give more memory (AutoBatch::limit on the CPU)."});
  }

  std::int64_t limit_;
  double margin_;
  std::size_t look_;
  Outcome<std::string> const* outcome_;
  std::optional<detail::HostMemory> host_;
  std::optional<detail::DeviceMemory> device_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/auto_batch.ipp>
#endif

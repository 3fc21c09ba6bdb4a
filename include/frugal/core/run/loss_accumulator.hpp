// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include <frugal/core/run/counters.hpp>
#include <frugal/core/run/norm_accumulator.hpp>
#include <frugal/core/run/scalar_accumulator.hpp>
#include <frugal/core/run/scalars.hpp>
#include <frugal/error.hpp>

namespace frugal {

namespace detail {

/// Reads a scalar in host memory without a dispatch; every step does this. Uses the untyped
/// pointer: g++ and clang 18 mangle the typed accessor's name differently, and LibTorch exports
/// only g++'s.
double host_scalar(at::Tensor const& scalar);

}  // namespace detail

/// The losses of an epoch: weighted mean, the last window's mean, and the guard against NaN.
///
/// A loss of weight 0 is a mean over nothing: it is never read, and may be NaN.
///
/// A loss in host memory is checked at once, before backward, so that a non-finite loss never
/// reaches the weights. A loss on a device is kept as a tensor and checked when it is read (mean(),
/// last()) or the epoch ends: no step waits for the device, and the error still names the step
/// concerned.
class LossAccumulator {
 public:
  /// When a loss in host memory is checked (one on a device always when read), and whether a bad
  /// loss is thrown or, if processes must agree first, postponed.
  enum class Reading { at_once, when_asked, when_agreed };

  static constexpr std::size_t a_chunk = detail::PackedScalars::a_chunk;

  explicit LossAccumulator(Reading host = Reading::at_once) : host_(host) {}

  /// Throws NonFiniteLossError for a loss that is checked at once.
  void add(at::Tensor const& loss, double weight, Counters const& at);

  /// From now on a loss that is not finite is no error, and is in no mean: a policy skips its
  /// window.
  void leave_bad_losses() { leaves_bad_losses_ = true; }
  /// Whether this loss is known to be in no mean. Of a loss on a device it is not known yet.
  bool leaves(at::Tensor const& loss) const {
    return leaves_bad_losses_ && loss.is_cpu() && !std::isfinite(detail::host_scalar(loss));
  }

  /// A norm of gradients on a device, which is read when losses are. Then throws
  /// NonFiniteGradientError if it is not finite, and no window before it had a bad loss.
  void add_norm(at::Tensor norm, LossError::Window const& window, Counters const& now) {
    norms_.add(std::move(norm), window, now.micro_batch);
  }

  /// The objective's scalars; read when losses are.
  void add(Scalars const& scalars, double weight) { scalars_.add(scalars, weight); }
  void follow(ScalarSpan& span) { scalars_.follow(span); }

  /// Reads the losses still on a device; waits once, however many there are.
  void read_pending();

  /// Weighted mean of this epoch's losses so far; NaN before the first. May wait for a device.
  double mean();

  /// The mean's numerator and denominator, for a mean over several processes.
  struct Sum {
    double losses = 0;
    double weights = 0;
  };
  Sum sum();

  /// Weighted mean of the losses of the last window that has a weight; NaN before the first. May
  /// wait for a device.
  double last();

  /// The first postponed bad loss, ready to throw; null if there was none.
  std::exception_ptr const& bad() const { return bad_; }
  void postpone(std::exception_ptr error) {
    if (!bad_) bad_ = std::move(error);
  }

  /// Reads pending losses, and throws the LossError of a bad one, postponed or not.
  void require_good();

  void reset();

  /// The place in it, to return to. Valid until pending losses are read, which does not
  /// happen within a window.
  struct Mark {
    std::size_t pending = 0;
    double sum = 0, weight = 0, last = 0, window_weight = 0;
    LossError::Window window{};
    bool bad = false;
    ScalarAccumulator::Mark scalars = 0;
  };
  Mark mark();
  void go_back(Mark const& mark);

  template <class Archive>
  void persist(Archive& archive) {
    read_pending();
    archive("sum", sum_);
    archive("weight", weight_);
    archive("last", last_);
    // Saved between windows: the next loss begins one.
    if (Archive::loading) window_weight_ = 0;
  }

 private:
  struct Origin {
    LossError::Window window;
    std::uint64_t micro_batch;
  };
  static Origin origin_of(Counters const& at) {
    return {{at.epoch, at.position, at.step}, at.micro_batch};
  }
  /// The origin of a loss that has not been read.
  struct Pending {
    double weight;
    Origin origin;
  };

  void enter(double value, double weight, Origin const& origin);

  /// Once.
  void refuse_bad(NormAccumulator::Norm& norm);

  template <class Error>
  void refuse(Error error) {
    if (host_ != Reading::when_agreed) throw error;
    postpone(std::make_exception_ptr(std::move(error)));
  }

  static NonFiniteLossError error_of(double value, Origin const& origin);

  Reading host_;
  std::exception_ptr bad_;
  std::vector<Pending> pending_;
  detail::PackedScalars losses_;  // the pending ones
  NormAccumulator norms_;
  ScalarAccumulator scalars_;
  bool leaves_bad_losses_ = false;
  double sum_ = 0;
  double weight_ = 0;
  double last_ = std::numeric_limits<double>::quiet_NaN();
  LossError::Window window_{};  // that `last_` is of
  double window_weight_ = 0;    // of its losses so far; 0: the next loss begins a window
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/core/run/loss_accumulator.ipp>
#endif

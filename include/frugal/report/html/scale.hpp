// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/quantity.hpp>

#include <string>
#include <vector>

namespace frugal::html {

/// A step between ticks that people can read: 1, 2 or 5 times a power of ten; for bytes powers of
/// two; for times also 15 s, 30 min, 6 h and their like.
///
/// Source  P. Heckbert, "Nice Numbers for CudaGraph Labels", Graphics Gems, 1990.
double nice_step(double rough, Unit unit);

/// An axis: where a value is, from 0 to 1, and its ticks.
class Scale {
 public:
  /// `wanted` ticks, or a few more or less. `loose` ends at ticks, as a vertical axis does.
  Scale(double low, double high, Unit unit, int wanted, bool loose, bool logarithmic = false)
      : unit_(unit), log_(logarithmic && low > 0) {
    if (!(low <= high)) low = 0, high = 1;
    log_ ? set_log(low, high) : set(low, high, wanted, loose);
  }

  double at(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }
  bool logarithmic() const { return log_; }
  std::vector<double> const& ticks() const { return ticks_; }

  /// Neighbouring ticks differ in their labels.
  std::string label(double tick) const;

 private:
  void set(double low, double high, int wanted, bool loose);

  void set_log(double low, double high);

  Unit unit_;
  bool log_;
  double low_ = 0, high_ = 1, step_ = 1;
  std::vector<double> ticks_;
};

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/scale.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/scale.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace frugal::html {

FRUGAL_INLINE double nice_step(double rough, Unit unit) {
  if (!(rough > 0) || !std::isfinite(rough)) return 1;
  if (unit == Unit::bytes && rough > 1) return std::exp2(std::ceil(std::log2(rough)));
  if (unit == Unit::count && rough < 1) return 1;
  if (unit == Unit::seconds && rough > 5) {
    constexpr std::array steps{10.0,    15.0,    30.0,    60.0,     120.0,  300.0,
                               600.0,   900.0,   1800.0,  3600.0,   7200.0, 10800.0,
                               21600.0, 43200.0, 86400.0, 172800.0, 432e3,  864e3};
    auto const found = std::lower_bound(steps.begin(), steps.end(), rough);
    if (found != steps.end()) return *found;
  }
  double const power = std::pow(10.0, std::floor(std::log10(rough)));
  double const lead = rough / power;
  for (double const nice : {1.0, 2.0, 5.0}) {
    if (lead <= nice * 1.0001) return nice * power;
  }
  return 10 * power;
}

FRUGAL_INLINE double Scale::at(double value) const {
  double const t = log_ ? (std::log10(std::max(value, low_)) - std::log10(low_)) /
                              (std::log10(high_) - std::log10(low_))
                        : (value - low_) / (high_ - low_);
  return std::clamp(t, 0.0, 1.0);
}

FRUGAL_INLINE std::string Scale::label(double tick) const {
  if (log_ || unit_ == Unit::bytes || unit_ == Unit::seconds) {
    std::string text = value_text(tick, unit_);
    // Powers of two need no ".0".
    std::size_t const point = unit_ == Unit::bytes ? text.find(".0 ") : text.npos;
    return point == text.npos ? text : text.erase(point, 2);
  }
  if (tick == 0) return unit_ == Unit::dollars ? "$0" : unit_ == Unit::percent ? "0%" : "0";
  double const factor = unit_ == Unit::percent ? 100 : 1;
  double size = std::max(std::abs(low_), std::abs(high_)) * factor, step = step_ * factor;
  double value = tick * factor;
  std::string suffix = unit_ == Unit::percent ? "%" : "";
  if (size > 1e15 || step < 1e-6) return value_text(tick, unit_);
  for (char const* each : {"k", "M", "G", "T"}) {
    if (size < 10'000 && !(size >= 1000 && step >= 1000)) break;
    size /= 1000, step /= 1000, value /= 1000;
    suffix = each;
  }
  int const digits = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 9);
  std::string text = detail::fixed(std::abs(value), digits) + suffix;
  if (unit_ == Unit::dollars) text = "$" + text;
  return (tick < 0 ? minus : "") + text;
}

FRUGAL_INLINE void Scale::set(double low, double high, int wanted, bool loose) {
  // One value, or many that are the same but for rounding.
  double const least = std::max(std::abs(low), std::abs(high)) * 1e-9;
  if (high - low <= least) {
    double const room = low == 0 ? 1 : std::abs(low) * 0.1;
    if (loose) low -= low == 0 ? 0 : room;
    high += room;
  }
  step_ = nice_step((high - low) / wanted, unit_);
  double const first = loose ? std::floor(low / step_ + 1e-9) : std::ceil(low / step_ - 1e-9);
  double const last = loose ? std::ceil(high / step_ - 1e-9) : std::floor(high / step_ + 1e-9);
  for (double i = first; i <= last && ticks_.size() < 16; ++i) ticks_.push_back(i * step_);
  low_ = loose ? first * step_ : low;
  high_ = loose ? last * step_ : high;
  if (!(high_ > low_)) high_ = low_ + step_;
}

FRUGAL_INLINE void Scale::set_log(double low, double high) {
  double const first = std::floor(std::log10(low) + 1e-9);
  double last = std::ceil(std::log10(high) - 1e-9);
  if (last <= first) last = first + 1;
  low_ = std::pow(10.0, first);
  high_ = std::pow(10.0, last);
  double const every = std::max(1.0, std::ceil((last - first) / 5));
  for (double i = first; i <= last; i += every) ticks_.push_back(std::pow(10.0, i));
}

}  // namespace frugal::html

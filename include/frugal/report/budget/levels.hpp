// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Reports each level once. A level is reported again only after the share has fallen below it by
/// the hysteresis, so that a share that wavers around a level gives one warning.
class Levels {
 public:
  Levels() = default;
  /// SettingsError for a level that is not above 0, and a hysteresis outside 0 to 1. `where` names
  /// the policy.
  Levels(std::vector<double> levels, double hysteresis, std::string const& where)
      : levels_(std::move(levels)), hysteresis_(hysteresis) {
    for (double const level : levels_) {
      if (level > 0 && std::isfinite(level)) continue;
      throw SettingsError({.what = "a level is " + std::to_string(level),
                           .where = where + "::levels",
                           .why = "a level is a share of the limit, above 0",
                           .fix = "Give shares such as {0.5, 0.8, 1.0}."});
    }
    if (!(hysteresis >= 0 && hysteresis < 1)) {
      throw SettingsError({.what = "the hysteresis is " + std::to_string(hysteresis),
                           .where = where + "::hysteresis",
                           .why = "it is a share of the limit, from 0 to below 1",
                           .fix = "Give a share such as 0.05."});
    }
    std::sort(levels_.begin(), levels_.end());
  }

  /// The highest level that is reached now and was not reported; of several, only that one is
  /// reported.
  std::optional<double> look(double share);

  template <class Archive>
  void persist(Archive& archive) {
    archive("told", told_);
  }

 private:
  double below(double level) const;

  std::vector<double> levels_;
  double hysteresis_ = 0;
  double told_ = 0;  ///< the highest level that was reported; 0: none
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/budget/levels.ipp>
#endif

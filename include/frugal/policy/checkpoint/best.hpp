// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <frugal/run/metrics.hpp>
#include <frugal/store/retention.hpp>

namespace frugal::detail {

/// The best value so far of each metric that KeepBest names: an improvement is saved when it is
/// measured.
class BestSoFar {
 public:
  explicit BestSoFar(std::vector<BestBy> metrics) : metrics_(std::move(metrics)) {}

  /// Whether a metric is better than ever before. A NaN never is; any number is better than a NaN.
  bool look(Metrics const& measured) {
    bool improved = false;
    for (BestBy const& best : metrics_) {
      double const value = measured[best.metric];
      if (std::isnan(value)) continue;
      auto const [known, first] = values_.try_emplace(best.metric, value);
      // A checkpoint of an earlier version may have a NaN as the best value.
      bool const better = std::isnan(known->second) ||
                          (best.highest ? value > known->second : value < known->second);
      if (!first && !better) continue;
      known->second = value;
      improved = improved_ = true;
    }
    return improved;
  }

  /// Was one, and no save since?
  bool improved() const { return improved_; }
  void forget_improvement() { improved_ = false; }

  template <class Archive>
  void persist(Archive& archive) {
    for (BestBy const& best : metrics_) {
      // Not an optional: g++ 12 sees an uninitialised one where there is none (GCC bug 80635).
      std::vector<double> value;
      if (auto const known = values_.find(best.metric); known != values_.end()) {
        value = {known->second};
      }
      archive("best." + best.metric, value);
      if (!Archive::loading) continue;
      // A return to an earlier state forgets what the weights that it discards have reached.
      values_.erase(best.metric);
      if (!value.empty()) values_.emplace(best.metric, value.front());
    }
    if (Archive::loading) improved_ = false;
  }

 private:
  std::vector<BestBy> metrics_;
  std::map<std::string, double> values_;
  bool improved_ = false;
};

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <frugal/checkpoint/retention.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/state/state_reader.hpp>

namespace frugal::detail {

/// The best value so far of each metric that KeepBest names: an improvement is saved when it is
/// measured.
class BestSoFar {
 public:
  explicit BestSoFar(std::vector<BestBy> metrics) : metrics_(std::move(metrics)) {}

  /// Whether a metric is better than ever before. A NaN never is.
  bool look(Metrics const& measured);

  /// Was one, and no save since?
  bool improved() const { return improved_; }

  /// A save of this moment begins, and has the weights of the last improvement.
  void begin_save();
  /// That save is on disk.
  void saved();
  /// That save has failed: a value that no file has is no best one, since later validations that
  /// beat all files are to be saved.
  void not_saved();

  /// After a resume: the best values are those of the checkpoints on disk, given by their metrics. A
  /// fork has none of the run before it, and a run that has gone back may have lost its best one.
  void reset_to(std::vector<std::map<std::string, double>> const& on_disk);

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
      if (value.empty() || forgets_best(archive, "KeepBest", best.metric)) continue;
      values_.emplace(best.metric, value.front());
    }
    if (!Archive::loading) return;
    improved_ = is_writing_ = false;
    saved_ = values_;
  }

 private:
  std::vector<BestBy> metrics_;
  std::map<std::string, double> values_;
  std::map<std::string, double> saved_;    ///< those of them that are on disk
  std::map<std::string, double> writing_;  ///< those that a save in progress has
  // Not an optional of a map, for the reason above.
  bool is_writing_ = false;
  bool improved_ = false;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/best.ipp>
#endif

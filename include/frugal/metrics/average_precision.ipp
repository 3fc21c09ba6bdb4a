// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/average_precision.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <limits>

namespace frugal::detail {

/// As numpy.linspace(0.5, 0.95, 10) rounds them.
FRUGAL_INLINE double least_overlap(std::size_t t) {
  constexpr std::array<double, AveragePrecision::thresholds> all{
      0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.8999999999999999, 0.95};
  return all[t];
}

/// Intersection over union; over the predicted area alone where the target is a crowd.
FRUGAL_INLINE double overlap_of(BoxCorners const& predicted, BoxCorners const& target, bool crowd) {
  double const width = std::min(predicted[2], target[2]) - std::max(predicted[0], target[0]);
  double const height = std::min(predicted[3], target[3]) - std::max(predicted[1], target[1]);
  if (!(width > 0 && height > 0)) return 0;
  auto const area = [](BoxCorners const& box) { return (box[2] - box[0]) * (box[3] - box[1]); };
  double const both = width * height;
  return both / (crowd ? area(predicted) : area(predicted) + area(target) - both);
}

FRUGAL_INLINE void AveragePrecision::predict(std::size_t image, std::int64_t label,
                                             BoxCorners const& box, double score) {
  classes_[label][image].predicted.push_back({box, score});
}

FRUGAL_INLINE void AveragePrecision::expect(std::size_t image, std::int64_t label,
                                            BoxCorners const& box, bool crowd) {
  classes_[label][image].targets.push_back({box, crowd});
}

FRUGAL_INLINE void AveragePrecision::judge(Image const& image, std::vector<Judged>& judged) {
  constexpr std::size_t most = 100;
  std::vector<Predicted> predicted = image.predicted;
  std::ranges::stable_sort(predicted, std::ranges::greater(), &Predicted::score);
  if (predicted.size() > most) predicted.resize(most);
  std::vector<Target> targets = image.targets;
  std::ranges::stable_sort(targets, std::ranges::less(), &Target::crowd);

  std::size_t const first = judged.size();
  std::vector<double> overlaps;  // of each prediction with each target
  for (Predicted const& each : predicted) {
    judged.push_back({.score = each.score, .right = {}, .ignored = {}});
    for (Target const& target : targets) {
      overlaps.push_back(overlap_of(each.box, target.box, target.crowd));
    }
  }
  for (std::size_t t = 0; t < thresholds; ++t) {
    double const least = least_overlap(t);
    std::vector<bool> taken(targets.size(), false);
    for (std::size_t p = 0; p < predicted.size(); ++p) {
      double best = least;
      std::size_t match = targets.size();
      for (std::size_t g = 0; g < targets.size(); ++g) {
        if (taken[g] && !targets[g].crowd) continue;
        // Crowds come last: a match before them stays.
        if (match != targets.size() && !targets[match].crowd && targets[g].crowd) break;
        double const overlap = overlaps[p * targets.size() + g];
        if (!(overlap >= best)) continue;
        best = overlap;
        match = g;
      }
      if (match == targets.size()) continue;
      taken[match] = true;
      bool const crowd = targets[match].crowd;
      judged[first + p].right[t] = !crowd;
      judged[first + p].ignored[t] = crowd;
    }
  }
}

FRUGAL_INLINE ClassPrecision AveragePrecision::precision_of(std::vector<Judged> judged,
                                                            double targets) {
  std::ranges::stable_sort(judged, std::ranges::greater(), &Judged::score);
  constexpr std::size_t recalls = 101;
  ClassPrecision found;
  std::vector<double> recall(judged.size()), precision(judged.size());
  for (std::size_t t = 0; t < thresholds; ++t) {
    double right = 0, wrong = 0;
    for (std::size_t p = 0; p < judged.size(); ++p) {
      if (!judged[p].ignored[t]) ++(judged[p].right[t] ? right : wrong);
      recall[p] = right / targets;
      precision[p] = right / (wrong + right + std::numeric_limits<double>::epsilon());
    }
    // The best precision of this recall or a higher one.
    for (std::size_t p = judged.size(); p > 1; --p) {
      precision[p - 2] = std::max(precision[p - 2], precision[p - 1]);
    }
    double sum = 0;
    for (std::size_t r = 0; r < recalls; ++r) {
      auto const at = std::ranges::lower_bound(recall, static_cast<double>(r) * 0.01);
      if (at != recall.end()) sum += precision[static_cast<std::size_t>(at - recall.begin())];
    }
    double const average = sum / static_cast<double>(recalls);
    found.all += average / static_cast<double>(thresholds);
    if (t == 0) found.at_50 = average;
    if (t == 5) found.at_75 = average;
    if (!recall.empty()) found.recall += recall.back() / static_cast<double>(thresholds);
  }
  return found;
}

FRUGAL_INLINE std::vector<ClassPrecision> AveragePrecision::classes() const {
  std::vector<ClassPrecision> all;
  for (auto const& [label, images] : classes_) {
    std::vector<Judged> judged;
    double targets = 0;
    for (auto const& [index, image] : images) {
      targets += static_cast<double>(std::ranges::count(image.targets, false, &Target::crowd));
      judge(image, judged);
    }
    if (targets == 0) continue;
    all.push_back(precision_of(std::move(judged), targets));
    all.back().label = label;
  }
  return all;
}

}  // namespace frugal::detail

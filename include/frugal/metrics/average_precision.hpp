// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace frugal::detail {

/// Left, top, right, bottom.
using BoxCorners = std::array<double, 4>;

/// What COCO's evaluation finds of a class.
struct ClassPrecision {
  std::int64_t label = 0;
  double all = 0;     ///< average precision, the mean over the thresholds 0.50 to 0.95
  double at_50 = 0;   ///< of one threshold
  double at_75 = 0;   ///< of one threshold
  double recall = 0;  ///< the mean over the thresholds
};

/// COCO's evaluation of boxes, as pycocotools' COCOeval for areas of any size and at most 100 predictions per image
/// and class. Images are numbered from 0 on; a box belongs to the image that it was added for, in any order.
class AveragePrecision {
 public:
  void predict(std::size_t image, std::int64_t label, BoxCorners const& box, double score);
  void expect(std::size_t image, std::int64_t label, BoxCorners const& box, bool crowd);

  /// Of each class that has a target which is no crowd, by label.
  std::vector<ClassPrecision> classes() const;

  static constexpr std::size_t thresholds = 10;

 private:
  struct Predicted {
    BoxCorners box;
    double score;
  };
  struct Target {
    BoxCorners box;
    bool crowd;
  };
  struct Image {
    std::vector<Predicted> predicted;
    std::vector<Target> targets;
  };
  /// What became of a predicted box at each threshold.
  struct Judged {
    double score;
    std::array<bool, thresholds> right;    ///< matches a target that is no crowd
    std::array<bool, thresholds> ignored;  ///< matches a crowd: neither right nor wrong
  };

  static void judge(Image const& image, std::vector<Judged>& judged);
  static ClassPrecision precision_of(std::vector<Judged> judged, double targets);

  std::map<std::int64_t, std::map<std::size_t, Image>> classes_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/metrics/average_precision.ipp>
#endif

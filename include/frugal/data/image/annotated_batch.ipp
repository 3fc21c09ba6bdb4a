// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/image/annotated_batch.hpp>

#include <frugal/core/source/labels.hpp>
#include <frugal/data/collate.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>

namespace frugal {

namespace detail {
FRUGAL_INLINE char const* annotation_name(Annotation which) {
  return which == Annotation::mask ? "mask" : which == Annotation::boxes ? "boxes" : "keypoints";
}
}  // namespace detail

FRUGAL_INLINE at::Tensor const& AnnotatedBatch::part(Annotation which) const {
  return which == target_is ? target : field(detail::annotation_name(which));
}

FRUGAL_INLINE std::string CollateAnnotated::identity() const {
  return std::string("CollateAnnotated/1(") + detail::annotation_name(target) + ")";
}

FRUGAL_INLINE AnnotatedBatch CollateAnnotated::operator()(
    std::vector<AnnotatedImage> const& samples, std::span<std::size_t const> indices) const {
  detail::SampleNames const name(indices);
  if (samples.empty()) {
    throw DataError({.what = "there are no samples to collate",
                     .where = "CollateAnnotated",
                     .why = "",
                     .fix = "Give one sample or more."});
  }
  std::int64_t most = 0;
  std::int64_t points = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    AnnotatedImage const& sample = samples[i];
    detail::check_annotated(sample, "CollateAnnotated");
    auto const alike = [&](at::Tensor AnnotatedImage::* part, char const* what) {
      if ((sample.*part).defined() == (samples[0].*part).defined()) return;
      throw DataError({.what = "samples of one batch differ in their annotations",
                       .where = name(i) + " and " + name(0),
                       .why = std::string("one of them has ") + what,
                       .fix = "Ask for the same parts of all."});
    };
    alike(&AnnotatedImage::mask, "a mask");
    alike(&AnnotatedImage::boxes, "boxes");
    alike(&AnnotatedImage::labels, "labels");
    alike(&AnnotatedImage::keypoints, "keypoints");
    if (sample.boxes.defined()) most = std::max(most, sample.boxes.size(0));
    if (!sample.keypoints.defined()) continue;
    if (i == 0) points = sample.keypoints.size(1);
    if (sample.keypoints.size(1) != points) {
      throw ShapeError({.what = "samples of one batch differ in their number of keypoints",
                        .where = name(i) + " and " + name(0),
                        .why = "they have " + std::to_string(sample.keypoints.size(1)) + " and " +
                               std::to_string(points),
                        .fix = "Give every object the same keypoints."});
    }
  }
  auto const part = [&](at::Tensor AnnotatedImage::* which) {
    return detail::parts_of(samples, [which](AnnotatedImage const& s) { return s.*which; });
  };
  AnnotatedBatch batch{.target_is = target};
  batch.data = detail::stacked(part(&AnnotatedImage::data), name, "data");
  auto const rows = static_cast<std::int64_t>(samples.size());
  AnnotatedImage const& first = samples[0];
  if (first.mask.defined()) {
    batch.fields["mask"] = detail::stacked(part(&AnnotatedImage::mask), name, "mask");
  }
  if (first.boxes.defined() && first.labels.defined()) {
    at::Tensor const packed = at::zeros({rows, most, 6}, first.boxes.options());
    packed.select(2, 4).fill_(ignored_label);
    for (std::int64_t b = 0; b < rows; ++b) {
      AnnotatedImage const& sample = samples[static_cast<std::size_t>(b)];
      at::Tensor const mine = packed.select(0, b).narrow(0, 0, sample.boxes.size(0));
      mine.narrow(1, 0, 4).copy_(sample.boxes);
      mine.select(1, 4).copy_(sample.labels);
      if (sample.crowd.defined()) mine.select(1, 5).copy_(sample.crowd);
    }
    batch.fields["boxes"] = packed;
  }
  if (first.keypoints.defined()) {
    at::Tensor const packed = at::zeros({rows, most, points, 3}, first.keypoints.options());
    for (std::int64_t b = 0; b < rows; ++b) {
      at::Tensor const& mine = samples[static_cast<std::size_t>(b)].keypoints;
      packed.select(0, b).narrow(0, 0, mine.size(0)).copy_(mine);
    }
    batch.fields["keypoints"] = packed;
  }
  auto found = batch.fields.extract(detail::annotation_name(target));
  if (found.empty()) {
    throw DataError(
        {.what = std::string("samples have no ") + detail::annotation_name(target),
         .where = "CollateAnnotated, " + name(0),
         .why = "it was told to make them the target",
         .fix = "Ask the set for them, or set CollateAnnotated::target to another part."});
  }
  batch.target = std::move(found.mapped());
  batch.fields["id"] =
      at::tensor(detail::parts_of(samples, [](AnnotatedImage const& s) { return s.id; }));
  return batch;
}

}  // namespace frugal

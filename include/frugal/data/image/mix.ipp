// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/image/mix.hpp>

#include <frugal/core/source/shape_text.hpp>
#include <frugal/data/image/image_batch.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace frugal {

FRUGAL_INLINE at::Tensor soft_targets(at::Tensor const& labels, std::int64_t classes) {
  if (labels.is_floating_point() && labels.dim() == 2 && labels.size(1) == classes) return labels;
  if (labels.dim() != 1 || labels.scalar_type() != at::kLong) {
    throw ShapeError({.what = "the targets are no class labels",
                      .where = "soft_targets",
                      .why = "they are " + detail::shape_text(labels) + ", for " +
                             std::to_string(classes) + " classes",
                      .fix = "Give labels [B] of int64, or probabilities [B, classes]."});
  }
  for (auto const label : {labels.min().item<std::int64_t>(), labels.max().item<std::int64_t>()}) {
    if (label >= 0 && label < classes) continue;
    throw LabelError({.what = "label " + std::to_string(label) + " has no class",
                      .where = "soft_targets",
                      .why = "there are " + std::to_string(classes) + " classes",
                      .fix = "Set `classes` to the number of classes, and label from 0."});
  }
  return at::zeros({labels.size(0), classes}, labels.options().dtype(at::kFloat))
      .scatter_(1, labels.unsqueeze(1), 1);
}

FRUGAL_INLINE at::Tensor mix_rows(at::Tensor const& rows, std::span<std::int64_t const> partners,
                                  std::span<double const> weights) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(rows.dim()), 1);
  shape[0] = -1;
  auto const per_row = [&](std::vector<double> const& numbers) {
    return detail::on_device_of(rows, numbers).to(rows.scalar_type()).view(shape);
  };
  std::vector<double> const mine(weights.begin(), weights.end());
  std::vector<double> others;
  for (double const weight : weights) others.push_back(1 - weight);
  std::vector<std::int64_t> const which(partners.begin(), partners.end());
  return rows.index_select(0, detail::on_device_of(rows, which))
      .mul_(per_row(others))
      .add_(rows.mul(per_row(mine)));
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE std::vector<std::int64_t> partners_of(std::span<SampleKey const> keys,
                                                    std::uint64_t stream) {
  std::size_t const count = keys.size();
  std::vector<std::int64_t> partners(count);
  std::size_t const shift = count < 2 ? 0 : 1 + Draw(keys[0], ~stream).below(count - 1);
  for (std::size_t b = 0; b < count; ++b) {
    partners[b] = static_cast<std::int64_t>((b + shift) % count);
  }
  return partners;
}

FRUGAL_INLINE void check_mix(Batch const& batch, std::span<SampleKey const> keys, double alpha,
                             std::int64_t classes, char const* caller) {
  check_images(batch.data, keys, caller);
  check_setting(alpha > 0, "an alpha that is not above 0", caller,
                "Set alpha to 0.2 or 1, for example.");
  check_setting(classes > 0, "no number of classes", caller, "Set `classes`: the targets need it.");
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE double MixUp::weight(SampleKey const& key) const {
  Draw draw(key, stream);
  return draw.chance(probability) ? draw.beta(alpha, alpha) : 1;
}

FRUGAL_INLINE Box CutMix::box(SampleKey const& key, std::int64_t height, std::int64_t width) const {
  Draw draw(key, stream);
  if (!draw.chance(probability)) return {};
  double const half = 0.5 * std::sqrt(1 - draw.beta(alpha, alpha));
  auto const side = [&](std::int64_t length) {
    auto const reach = static_cast<std::int64_t>(half * static_cast<double>(length));
    auto const middle = static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(length)));
    std::int64_t const begin = std::max<std::int64_t>(middle - reach, 0);
    return std::pair{begin, std::min(middle + reach, length) - begin};
  };
  auto const [top, rows] = side(height);
  auto const [left, columns] = side(width);
  return {.top = top, .left = left, .height = rows, .width = columns};
}

FRUGAL_INLINE std::vector<Patch> Mosaic::patches(std::span<SampleKey const> keys,
                                                 std::int64_t height, std::int64_t width) const {
  detail::check_setting(margin >= 0 && margin <= 0.5, "a margin outside of 0 to 0.5", "Mosaic",
                        "Set margin to 0.5 at most, which is the middle.");
  std::array<std::vector<std::int64_t>, 3> partners;
  for (std::size_t i = 0; i < partners.size(); ++i) {
    partners[i] = detail::partners_of(keys, stream + i);
  }
  std::vector<Patch> all;
  all.reserve(4 * keys.size());
  for (std::size_t b = 0; b < keys.size(); ++b) {
    auto const row = static_cast<std::int64_t>(b);
    Draw draw(keys[b], stream);
    auto const place = [&](std::int64_t length) {
      return std::llround(draw.uniform(margin, 1 - margin) * static_cast<double>(length));
    };
    std::int64_t const above = place(height), before = place(width);
    std::int64_t const below = height - above, behind = width - before;
    all.push_back({row, {below, behind, above, before}, row, 0, 0});
    all.push_back({partners[0][b], {below, 0, above, behind}, row, 0, before});
    all.push_back({partners[1][b], {0, behind, below, before}, row, above, 0});
    all.push_back({partners[2][b], {0, 0, below, behind}, row, above, before});
  }
  return all;
}

}  // namespace frugal

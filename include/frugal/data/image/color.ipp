// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/image/color.hpp>

#include <frugal/core/source/shape_text.hpp>
#include <frugal/data/image/image_batch.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE void check_colors(at::Tensor const& images, std::span<double const> factors,
                                char const* caller) {
  check_images(images, caller);
  bool const channels = images.size(-3) == 1 || images.size(-3) == 3;
  if (channels && images.dim() == 4 &&
      images.size(0) == static_cast<std::int64_t>(factors.size())) {
    return;
  }
  throw ShapeError({.what = "the images do not fit a change of color",
                    .where = caller,
                    .why = "they are " + shape_text(images) + ", with " +
                           std::to_string(factors.size()) + " factors",
                    .fix = "Give [B, C, H, W] with 1 or 3 channels, and B factors."});
}

FRUGAL_INLINE at::Tensor per_image(at::Tensor const& images, std::vector<double> const& factors) {
  auto const dtype = images.is_floating_point() ? images.scalar_type() : at::kFloat;
  return on_device_of(images, factors).to(dtype).view({-1, 1, 1, 1});
}

FRUGAL_INLINE at::Tensor grey_of(at::Tensor const& images) {
  if (images.size(1) == 1) return images.is_floating_point() ? images : images.to(at::kFloat);
  auto const color = images.unbind(1);
  at::Tensor grey = color[0].mul(0.2989).add_(color[1], 0.587).add_(color[2], 0.114);
  if (!images.is_floating_point()) grey.floor_();
  return grey.unsqueeze(1);
}

FRUGAL_INLINE at::Tensor blended(at::Tensor const& images, at::Tensor const& other,
                                 std::span<double const> factors) {
  std::vector<double> const mine(factors.begin(), factors.end());
  std::vector<double> others;
  for (double const factor : factors) others.push_back(1 - factor);
  return images.mul(per_image(images, mine))
      .add_(other.mul(per_image(images, others)))
      .clamp_(0, brightest(images))
      .to(images.scalar_type());
}

FRUGAL_INLINE std::tuple<at::Tensor, at::Tensor, at::Tensor> to_hsv(at::Tensor const& images) {
  auto const color = images.unbind(1);
  auto const [least, most] = at::aminmax(images, 1);
  at::Tensor const grey = most.eq(least);
  at::Tensor const range = most - least;
  // A grey pixel has neither hue nor saturation: any divisor will do, but not 0.
  at::Tensor const saturation = range / most.masked_fill(grey, 1);
  auto const c =
      most.unsqueeze(1).sub(images).div_(range.masked_fill(grey, 1).unsqueeze_(1)).unbind(1);
  at::Tensor const not_red = most.ne(color[0]), green = most.eq(color[1]);
  at::Tensor hue = c[2].sub(c[1]).mul_(not_red.logical_not());
  hue.add_(c[0].add(2).sub_(c[2]).mul_(green.logical_and(not_red)));
  hue.add_(c[1].add(4).sub_(c[0]).mul_(not_red.logical_and(green.logical_not())));
  return {hue.mul_(1.0 / 6).add_(1).fmod_(1), saturation, most};
}

FRUGAL_INLINE at::Tensor from_hsv(at::Tensor const& hue, at::Tensor const& saturation,
                                  at::Tensor const& value) {
  at::Tensor const sixth = hue.mul(6);
  at::Tensor const sector = sixth.floor();
  at::Tensor const within = saturation * (sixth - sector);
  at::Tensor const rest = at::rsub(saturation, 1);
  at::Tensor const q = at::rsub(within, 1).mul_(value).clamp_(0, 1);
  at::Tensor const t = within.add(rest).mul_(value).clamp_(0, 1);
  at::Tensor const p = rest.mul(value).clamp_(0, 1);
  at::Tensor const vpqt = at::stack({value, p, q, t}, 1);
  // Which of them red, green and blue are, in each sixth of the circle.
  at::Tensor const table =
      at::tensor({0, 2, 1, 1, 3, 0, 3, 0, 0, 2, 1, 1, 1, 1, 3, 0, 0, 2}, at::kLong)
          .view({3, 6})
          .to(hue.device());
  at::Tensor const which = sector.to(at::kLong).remainder_(6);
  return vpqt.gather(1, table.index({at::indexing::Slice(), which}).transpose(0, 1));
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE at::Tensor adjust_brightness(at::Tensor const& images,
                                           std::span<double const> factors) {
  detail::check_colors(images, factors, "adjust_brightness");
  std::vector<double> const all(factors.begin(), factors.end());
  return images.mul(detail::per_image(images, all))
      .clamp_(0, detail::brightest(images))
      .to(images.scalar_type());
}

FRUGAL_INLINE at::Tensor adjust_contrast(at::Tensor const& images,
                                         std::span<double const> factors) {
  detail::check_colors(images, factors, "adjust_contrast");
  return detail::blended(images, detail::grey_of(images).mean({1, 2, 3}, true), factors);
}

FRUGAL_INLINE at::Tensor adjust_saturation(at::Tensor const& images,
                                           std::span<double const> factors) {
  detail::check_colors(images, factors, "adjust_saturation");
  if (images.size(1) == 1) return images;
  return detail::blended(images, detail::grey_of(images), factors);
}

FRUGAL_INLINE at::Tensor adjust_hue(at::Tensor const& images, std::span<double const> factors) {
  detail::check_colors(images, factors, "adjust_hue");
  if (images.size(1) == 1) return images;
  bool const bytes = !images.is_floating_point();
  at::Tensor const scaled = bytes ? images.to(at::kFloat).mul_(1.0 / 255) : images.to(at::kFloat);
  auto [hue, saturation, value] = detail::to_hsv(scaled);
  std::vector<double> const turns(factors.begin(), factors.end());
  hue.add_(detail::per_image(scaled, turns).squeeze(1)).remainder_(1);
  at::Tensor const turned = detail::from_hsv(hue, saturation, value);
  return bytes ? turned.mul(256 - 1e-3).to(at::kByte) : turned.to(images.scalar_type());
}

FRUGAL_INLINE ColorJitter::Plan ColorJitter::plan(SampleKey const& key) const {
  Draw draw(key, stream);
  Plan plan;
  for (std::size_t i = 4; i > 1; --i) std::swap(plan.order[i - 1], plan.order[draw.below(i)]);
  std::array const widths{brightness, contrast, saturation};
  for (std::size_t i = 0; i < widths.size(); ++i) {
    plan.factors[i] = draw.uniform(std::max(0.0, 1 - widths[i]), 1 + widths[i]);
  }
  plan.factors[3] = draw.uniform(-hue, hue);
  return plan;
}

FRUGAL_INLINE std::string ColorJitter::identity() const {
  return detail::image_transform_text("ColorJitter", 1, brightness, contrast, saturation, hue,
                                      stream);
}

FRUGAL_INLINE at::Tensor ColorJitter::one_by_one(at::Tensor const& images,
                                                 std::vector<Plan> const& plans) const {
  at::Tensor out = at::empty_like(images);
  for (std::size_t b = 0; b < plans.size(); ++b) {
    auto const row = static_cast<std::int64_t>(b);
    at::Tensor image = images.narrow(0, row, 1);
    for (int const change : plans[b].order) {
      if (leaves_out(change)) continue;
      auto const which = static_cast<std::size_t>(change);
      image = changes[which](image, std::span(plans[b].factors).subspan(which, 1));
    }
    out.narrow(0, row, 1).copy_(image);
  }
  return out;
}

FRUGAL_INLINE at::Tensor ColorJitter::changed(at::Tensor const& images,
                                              std::vector<Plan> const& plans, std::size_t turn,
                                              int change) const {
  if (leaves_out(change)) return images;
  std::vector<std::int64_t> rows;
  std::vector<double> factors;
  for (std::size_t b = 0; b < plans.size(); ++b) {
    if (plans[b].order[turn] != change) continue;
    rows.push_back(static_cast<std::int64_t>(b));
    factors.push_back(plans[b].factors[static_cast<std::size_t>(change)]);
  }
  return detail::change_rows(images, rows, [&](at::Tensor const& some) {
    return changes[static_cast<std::size_t>(change)](some, factors);
  });
}

}  // namespace frugal

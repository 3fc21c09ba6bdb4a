// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/labels.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <string>

namespace frugal::detail {

FRUGAL_INLINE std::int64_t count_labels_now(at::Tensor const& labels) {
  if (labels.is_cpu() && labels.scalar_type() == at::kLong) {
    return count_on_host<std::int64_t>(labels, [](auto each) { return each != ignored_label; });
  }
  return labels.ne(ignored_label).sum().item<std::int64_t>();
}

FRUGAL_INLINE std::int64_t count_true_now(at::Tensor const& mask) {
  if (mask.is_cpu()) return count_on_host<bool>(mask, [](bool each) { return each; });
  return mask.sum().item<std::int64_t>();
}

FRUGAL_INLINE void require_label_range(at::Tensor const& labels, std::int64_t most,
                                       char const* objective) {
  if (!labels.is_cpu()) return;
  // A mixture of labels may round to a little more than 1.
  double const low = -0.01, high = static_cast<double>(most) + 0.01;
  auto const inside = [low, high](auto each) {
    auto const value = static_cast<double>(each);
    return value >= low && value <= high;
  };
  std::int64_t const found =
      labels.scalar_type() == at::kLong    ? count_on_host<std::int64_t>(labels, inside)
      : labels.scalar_type() == at::kFloat ? count_on_host<float>(labels, inside)
                                           : count_on_host<double>(labels.to(at::kDouble), inside);
  if (found == labels.numel()) return;
  auto const [least, largest] = labels.to(at::kDouble).aminmax();
  auto const number = [](at::Tensor const& value) {
    std::string text = std::to_string(value.item<double>());
    return text.substr(0, text.find('.') == std::string::npos ? text.size() : text.find('.') + 3);
  };
  throw LabelError({.what = "labels are from " + number(least) + " to " + number(largest),
                    .where = objective,
                    .why = most == 1 ? "they are 0, 1 or a share between them, and -100 is ignored"
                                     : "the output has classes from 0 to " + std::to_string(most) +
                                           ", and -100 is ignored",
                    .fix = "Correct the labels: a mask of 0 and 255 is divided by 255, and a label "
                           "that does not count is -100."});
}

FRUGAL_INLINE bool has_nan_now(at::Tensor const& values) {
  // NaN is the value that differs from itself.
  auto const is_nan = [](auto each) { return each != each; };
  if (values.is_cpu() && values.scalar_type() == at::kFloat) {
    return count_on_host<float>(values, is_nan) != 0;
  }
  if (values.is_cpu() && values.scalar_type() == at::kDouble) {
    return count_on_host<double>(values, is_nan) != 0;
  }
  return values.isnan().any().item<bool>();
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/class_overlap.hpp>

#include <frugal/inline.hpp>

#include <limits>

namespace frugal::detail {

FRUGAL_INLINE void ClassOverlap::add(Decisions const& all, std::string_view metric) {
  table_.require(all.classes, metric);
  Countable const what = countable(all);
  at::Tensor const both = what.weight * what.predicted.eq(what.labels);
  table_.add(at::stack({counted_at(what.labels, both, all.classes),
                        counted_at(what.predicted, what.weight, all.classes),
                        counted_at(what.labels, what.weight, all.classes)}),
             what.outside);
}

FRUGAL_INLINE Metrics ClassOverlap::iou(std::string_view name, std::int64_t without) const {
  return shares(name, true, without);
}

FRUGAL_INLINE Metrics ClassOverlap::dice(std::string_view name, std::int64_t without) const {
  return shares(name, false, without);
}

FRUGAL_INLINE Metrics ClassOverlap::shares(std::string_view name, bool of_union,
                                           std::int64_t without) const {
  Metrics found;
  found.set(name, std::numeric_limits<double>::quiet_NaN());
  at::Tensor const counts = table_.on_host(name);
  if (!counts.defined() || counts[2].sum().item<double>() == 0) return found;
  at::Tensor const both = counts[0];
  at::Tensor const all = counts[1] + counts[2];
  // 0 / 0 is NaN: a class that is nowhere.
  at::Tensor const each = of_union ? both / (all - both) : 2 * both / all;
  if (0 <= without && without < each.size(0)) {
    each.select(0, without).fill_(std::numeric_limits<double>::quiet_NaN());
  }
  found.set(name, each.nanmean().item<double>());
  found.set_table(name, each);
  return found;
}

}  // namespace frugal::detail

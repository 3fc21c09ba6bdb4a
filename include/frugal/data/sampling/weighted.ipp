// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/sampling/weighted.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

#include <cmath>

namespace frugal::detail {

FRUGAL_INLINE void require_weights(std::span<double const> weights, std::string const& name) {
  auto const refuse = [&](std::string what, std::string why) {
    throw SettingsError({.what = std::move(what),
                         .where = name,
                         .why = std::move(why),
                         .fix = "Give each sample a weight of 0 or more, and some more than 0."});
  };
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!std::isfinite(weights[i]) || weights[i] < 0) {
      refuse("the weight of sample " + std::to_string(i) + " is " + detail::general(weights[i], 6),
             "a sample is drawn in proportion to its weight");
    }
    sum += weights[i];
  }
  if (!(sum > 0) || !std::isfinite(sum)) {
    refuse("the weights of the samples add up to " + detail::general(sum, 6),
           "a sample is drawn in proportion to its weight");
  }
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void WeightedPass::seek(Cursor const& cursor) {
  if (cursor.in_order && samples() != table_.size()) {
    throw SettingsError({.what = "weighted draws cannot be read in the order of the data",
                         .where = name_,
                         .why = "an epoch has " + std::to_string(samples()) + " draws of " +
                                std::to_string(table_.size()) + " samples",
                         .fix = "Give a source of the set itself, without the draws."});
  }
  pass_.seek(cursor);
  cursor_ = cursor;
}

FRUGAL_INLINE void WeightedPass::identify(DataIdentity& to) const {
  pass_.identify(to, "WeightedPass", true);
  to.add("weights", std::to_string(table_.size()) + ", hash " + hex_of(weights_hash_));
}

FRUGAL_INLINE LoaderOptions WeightedPass::unshuffled(LoaderOptions loading) {
  loading.shuffle = false;
  return loading;
}

}  // namespace frugal

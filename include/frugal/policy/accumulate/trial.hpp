// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include <frugal/data/batch.hpp>
#include <frugal/data/source.hpp>

namespace frugal::detail {

/// Of the next few batches of a source the one with most tokens: it needs most memory. Nothing
/// where the source has none.
template <class Train>
std::optional<batch_of<Train>> largest_batch(Train& source, std::size_t look) {
  using Batch = batch_of<Train>;
  std::optional<Batch> largest;
  for (std::size_t i = 0; i < look; ++i) {
    auto batch = source.next();
    if (!batch) break;
    if (!largest || batch_tokens(*batch) > batch_tokens(*largest)) {
      largest.emplace(*std::move(batch));
    }
  }
  return largest;
}

}  // namespace frugal::detail

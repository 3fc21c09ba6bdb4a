// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include <frugal/data/batch.hpp>
#include <frugal/data/source.hpp>

namespace frugal::detail {

/// The batch with the most tokens among the next few of a source: it needs the most memory. Nothing
/// if the source has none.
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

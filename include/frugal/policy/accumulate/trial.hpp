// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/labels.hpp>
#include <frugal/core/source/source.hpp>

namespace frugal::detail {

/// How much memory a step of the batch needs, compared with others: its tokens, and of a batch that
/// counts them padding as well.
template <class B>
std::int64_t memory_of(B const& batch) {
  if constexpr (CountsLabels<B> && ShowsTensors<B>) {
    std::int64_t elements = 0;
    batch_tensors(batch, [&](at::Tensor const& tensor) { elements += tensor.numel(); });
    return elements;
  } else {
    return batch_tokens(batch);
  }
}

/// The batch with the most tokens among the next few of a source: it needs the most memory. Nothing
/// if the source has none.
template <class Train>
std::optional<batch_of<Train>> largest_batch(Train& source, std::size_t look) {
  using Batch = batch_of<Train>;
  std::optional<Batch> largest;
  for (std::size_t i = 0; i < look; ++i) {
    auto batch = source.next();
    if (!batch) break;
    if (!largest || memory_of(*batch) > memory_of(*largest)) {
      largest.emplace(*std::move(batch));
    }
  }
  return largest;
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include <frugal/core/compose/diagnostic.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal {

/// Option of Replicate<Ring>: BatchNorm layers in training use the mean and the variance over the
/// micro-batches that the processes train at the same time, as torch.nn.SyncBatchNorm does.
struct SyncBatchNorm;

namespace detail {

struct sync_batch_norm_option {
  template <class O>
  static constexpr bool has = std::is_same_v<O, SyncBatchNorm>;
};

FRUGAL_DIAGNOSTIC(
    sync_batch_norm_and_recompute,
    "frugal: Recompute calls layers a second time in the backward pass, and SyncBatchNorm "
    "exchanges "
    "statistics in each call, which a process without a micro-batch would count twice. Remove one "
    "of them.");

using SyncBatchNormConflicts = list<conflict<kinds::recompute, sync_batch_norm_and_recompute>>;

}  // namespace detail
}  // namespace frugal

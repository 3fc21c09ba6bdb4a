// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace frugal {

/// Option of Replicate and of Pipeline: gradients are added up in one fixed order, whatever the number of
/// processes that share a window's micro-batches.
struct Exact;

}  // namespace frugal

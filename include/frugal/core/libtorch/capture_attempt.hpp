// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include <frugal/core/libtorch/quietly.hpp>

namespace frugal::detail {

/// Captures what `body` submits to the device. A failure leaves nothing behind.
///
/// `Graph` begins and ends a capture, through LibTorch. `Pools` is the memory of a step's captures:
///
/// `pools.free_cached()`  returns cached memory to the device, which is impossible within a capture
/// `pools.uses()`         the number of captures that hold the pool
/// `pools.end()`          stops allocating from the pool
/// `pools.release()`      drops one capture's hold on the pool
///
/// A capture fails in its body, at its end, or before it has begun. LibTorch 2.11 never releases
/// the pool of a capture that failed at its end. It does release that of a completed capture, and
/// in later versions of any, when the graph is destroyed.
template <class Graph, class Pools, class Body>
std::unique_ptr<Graph> attempt_capture(std::unique_ptr<Graph> graph, Pools&& pools, Body&& body) {
  pools.free_cached();
  int const uses = pools.uses();
  try {
    graph->begin();
    body();
    graph->end();
    return graph;
  } catch (...) {
    quietly([&] { graph->end(); });
    graph.reset();
    pools.end();
    if (pools.uses() > uses) pools.release();
    throw;
  }
}

}  // namespace frugal::detail

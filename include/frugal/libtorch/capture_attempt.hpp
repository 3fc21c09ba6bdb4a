// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include <frugal/libtorch/quietly.hpp>

namespace frugal::detail {

/// Captures what `body` gives to the device, or leaves nothing behind.
///
/// `Graph` begins and ends a capture: LibTorch's. `Pools` is the memory of the captures of a step:
///
/// `pools.free_cached()`  gives back to the device what is cached: within a capture nothing is
/// `pools.uses()`         how many captures hold the pool
/// `pools.end()`          no more of what is allocated goes into it
/// `pools.release()`      one capture less holds it
///
/// A capture fails in its body, at its end, or before it has begun. LibTorch 2.11 leaves the pool
/// of one that failed at its end in use for ever; of one that has ended, and in later versions of
/// any, it takes care itself, when the graph goes.
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

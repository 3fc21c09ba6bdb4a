// SPDX-License-Identifier: Apache-2.0
// p processes, v stages of each (chunks), m micro-batches of a step. Stage s of the p v stages is
// chunk s / p of rank s % p.
#pragma once

#include <cstddef>
#include <vector>

namespace frugal {

/// Option of Pipeline: each process has one stage, and from the first backward pass on alternates
/// between forward and backward (1F1B). Rank r keeps the activations of min(m, p - r) micro-batches.
///
/// Source  PipeDream-Flush of Narayanan et al., "Memory-efficient pipeline-parallel DNN training"
///         (2021).
struct OneForwardOneBackward {
  static constexpr int chunks = 1;
};

/// Option of Pipeline: each process has V stages, each 1/V as long, so that it waits 1/V as long for
/// its first micro-batch. Sends V times as many activations, and keeps more of them.
///
/// Source  Narayanan et al., "Efficient large-scale language model training on GPU clusters using
///         Megatron-LM" (2021), section 2.2.
template <int V>
struct Interleaved {
  static_assert(V >= 2,
                "frugal: Interleaved<V> gives each process V stages. Write Interleaved<2>, or "
                "OneForwardOneBackward for one.");
  static constexpr int chunks = V;
};

/// One pass of a rank: forward or backward, of one micro-batch through one of its stages.
struct PipelineAction {
  bool is_forward = true;
  int chunk = 0;
  int micro_batch = 0;
  friend bool operator==(PipelineAction const&, PipelineAction const&) = default;
};

/// What a rank does in a step, in this order. In it a forward pass through the last stage is followed
/// by the backward pass of the same micro-batch.
///
/// With several chunks micro-batches go in groups of p. Where p does not divide m, the last group has
/// fewer, and the processes wait longer than pipeline_bubble() says.
std::vector<PipelineAction> pipeline_order(int rank, int ranks, int micro_batches, int chunks);

/// The part of a step in which a process waits, if all stages take equally long and messages no time:
/// (p - 1) / (v m + p - 1). With several chunks for an m that p divides.
inline double pipeline_bubble(int ranks, int micro_batches, int chunks) {
  return static_cast<double>(ranks - 1) / (chunks * micro_batches + ranks - 1);
}

/// How a step goes by, computed.
struct PipelineTimeline {
  struct Slot {
    PipelineAction action{};
    double begin = 0;
    double end = 0;
  };
  /// Of each rank, in its order.
  std::vector<std::vector<Slot>> slots{};
  /// Of each rank: the most micro-batches, times chunks, whose activations it keeps at one time.
  std::vector<int> most_live{};
  /// Whether every pass comes about. Otherwise ranks wait for each other in a circle.
  bool completes = false;
  double span = 0;  ///< end of the last pass

  /// The part of the span in which a rank does nothing.
  double idle(std::size_t rank) const {
    double busy = 0;
    for (Slot const& each : slots[rank]) busy += each.end - each.begin;
    return span == 0 ? 0 : 1 - busy / span;
  }
};

/// The timeline of orders, one of each rank, whose chunks all take `forward` and `backward`. A message
/// to another rank takes `message`, during which both go on.
PipelineTimeline pipeline_timeline(std::vector<std::vector<PipelineAction>> const& orders,
                                   int chunks, double forward = 1, double backward = 2,
                                   double message = 0);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/pipeline/schedule.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/pipeline/schedule.hpp>

#include <frugal/inline.hpp>

#include <algorithm>

namespace frugal::detail {

/// Pass number `index` of all forward or all backward passes of a rank: p micro-batches through its
/// first chunk, the same through its next one, and so on; backward passes from its last chunk on.
FRUGAL_INLINE PipelineAction pipeline_pass(bool is_forward, int index, int ranks, int chunks) {
  int const group = index / (ranks * chunks);
  int const within = index % (ranks * chunks);
  int const chunk = within / ranks;
  return {.is_forward = is_forward,
          .chunk = is_forward ? chunk : chunks - 1 - chunk,
          .micro_batch = group * ranks + within % ranks};
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::vector<PipelineAction> pipeline_order(int rank, int ranks, int micro_batches,
                                                         int chunks) {
  // Leaving passes out of a complete order keeps it free of deadlocks: a pass needs others of the
  // same micro-batch alone.
  int const groups = (micro_batches + ranks - 1) / ranks;
  int const whole = chunks == 1 ? micro_batches : groups * ranks;
  int const all = whole * chunks;
  int const warm_up =
      std::min(all, chunks == 1 ? ranks - rank - 1 : (ranks - rank - 1) * 2 + (chunks - 1) * ranks);
  std::vector<PipelineAction> order;
  auto const add = [&](bool is_forward, int index) {
    PipelineAction const one = detail::pipeline_pass(is_forward, index, ranks, chunks);
    if (one.micro_batch < micro_batches) order.push_back(one);
  };
  for (int i = 0; i < warm_up; ++i) add(true, i);
  for (int i = warm_up; i < all; ++i) {
    add(true, i);
    add(false, i - warm_up);
  }
  for (int i = all - warm_up; i < all; ++i) add(false, i);
  return order;
}

FRUGAL_INLINE PipelineTimeline
pipeline_timeline(std::vector<std::vector<PipelineAction>> const& orders, int chunks,
                  double forward, double backward, double message) {
  constexpr double not_yet = -1;
  auto const ranks = static_cast<int>(orders.size());
  int const stages = ranks * chunks;
  int micro_batches = 0;
  for (auto const& order : orders) {
    for (PipelineAction const& each : order)
      micro_batches = std::max(micro_batches, each.micro_batch + 1);
  }
  auto const cells = static_cast<std::size_t>(stages * micro_batches);
  std::vector<double> forward_end(cells, not_yet), backward_end(cells, not_yet);
  auto const cell = [&](int stage, int micro_batch) {
    return static_cast<std::size_t>(stage * micro_batches + micro_batch);
  };
  /// When the input of a pass is there; negative if it is not known yet.
  auto const input_of = [&](PipelineAction const& action, int stage) {
    if (action.is_forward) {
      if (stage == 0) return 0.0;
      double const end = forward_end[cell(stage - 1, action.micro_batch)];
      return end == not_yet || ranks == 1 ? end : end + message;
    }
    double const own = forward_end[cell(stage, action.micro_batch)];
    if (stage == stages - 1 || own == not_yet) return own;
    double const end = backward_end[cell(stage + 1, action.micro_batch)];
    return end == not_yet || ranks == 1 ? end : end + message;
  };

  PipelineTimeline line;
  line.slots.resize(orders.size());
  line.most_live.resize(orders.size());
  std::vector<double> free_at(orders.size());
  std::vector<int> live(orders.size());
  for (bool moves = true; moves;) {
    moves = false;
    for (std::size_t rank = 0; rank < orders.size(); ++rank) {
      auto& done = line.slots[rank];
      while (done.size() < orders[rank].size()) {
        PipelineAction const& action = orders[rank][done.size()];
        int const stage = action.chunk * ranks + static_cast<int>(rank);
        double const input = input_of(action, stage);
        if (input < 0) break;
        double const begin = std::max(free_at[rank], input);
        double const end = begin + (action.is_forward ? forward : backward);
        auto& ends = action.is_forward ? forward_end : backward_end;
        ends[cell(stage, action.micro_batch)] = end;
        free_at[rank] = end;
        done.push_back({action, begin, end});
        live[rank] += action.is_forward ? 1 : -1;
        line.most_live[rank] = std::max(line.most_live[rank], live[rank]);
        line.span = std::max(line.span, end);
        moves = true;
      }
    }
  }
  line.completes = true;
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    line.completes = line.completes && line.slots[rank].size() == orders[rank].size();
  }
  return line;
}

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <frugal/data/source.hpp>
#include <frugal/data/batch.hpp>
#include <frugal/libtorch/host_meter.hpp>
#include <frugal/state/memory.hpp>
#include <frugal/state/memory_reader.hpp>
#include <frugal/state/memory_writer.hpp>
#include <frugal/loop/rewind.hpp>
#include <frugal/loop/run.hpp>

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
    if (!largest || batch_traits<Batch>::tokens(*batch) > batch_traits<Batch>::tokens(*largest)) {
      largest.emplace(*std::move(batch));
    }
  }
  return largest;
}

/// Steps may be made and leave no trace: puts back the module, the generators, the states of the
/// slots and what the run keeps of its last step.
template <class Context>
class TrialRewind {
 public:
  explicit TrialRewind(Run<Context>& run)
      : run_(run), began_(HostMeter::live()), rewind_(run.root, run.device) {
    MemoryWriter writer(slots_, Copies::on_host);
    run_.engine->persist_slots(writer);
    writer.settle();
    if (!run.device.is_cpu()) {
      c10::impl::VirtualGuardImpl const guard(run.device.type());
      guard.getStream(run.device).synchronize();
    }
    held_ = HostMeter::live() - began_;
  }
  TrialRewind(TrialRewind const&) = delete;
  TrialRewind& operator=(TrialRewind const&) = delete;
  ~TrialRewind() { put_back(); }

  /// All but the module and the generators, which are put back at the end.
  void put_back() {
    MemoryReader reader(slots_);
    run_.engine->persist_slots(reader);
    run_.gradients.clear();
    run_.parameters.reset_gradients();
    run_.gradient_norm = norm_;
    run_.overflow = {};
    run_.window_loss = at::Tensor();
  }
  /// Bytes of host memory that this holds.
  std::int64_t held() const { return held_; }

 private:
  Run<Context>& run_;
  GradientNorm norm_ = run_.gradient_norm;
  std::int64_t began_;
  std::int64_t held_ = 0;
  Rewind rewind_;
  Memory slots_;
};

}  // namespace frugal::detail

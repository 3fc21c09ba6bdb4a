// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <vector>

namespace frugal::detail {

/// Whether the device can overlap copies with compute. On other devices the loop copies
/// synchronously.
inline bool overlaps_copies(c10::Device device) {
  return device.is_cuda() || device.is_hip() || device.is_xpu() || device.is_privateuseone();
}

/// Page-locked memory through which batches go to a device: only from such memory does the device
/// copy asynchronously. Slots are used in turn, and their memory is reused.
///
///     std::size_t const slot = staging.open();       // waits for the copy that used it last
///     there.copy_(staging.locked(here), /*non_blocking=*/true);
///     staging.close(stream);                         // of the copies
class Staging {
 public:
  Staging(c10::DeviceType type, std::size_t slots) {
    slots_.reserve(slots);
    for (std::size_t i = 0; i < slots; ++i) slots_.emplace_back(type);
  }
  Staging(Staging const&) = delete;
  Staging& operator=(Staging const&) = delete;
  ~Staging() {
    try {
      // Memory that is still read from must not be freed.
      for (Slot const& slot : slots_) slot.copied.synchronize();
    } catch (c10::Error const&) {  // the device has failed; the next wait on it reports that
    }
  }

  std::size_t open();

  /// The host tensor in page-locked memory: the tensor itself if it is page-locked already, which
  /// is then kept until the slot's next turn.
  at::Tensor locked(at::Tensor const& tensor);

  void close(c10::Stream const& stream) { slots_[now_].copied.record(stream); }

  /// Makes a stream wait for the copies of a slot; the host does not wait.
  void let_wait(c10::Stream const& stream, std::size_t slot) const {
    slots_[slot].copied.block(stream);
  }

 private:
  struct Slot {
    explicit Slot(c10::DeviceType type) : copied(type) {}
    c10::Event copied;
    std::vector<at::Tensor> kept{};      // owned buffers that copies read from
    std::vector<at::Tensor> borrowed{};  // tensors that were page-locked already
    std::size_t used = 0;
  };

  std::vector<Slot> slots_;
  std::size_t now_ = 0;
  std::size_t next_ = 0;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/staging.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <vector>

#include <frugal/core/libtorch/staging.hpp>
#include <frugal/core/source/batch.hpp>

namespace frugal::detail {

/// Device memory of a batch. It is reused for a later batch, ordered after all work that the
/// computing stream received while the batch was held.
class Room {
 public:
  explicit Room(c10::DeviceType type) : used_(type) {}

  /// Memory for a tensor with the layout of `like`, which is contiguous.
  at::Tensor take(at::Tensor const& like, c10::Device device);

  void hand_out() { is_out_ = true; }

  /// Checks whether the batch was released. If so, the pending work of `computes` is its last use.
  void look_whether_free(c10::Stream const& computes);

  /// Prepares it for the next batch, which `copies` will copy.
  void empty_it(c10::impl::VirtualGuardImpl const& guard, c10::Stream const& computes,
                c10::Stream const& copies);

 private:
  bool is_ours_alone() const;

  std::vector<at::Tensor> memory_;
  std::size_t taken_ = 0;
  c10::Event used_;
  bool is_out_ = false;
  bool is_used_ = false;
};

/// Copies host batches to a device on a side stream, through reused memory.
///
/// Uses LibTorch's generic streams, events and allocators: CUDA's if that is the device.
class SideStream {
 public:
  /// `depth`: batches on the device at a time. There is memory for one more, so that a copy need
  /// not wait for the current step.
  SideStream(c10::Device device, std::size_t depth)
      : device_(device),
        guard_(device.type()),
        stream_(guard_.getStreamFromGlobalPool(device, /*isHighPriority=*/false)),
        staging_(device.type(), depth + 1) {
    rooms_.reserve(depth + 1);
    for (std::size_t i = 0; i <= depth; ++i) rooms_.emplace_back(device.type());
  }
  SideStream(SideStream const&) = delete;
  SideStream& operator=(SideStream const&) = delete;
  ~SideStream() {
    try {
      for (Room& room : rooms_) room.empty_it(guard_, computes(), stream_);
    } catch (c10::Error const&) {  // the device has failed; the next wait on it reports that
    }
  }

  c10::Device device() const { return device_; }

  /// Starts copying a batch, and returns the number of its slot.
  template <class B>
  std::size_t begin(B& batch) {
    std::size_t const turn = staging_.open();
    Room& room = rooms_[turn];
    room.empty_it(guard_, computes(), stream_);
    c10::StreamGuard const on_side(stream_);
    batch_tensors(batch, [&](at::Tensor& tensor) {
      if (!tensor.defined() || !tensor.is_cpu()) return;
      at::Tensor const host = staging_.locked(tensor);
      tensor = room.take(host, device_).copy_(host, /*non_blocking=*/true);
    });
    staging_.close(stream_);
    return turn;
  }

  /// Makes the computing stream wait for a batch; the host does not wait.
  void finish(std::size_t turn);

  /// Call before fetching the next batch: released batches are free after the device's pending
  /// work.
  void look_for_free_rooms() {
    for (Room& room : rooms_) room.look_whether_free(computes());
  }

 private:
  c10::Stream computes() const { return guard_.getStream(device_); }

  c10::Device device_;
  c10::impl::VirtualGuardImpl guard_;
  c10::Stream stream_;
  Staging staging_;
  std::vector<Room> rooms_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/side_stream.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <vector>

#include <frugal/data/batch.hpp>
#include <frugal/libtorch/staging.hpp>

namespace frugal::detail {

/// Where a batch lies on the device. Its memory is used again for a later batch, behind all that
/// the stream which computes was given while somebody held the batch.
class Room {
 public:
  explicit Room(c10::DeviceType type) : used_(type) {}

  /// Memory for a tensor that lies as `like` does, which has no gaps.
  at::Tensor take(at::Tensor const& like, c10::Device device) {
    if (memory_.size() <= taken_) memory_.resize(taken_ + 1);
    at::Tensor& room = memory_[taken_++];
    bool const fits =
        room.defined() && room.scalar_type() == like.scalar_type() && room.numel() >= like.numel();
    auto const options = like.options().device(device).pinned_memory(false);
    // What is there is the side stream's, and goes back to it.
    if (!fits) room = at::empty({like.numel()}, options);
    return at::empty({0}, options).set_(room.storage(), 0, like.sizes(), like.strides());
  }

  void hand_out() { is_out_ = true; }

  /// Has the batch been let go of? What `computes` has to do until now is the last of it.
  void look_whether_free(c10::Stream const& computes) {
    if (!is_out_ || !is_ours_alone()) return;
    used_.record(computes);
    is_out_ = false;
    is_used_ = true;
  }

  /// Makes it ready for the next batch, whose copies `copies` is going to make.
  void empty_it(c10::impl::VirtualGuardImpl const& guard, c10::Stream const& computes,
                c10::Stream const& copies) {
    look_whether_free(computes);
    if (is_out_) {
      // Somebody keeps the batch. The allocator knows the stream that copies alone: told of the
      // other, it waits for that before it gives the memory to another copy.
      for (at::Tensor const& each : memory_) {
        guard.recordDataPtrOnStream(each.storage().data_ptr(), computes);
      }
      memory_.clear();
    }
    if (is_used_) used_.block(copies);
    is_out_ = is_used_ = false;
    taken_ = 0;
  }

 private:
  bool is_ours_alone() const {
    for (at::Tensor const& each : memory_) {
      if (each.storage().use_count() > 1) return false;
    }
    return true;
  }

  std::vector<at::Tensor> memory_;
  std::size_t taken_ = 0;
  c10::Event used_;
  bool is_out_ = false;
  bool is_used_ = false;
};

/// Copies batches of the host to a device on a stream of their own, through memory that stays.
///
/// LibTorch's streams, events and allocators of any device: CUDA's where that is the device.
class SideStream {
 public:
  /// `depth`: batches on the device at a time. One more has room, so that a copy need not wait for
  /// the step that is computed.
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
    } catch (c10::Error const&) {  // a device that has failed; whoever waits for it next says so
    }
  }

  c10::Device device() const { return device_; }

  /// Begins to copy a batch, and returns the number of the slot that it goes through.
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

  /// Lets the stream that computes go on with a batch once it is there; the host does not wait.
  void finish(std::size_t turn) {
    staging_.let_wait(computes(), turn);
    rooms_[turn].hand_out();
  }

  /// Before the next batch is asked for: those that have been let go of are done with what the
  /// device has been given until now.
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

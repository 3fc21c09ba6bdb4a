// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include <frugal/data/source.hpp>
#include <frugal/loop/batch.hpp>

namespace frugal {

namespace detail {

/// Devices whose copies can overlap with what they compute. On others the loop copies as it goes.
inline bool overlaps_copies(c10::Device device) {
  return device.is_cuda() || device.is_hip() || device.is_xpu() || device.is_privateuseone();
}

/// Copies tensors of the host to a device on a stream of their own, through page-locked memory that
/// is used again.
///
/// LibTorch's streams, events and allocators of any device: CUDA's where that is the device.
class SideStream {
 public:
  SideStream(c10::Device device, std::size_t slots)
      : device_(device),
        guard_(device.type()),
        stream_(guard_.getStreamFromGlobalPool(device, /*isHighPriority=*/false)) {
    slots_.reserve(slots);
    for (std::size_t i = 0; i < slots; ++i) slots_.emplace_back(device.type());
  }
  SideStream(SideStream const&) = delete;
  SideStream& operator=(SideStream const&) = delete;
  ~SideStream() {
    try {
      // Memory that is still read from is not given back.
      for (Slot const& slot : slots_) slot.copied.synchronize();
    } catch (c10::Error const&) {  // a device that has failed; whoever waits for it next says so
    }
  }

  c10::Device device() const { return device_; }

  /// Begins to copy a batch, and returns the number of the slot that it goes through.
  template <class B>
  std::size_t begin(B& batch) {
    std::size_t const turn = std::exchange(turn_, (turn_ + 1) % slots_.size());
    Slot& slot = slots_[turn];
    // The copy that went through this slot before it still reads the slot's memory.
    slot.copied.synchronize();
    slot.borrowed.clear();
    std::size_t at = 0;
    // What is allocated here belongs to the side stream, whose order makes it safe to write at
    // once.
    c10::StreamGuard const on_side(stream_);
    batch_traits<B>::each_tensor(batch, [&](at::Tensor& tensor) {
      if (!tensor.defined() || !tensor.is_cpu()) return;
      at::Tensor const host = locked(tensor, slot, at++);
      tensor = at::empty_like(host, at::TensorOptions().device(device_).pinned_memory(false),
                              at::MemoryFormat::Preserve)
                   .copy_(host, /*non_blocking=*/true);
    });
    slot.copied.record(stream_);
    return turn;
  }

  /// Lets the stream that computes go on with a batch once it is there; the host does not wait.
  template <class B>
  void finish(B& batch, std::size_t turn) {
    c10::Stream const computes = guard_.getStream(device_);
    slots_[turn].copied.block(computes);
    batch_traits<B>::each_tensor(batch, [&](at::Tensor& tensor) {
      if (!tensor.defined() || tensor.device().type() != device_.type()) return;
      // The allocator knows the side stream alone. Told of this one, it does not give the memory to
      // the next copy while a kernel still reads it.
      guard_.recordDataPtrOnStream(tensor.storage().data_ptr(), computes);
    });
  }

 private:
  struct Slot {
    explicit Slot(c10::DeviceType type) : copied(type) {}
    c10::Event copied;
    std::vector<at::Tensor> locked{};    // memory of its own that copies read from
    std::vector<at::Tensor> borrowed{};  // tensors of the source that were page-locked already
  };

  /// The tensor in page-locked memory, which alone is copied while the host goes on.
  static at::Tensor locked(at::Tensor const& tensor, Slot& slot, std::size_t at) {
    if (tensor.is_pinned()) return slot.borrowed.emplace_back(tensor);
    if (slot.locked.size() <= at) slot.locked.resize(at + 1);
    at::Tensor& kept = slot.locked[at];
    bool const fits = kept.defined() && kept.scalar_type() == tensor.scalar_type() &&
                      kept.sizes() == tensor.sizes() && kept.strides() == tensor.strides();
    if (!fits) {
      kept = at::empty_like(tensor, at::TensorOptions().pinned_memory(true),
                            at::MemoryFormat::Preserve);
    }
    return kept.copy_(tensor);
  }

  c10::Device device_;
  c10::impl::VirtualGuardImpl guard_;
  c10::Stream stream_;
  std::vector<Slot> slots_;
  std::size_t turn_ = 0;
};

}  // namespace detail

/// A source whose batches are copied to the device while the one before is computed with.
///
/// Lever   idle device: a copy costs the step nothing.
/// Cost    `depth` batches of device memory and of page-locked memory, one copy more on the host
///         (none where a batch is page-locked already). On the CPU one comparison.
/// Cursor  copied is not consumed: `seek()` throws away what was copied ahead, and a source that
///         throws is heard of at the batch where it threw.
///
/// The source is read one batch ahead or more. One that draws from LibTorch's generators draws
/// earlier than the run does, and a run resumed from a checkpoint would not repeat it: give such a
/// source a generator of its own.
template <Source S>
class Placed {
 public:
  using batch_type = batch_of<S>;
  static_assert(
      requires(batch_type& batch) {
        batch_traits<batch_type>::each_tensor(batch, [](at::Tensor&) {});
      },
      "frugal: Device copies the tensors of a batch, and has to be shown them. Give "
      "batch_traits<YourBatch> a static each_tensor(batch, show) that calls show(tensor) for each, "
      "or take Device out.");

  /// `depth`: batches on the device at a time, that which is computed with among them. The source
  /// is referred to and has to outlive this.
  Placed(S& source, std::size_t depth) : source_(source), depth_(depth) {}

  /// Where batches go, looked at again at each of them: a run may move.
  void follow(c10::Device const& device) { device_ = &device; }

  void seek(Cursor const& cursor) {
    waiting_.clear();
    failure_ = nullptr;
    ended_ = false;
    source_.seek(cursor);
  }

  std::optional<batch_type> next() {
    bool const ahead = device_ != nullptr && detail::overlaps_copies(*device_);
    if (!ahead && waiting_.empty()) {
      auto&& batch = source_.next();
      if (!batch) return std::nullopt;
      return std::optional<batch_type>(*std::forward<decltype(batch)>(batch));
    }
    if (waiting_.empty()) copy_one();
    if (waiting_.empty()) {
      if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
      return std::nullopt;
    }
    std::optional<batch_type> batch(std::move(waiting_.front().batch));
    side_->finish(*batch, waiting_.front().turn);
    waiting_.pop_front();
    // The host is ahead of the device: what it copies now is copied while the last step computes.
    while (ahead && waiting_.size() + 1 < depth_ && !ended_ && !failure_) copy_one();
    return batch;
  }

  /// Copies that are under way go on: they are on a stream of their own.
  bool pause()
    requires PausableSource<S>
  {
    return source_.pause();
  }
  void resume()
    requires PausableSource<S>
  {
    source_.resume();
  }

  std::uint64_t samples() const
    requires SizedSource<S>
  {
    return static_cast<std::uint64_t>(std::as_const(source_).samples());
  }
  std::uint64_t batches() const
    requires SizedSource<S>
  {
    return static_cast<std::uint64_t>(std::as_const(source_).batches());
  }

 private:
  struct Copied {
    batch_type batch;
    std::size_t turn;
  };

  void copy_one() {
    if (ended_) return;
    try {
      auto&& next = source_.next();
      if (!next) {
        ended_ = true;
        return;
      }
      batch_type batch(*std::forward<decltype(next)>(next));
      if (!side_ || side_->device() != *device_) side_.emplace(*device_, depth_);
      std::size_t const turn = side_->begin(batch);
      waiting_.push_back({std::move(batch), turn});
    } catch (...) {
      failure_ = std::current_exception();  // heard of when the batches before it are used up
    }
  }

  S& source_;
  std::size_t depth_;
  c10::Device const* device_ = nullptr;
  std::optional<detail::SideStream> side_;
  std::deque<Copied> waiting_;  // after side_: what is copied goes before its stream does
  std::exception_ptr failure_;
  bool ended_ = false;
};

}  // namespace frugal

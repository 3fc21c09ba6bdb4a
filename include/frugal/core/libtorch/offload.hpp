// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/Storage.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstddef>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <frugal/inline.hpp>

namespace frugal::detail {

class OffloadStream;

/// A tensor's elements in host memory.
struct Offloaded {
  Offloaded() = default;
  Offloaded(Offloaded const&) = delete;
  Offloaded& operator=(Offloaded const&) = delete;
  inline ~Offloaded();

  at::Tensor host{};
  std::shared_ptr<OffloadStream> stream{};  ///< null if copies are synchronous
  std::size_t number = 0;                   ///< index within its forward pass
  at::Tensor back{};                        ///< the prefetched tensor on the device
  std::optional<c10::Event> arrived{};
};

/// Offloads saved tensors to host memory and fetches them back on a side stream, overlapping with
/// compute.
///
/// All device memory belongs to the computing stream, which waits for the copies: so it can be
/// reused as soon as it is released, however far the host is ahead. Backward needs tensors in the
/// reverse of the order in which they were saved: each fetch prefetches the one before it.
class OffloadStream : public std::enable_shared_from_this<OffloadStream> {
 public:
  explicit OffloadStream(c10::Device device)
      : device_(device),
        guard_(device.type()),
        stream_(guard_.getStreamFromGlobalPool(device, /*isHighPriority=*/false)),
        ready_(device.type()) {}

  /// Begins a forward pass.
  FRUGAL_INLINE void begin() {
    std::scoped_lock const lock(mutex_);
    wait_for_departures(0);
    saved_.clear();
  }

  FRUGAL_INLINE std::shared_ptr<Offloaded> take(at::Tensor const& elements) {
    std::scoped_lock const lock(mutex_);
    auto made = std::make_shared<Offloaded>();
    made->stream = shared_from_this();
    made->number = saved_.size();
    saved_.push_back(made);
    made->host =
        at::empty(elements.sizes(), elements.options().device(at::kCPU).pinned_memory(true));
    departing_.push_back({elements.storage(), c10::Event(device_.type())});
    copy(made->host, elements, departing_.back().copied);
    wait_for_departures(at_a_time);
    return made;
  }

  /// `again`: the tensor will be fetched again.
  FRUGAL_INLINE at::Tensor give_back(Offloaded& what, bool again) {
    // Destroyed after the lock: the last owner takes the lock to drop it.
    std::shared_ptr<Offloaded> before;
    std::scoped_lock const lock(mutex_);
    wait_for_departures(0);
    send_for(what);
    what.arrived->block(computes());
    at::Tensor back = what.back;
    if (!again) what.back.reset();
    if (what.number > 0 && what.number < saved_.size()) before = saved_[what.number - 1].lock();
    if (before) send_for(*before);
    return back;
  }

  /// Drops a prefetched tensor that is no longer needed.
  FRUGAL_INLINE void drop(Offloaded& what) {
    std::scoped_lock const lock(mutex_);
    what.arrived->block(computes());
    what.back.reset();
  }

 private:
  /// Copies that the computing stream may be ahead of.
  static constexpr std::size_t at_a_time = 2;

  struct Departure {
    c10::Storage memory;  // not the tensor, whose graph may refer back to this
    c10::Event copied;
  };

  c10::Stream computes() const { return guard_.getStream(device_); }

  /// Copies after all work that the computing stream has so far.
  FRUGAL_INLINE void copy(at::Tensor const& to, at::Tensor const& from, c10::Event& done) {
    ready_.record(computes());
    ready_.block(stream_);
    c10::StreamGuard const on_side(stream_);
    to.copy_(from, /*non_blocking=*/true);
    done.record(stream_);
  }

  FRUGAL_INLINE void wait_for_departures(std::size_t but) {
    while (departing_.size() > but) {
      departing_.front().copied.block(computes());
      departing_.pop_front();
    }
  }

  FRUGAL_INLINE void send_for(Offloaded& what) {
    if (what.back.defined()) return;
    what.back =
        at::empty(what.host.sizes(), what.host.options().device(device_).pinned_memory(false));
    if (!what.arrived) what.arrived.emplace(device_.type());
    copy(what.back, what.host, *what.arrived);
  }

  c10::Device device_;
  c10::impl::VirtualGuardImpl guard_;
  c10::Stream stream_;
  c10::Event ready_;
  std::mutex mutex_;  // backward runs in its own thread
  std::vector<std::weak_ptr<Offloaded>> saved_;
  std::deque<Departure> departing_;
};

Offloaded::~Offloaded() {
  try {
    if (stream && back.defined()) stream->drop(*this);
  } catch (std::exception const&) {  // the device has failed; the next wait on it reports that
  }
}

/// Storage of saved tensors for Activations<Offload>.
class ToHost {
 public:
  using Packed = Offloaded;

  ToHost() = default;
  explicit ToHost(std::shared_ptr<OffloadStream> stream) : stream_(std::move(stream)) {
    if (stream_) stream_->begin();
  }

  /// Whether a tensor is offloaded. On a device, smaller ones are not worth two transfers.
  FRUGAL_INLINE static bool takes(at::Tensor const& tensor) {
    constexpr std::size_t least = std::size_t{256} << 10;  // bytes
    return tensor.is_floating_point() && (tensor.is_cpu() || tensor.nbytes() >= least);
  }
  FRUGAL_INLINE std::shared_ptr<Packed> pack(at::Tensor const& elements) const {
    if (stream_) return stream_->take(elements);
    auto made = std::make_shared<Packed>();
    made->host = at::empty(elements.sizes(), elements.options().device(at::kCPU)).copy_(elements);
    return made;
  }
  FRUGAL_INLINE static at::Tensor unpack(std::shared_ptr<Packed> const& packed,
                                         at::TensorOptions const& as) {
    if (!packed->stream) return packed->host.to(as.device());
    return packed->stream->give_back(*packed, packed.use_count() > 1);
  }

 private:
  std::shared_ptr<OffloadStream> stream_;
};

}  // namespace frugal::detail

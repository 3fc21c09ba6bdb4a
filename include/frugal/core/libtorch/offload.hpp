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
  void begin();

  std::shared_ptr<Offloaded> take(at::Tensor const& elements);

  /// `again`: the tensor will be fetched again.
  at::Tensor give_back(Offloaded& what, bool again);

  /// Drops a prefetched tensor that is no longer needed.
  void drop(Offloaded& what);

 private:
  /// Copies that the computing stream may be ahead of.
  static constexpr std::size_t at_a_time = 2;

  struct Departure {
    c10::Storage memory;  // not the tensor, whose graph may refer back to this
    c10::Event copied;
  };

  c10::Stream computes() const { return guard_.getStream(device_); }

  /// Copies after all work that the computing stream has so far.
  void copy(at::Tensor const& to, at::Tensor const& from, c10::Event& done);

  void wait_for_departures(std::size_t but);

  void send_for(Offloaded& what);

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
  static bool takes(at::Tensor const& tensor);
  std::shared_ptr<Packed> pack(at::Tensor const& elements) const;
  static at::Tensor unpack(std::shared_ptr<Packed> const& packed, at::TensorOptions const& as);

 private:
  std::shared_ptr<OffloadStream> stream_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/libtorch/offload.ipp>
#endif

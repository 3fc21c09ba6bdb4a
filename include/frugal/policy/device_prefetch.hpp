// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/libtorch/side_stream.hpp>
#include <frugal/core/libtorch/staging.hpp>
#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/wrapped_source.hpp>
#include <frugal/policy/kinds.hpp>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace frugal {

/// A source whose next batch is copied to the device during the current step.
///
/// Lever   idle device: a copy costs the step nothing.
/// Cost    `depth` + 1 batches of device memory and of page-locked memory, one copy more on the
///         host (none where a batch is page-locked already); the host runs no further ahead of the
///         device than that. On the CPU one comparison.
/// Cursor  copied is not consumed: `seek()` discards what was copied ahead, and an exception of the
///         source is rethrown at its batch.
/// Pause   of the source; copies in flight continue, because they are on their own stream.
///
/// The source is read one batch ahead or more. A source that draws from LibTorch's generators would
/// draw earlier than the run, and a resumed run would differ: give it its own generator.
template <Source S>
class CopiedAhead : public detail::WrappedSource<S&> {
  using detail::WrappedSource<S&>::source_;

 public:
  using batch_type = batch_of<S>;
  static_assert(
      ShowsTensors<batch_type>,
      "frugal: DevicePrefetch copies the tensors of a batch, and the batch_traits of this batch "
      "type do "
      "not list them. Write a static each_tensor(batch, f) in batch_traits<YourBatch> that calls "
      "f(tensor) for each, or remove DevicePrefetch.");

  /// `depth`: batches on the device at a time, including the current one. The source must outlive
  /// this object.
  CopiedAhead(S& source, std::size_t depth) : detail::WrappedSource<S&>(source), depth_(depth) {}

  /// The target device, read again for each batch, because a run may move.
  void follow(c10::Device const& device) { device_ = &device; }

  void seek(Cursor const& cursor) {
    waiting_.clear();
    failure_ = nullptr;
    ended_ = false;
    source_.seek(cursor);
    consumed_.at(cursor.position);
  }

  std::optional<batch_type> next() {
    bool const ahead = device_ != nullptr && detail::overlaps_copies(*device_);
    if (!ahead && waiting_.empty()) {
      auto&& batch = source_.next();
      if (!batch) return std::nullopt;
      consumed_.read(source_);
      return std::optional<batch_type>(*std::forward<decltype(batch)>(batch));
    }
    if (side_) side_->look_for_free_rooms();
    if (waiting_.empty()) copy_one();
    if (waiting_.empty()) {
      if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
      return std::nullopt;
    }
    std::optional<batch_type> batch(std::move(waiting_.front().batch));
    side_->finish(waiting_.front().turn);
    consumed_ = waiting_.front().consumed;
    waiting_.pop_front();
    // The host is ahead of the device, so this copy overlaps with the previous step.
    while (ahead && waiting_.size() + 1 < depth_ && !ended_ && !failure_) copy_one();
    return batch;
  }

  std::uint64_t consumed() const
    requires ConsumingSource<S>
  {
    return consumed_.position();
  }
  void identify(DataIdentity& to) const { detail::identify(std::as_const(source_), to); }

 private:
  struct Copied {
    batch_type batch;
    std::size_t turn;
    [[no_unique_address]] detail::ConsumedAt<S> consumed;
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
      detail::ConsumedAt<S> consumed;
      consumed.read(source_);
      waiting_.push_back({std::move(batch), turn, consumed});
    } catch (...) {
      failure_ = std::current_exception();  // rethrown after the batches before it
    }
  }

  std::size_t depth_;
  c10::Device const* device_ = nullptr;
  std::optional<detail::SideStream> side_;
  std::deque<Copied> waiting_;  // after side_: batches are destroyed before their stream
  std::exception_ptr failure_;
  bool ended_ = false;
  [[no_unique_address]] detail::ConsumedAt<S> consumed_;  // of the last batch that was given
};

/// Batches on the device at a time: the current one, and those being copied.
template <std::size_t N>
struct Depth {
  static_assert(N >= 1,
                "frugal: Depth<N>: N is the number of batches on the device at a time, at least 1. "
                "Write Depth<2>.");
  static constexpr std::size_t value = N;
};

namespace detail {

template <class T>
inline constexpr bool is_depth = false;
template <std::size_t N>
inline constexpr bool is_depth<Depth<N>> = true;

}  // namespace detail

/// Copies the next batch to the run's device during the current step. Settings::device names the
/// device.
///
/// Lever   hours per run: the device does not wait for copies.
/// Cost    Depth batches of device memory and as much page-locked memory; on the host one copy of
///         each batch into it. No host sync. On the CPU a comparison per batch.
/// State   none: batches that were copied ahead are not consumed; a resumed run reads them again.
/// Errors  A batch type whose batch_traits do not show its tensors does not compile.
///
///     Trainer trainer{net, CrossEntropy{}, Settings{.device = "cuda:1"}, Optimize<AdamW>{},
///     DevicePrefetch<>{}};
template <class D = Depth<2>>
struct DevicePrefetch {
  static_assert(
      detail::is_depth<D>,
      "frugal: DevicePrefetch<...>: unknown option. Options: Depth<N>, the number of batches on "
      "the device at a time. Write DevicePrefetch<Depth<2>>.");
  using kind = kinds::device;
  using listens = list<on::fit_begin>;
  using provides = list<service::placement>;

  static constexpr About about{Term::hours_per_run, "one copy of each batch on the host"};

  std::size_t depth = D::value;  ///< batches on the device at a time

  /// The device of the run, unchanged: only Settings::device decides it.
  c10::Device chosen(c10::Device device) const { return device; }

  /// Calls `fit(train, valid)` with sources that copy ahead. `Valid` is void without validation.
  template <class Valid, class Train, class Fit>
  auto surround(Train& train, std::add_pointer_t<Valid> valid, Fit&& fit) const {
    detail::counted(depth, "DevicePrefetch::depth");
    CopiedAhead<Train> ahead(train, depth);
    if constexpr (std::is_void_v<Valid>) {
      return fit(ahead, valid);
    } else {
      // If both are one source, keep one: a validation moves its position, and the fit must see
      // that.
      if constexpr (std::is_same_v<Train, Valid>) {
        if (&train == valid) return fit(ahead, &ahead);
      }
      CopiedAhead<Valid> watched(*valid, depth);
      return fit(ahead, &watched);
    }
  }

  class State {
   public:
    using transient = void;
    explicit State(DevicePrefetch const&) {}

    void on_fit_begin(FitBegin& phase) {
      if (!phase.settings().device.is_cpu()) return;
      phase.warn("DevicePrefetch: this run is on the CPU, where there is nothing to copy");
    }
  };
};

}  // namespace frugal

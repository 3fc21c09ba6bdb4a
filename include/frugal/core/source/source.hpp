// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <frugal/error.hpp>

namespace frugal {

/// A position in the training data: what was consumed, not what was prefetched.
struct Cursor {
  std::uint64_t seed = 0;      ///< key of the shuffle
  std::uint64_t epoch = 0;     ///< passes over the data that are complete
  std::uint64_t position = 0;  ///< samples of this epoch that were consumed
  bool in_order = false;       ///< read in the data's own order, whatever the order of training is

  friend bool operator==(Cursor const&, Cursor const&) = default;
};

/// Yields the batches of one epoch, and can start anywhere in it.
///
/// `seek(cursor)`  the next `next()` is the batch that begins at sample `cursor.position`
///                 of epoch `cursor.epoch`; the order is a function of seed and epoch alone, or
///                 that of the data if `cursor.in_order`.
///                 O(1), or as near to it as the storage allows.
/// `next()`        the next batch of the epoch, or nothing when the epoch has ended.
template <class S>
concept Source = requires(S& source, Cursor const& cursor) {
  source.seek(cursor);
  { source.next().has_value() } -> std::convertible_to<bool>;
  *source.next();
};

/// A source of known size, which schedules "to the end of the run" need.
///
/// `samples()`  samples per epoch;  `batches()`  batches per epoch.
template <class S>
concept SizedSource = Source<S> && requires(S const& source) {
  { source.samples() } -> std::convertible_to<std::uint64_t>;
  { source.batches() } -> std::convertible_to<std::uint64_t>;
};

/// A source whose batches may stand for other numbers of samples than they hold: a loader that
/// leaves out damaged samples, or one rank's part of a batch that several processes share.
///
/// `consumed()`  samples of the epoch that are consumed with the last batch that `next()` gave, or
///               `cursor.position` after `seek(cursor)`. The loop makes this the cursor's position.
///               Of other sources it counts the samples of the batches.
template <class S>
concept ConsumingSource = Source<S> && requires(S const& source) {
  { source.consumed() } -> std::convertible_to<std::uint64_t>;
};

/// A source that can pass over a batch without reading it.
///
/// `skip()`  passes over the next batch of the epoch; returns its samples, 0 at the end.
template <class S>
concept SkippingSource = Source<S> && requires(S& source) {
  { source.skip() } -> std::convertible_to<std::uint64_t>;
};

/// The batches of an epoch that one of several processes reads: of each `window` batches since the last
/// seek, `count` from number `first` on, every `stride`-th.
struct Division {
  std::uint64_t first = 0;
  std::uint64_t count = 1;
  std::uint64_t window = 1;
  std::uint64_t stride = 1;

  bool has(std::uint64_t batch) const {
    std::uint64_t const place = batch % window;
    if (place < first || (place - first) % stride != 0) return false;
    return (place - first) / stride < count;
  }
};

/// A source that reads ahead, and leaves unread what other processes read.
///
/// `divide(division)`  from the next seek on `next()` is called for this process's batches, and
///                     `skip()` for the others.
template <class S>
concept DividableSource =
    SkippingSource<S> && requires(S& source, Division const& own) { source.divide(own); };

/// A source that knows what the user should change.
///
/// `warning()`  one sentence, or nothing: a fit ends with it in its Report.
template <class S>
concept AdvisingSource = Source<S> && requires(S const& source) {
  { source.warning() } -> std::convertible_to<std::string>;
};

/// A source that measures how long it is waited for, and has advice about it.
///
/// `waited()`  seconds spent in `next()` so far: Throughput makes the share of a stretch of it.
template <class S>
concept WaitedSource = AdvisingSource<S> && requires(S const& source) {
  { source.waited() } -> std::convertible_to<double>;
};

/// A source that works ahead in the background and can be paused.
///
/// `pause()`   returns once no work is in progress; false if it could not be paused.
/// `resume()`  continues. Batches and order are as if there had been no pause.
template <class S>
concept PausableSource = Source<S> && requires(S& source) {
  { source.pause() } -> std::convertible_to<bool>;
  source.resume();
};

/// Pauses a source during its lifetime, if it can be paused; false if that failed.
template <class S>
class [[nodiscard]] Paused {
 public:
  explicit Paused(S& source) : source_(source) {
    if constexpr (PausableSource<S>) paused_ = source_.pause();
  }
  Paused(Paused const&) = delete;
  Paused& operator=(Paused const&) = delete;
  ~Paused() {
    if constexpr (PausableSource<S>) source_.resume();
  }
  explicit operator bool() const { return paused_; }

 private:
  S& source_;
  bool paused_ = true;
};

namespace detail {

/// What a source had consumed when a batch was read from it, for a source that is read ahead.
/// Empty for one that does not report it.
template <class S>
class ConsumedAt {
 public:
  void at(std::uint64_t) {}
  void read(S const&) {}
  std::uint64_t position() const { return 0; }  ///< no source reports it, so it is never used
};
template <ConsumingSource S>
class ConsumedAt<S> {
 public:
  void at(std::uint64_t position) { position_ = position; }
  void read(S const& source) { position_ = static_cast<std::uint64_t>(source.consumed()); }
  std::uint64_t position() const { return position_; }

 private:
  std::uint64_t position_ = 0;
};

/// The position in the epoch after some batches of a source: that which the source reports, or
/// else the number of their samples.
template <class S>
std::uint64_t position_after(S const& source, std::uint64_t position, std::uint64_t samples) {
  if constexpr (ConsumingSource<S>) {
    return static_cast<std::uint64_t>(source.consumed());
  } else {
    return position + samples;
  }
}

/// StateError for a cursor after the last sample of a source that knows its size. The source's own
/// seek() may check more: whether a batch begins there.
template <class S>
void require_in_epoch(S const& source, Cursor const& cursor) {
  if constexpr (SizedSource<S>) {
    if (cursor.position == 0) return;
    auto const samples = static_cast<std::uint64_t>(source.samples());
    if (cursor.position <= samples) return;
    throw StateError({.what = "the cursor is past the last sample",
                      .where = "training data",
                      .why = "it is at sample " + std::to_string(cursor.position) + " of epoch " +
                             std::to_string(cursor.epoch) + ", and there are " +
                             std::to_string(samples),
                      .fix = "Resume with the data that the cursor was saved with."});
  }
}

/// Passes over the next batch of a source; returns its samples, 0 at the end of the epoch. A source
/// without `skip()` reads the batch. `samples_of(batch)` counts them.
template <class S, class Samples>
std::uint64_t skip_batch(S& source, Samples const& samples_of) {
  if constexpr (SkippingSource<S>) {
    return static_cast<std::uint64_t>(source.skip());
  } else {
    auto&& batch = source.next();
    return batch ? static_cast<std::uint64_t>(samples_of(*batch)) : 0;
  }
}

/// A source of which a window has more batches than next() gives here. `window_batches()` counts those of the
/// window that `begin_window()` has begun, and `pass()` goes past one; false at the end of the epoch.
template <class S>
concept WindowedSource = requires(S& source) {
  source.begin_window();
  { source.window_batches() } -> std::convertible_to<std::uint64_t>;
  { source.pass() } -> std::same_as<bool>;
};
template <class S>
void begin_window(S& source) {
  if constexpr (WindowedSource<S>) source.begin_window();
}
/// Whether the epoch has another batch, which is read; for all processes the same.
template <class S>
bool has_another_batch(S& source) {
  if constexpr (WindowedSource<S>) {
    return source.pass();
  } else {
    return source.next().has_value();
  }
}
/// The address of the source that the user has given, which may be the `whole()` of this one.
template <class S>
void const* address_of(S& source) {
  if constexpr (requires { source.whole(); }) {
    return &source.whole();
  } else {
    return &source;
  }
}

}  // namespace detail

/// The batch type of a source.
template <Source S>
using batch_of = std::remove_cvref_t<decltype(*std::declval<S&>().next())>;

}  // namespace frugal

// What a source says of its order, by types of its own: data/sampling/order.hpp has the orders.
namespace frugal {

namespace detail {

template <class S>
struct order_type {
  using type = void;
};
template <class O>
struct whole_order {
  using type = O;
};
template <class O>
  requires requires { typename O::order_type; }
struct whole_order<O> : whole_order<typename O::order_type> {};
template <class S>
  requires requires { typename S::order_type; }
struct order_type<S> : whole_order<typename S::order_type> {};

/// The order that a source was given, which may be a part of another one; void without.
template <class S>
struct given_order {
  using type = void;
};
template <class S>
  requires requires { typename S::order_type; }
struct given_order<S> {
  using type = typename S::order_type;
};
template <class S>
using given_order_of = typename given_order<S>::type;

template <class O>
constexpr bool is_part_of_order() {
  if constexpr (requires { O::is_part; }) {
    return O::is_part;
  } else if constexpr (requires { typename O::order_type; }) {
    return is_part_of_order<typename O::order_type>();
  } else {
    return false;
  }
}
/// Whether a source reads one process's part of an epoch (Shared).
template <class S>
inline constexpr bool reads_a_part = is_part_of_order<given_order_of<S>>();

}  // namespace detail

/// The order of a source that says it (`using order_type`), as loaders and those around them do;
/// void of others. Of an order that has a part of another one, as Shared, it is that other one:
/// what a policy demands of an order holds for its parts.
template <class S>
using order_type_of = typename detail::order_type<S>::type;

}  // namespace frugal

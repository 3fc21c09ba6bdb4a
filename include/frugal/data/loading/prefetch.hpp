// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/loading/operator_threads.hpp>
#include <frugal/data/loading/passed_over.hpp>
#include <frugal/data/loading/waiting.hpp>
#include <frugal/data/loading/worker.hpp>
#include <frugal/error.hpp>

#include <ATen/core/grad_mode.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// Reads any source ahead in a background thread: batches and order are those of the source,
/// bit for bit.
///
/// Lever   idle device: decoding and gathering overlap with training.
/// Cost    a thread per seek, a lock per batch, `depth` + 1 batches of memory. A source that only
///         gathers resident tensors gains nothing: the gather is cheaper than the handover.
/// Cursor  prefetched is not consumed: a cursor kept by the caller stays where `next()` is, and
///         `seek()` throws away what was read ahead.
/// Errors  WorkerError from `next()` at the batch where the source threw, with what it threw
///         nested; WorkerError when no batch came within `patience`, or when the thread cannot be
///         started. `seek()` throws what the
///         source's own seek throws, and a WorkerError when the worker hangs.
///
/// The worker runs without gradients and with `threads` cores per operator. Autocast and other
/// thread-local settings of the caller do not reach it. A source that draws from LibTorch's
/// global random generator shares it with the training thread, and then no run repeats: give
/// such a source its own generator. Batches on a device are made on the worker's stream:
/// wrap sources that give host tensors.
template <Source S>
class Prefetch {
  using Clock = std::chrono::steady_clock;

 public:
  using batch_type = batch_of<S>;
  using order_type = detail::given_order_of<S>;

  explicit Prefetch(S source, PrefetchOptions settings = {})
      : source_(std::make_shared<S>(std::move(source))), settings_(settings) {
    measure();
  }

  void seek(Cursor const& cursor) {
    if (worker_ && !worker_->stop()) hanging_ = true;
    worker_.reset();
    if (hanging_) {
      throw WorkerError({.what = "a source whose worker hangs cannot seek",
                         .where = where(cursor),
                         .why = "the call that hangs still uses the source",
                         .fix = "Make a new source and a new Prefetch."});
    }
    if constexpr (DividableSource<S>) source_->divide(own_);
    source_->seek(cursor);
    dealt_.clear();
    consumed_.at(cursor.position);
    measure();
    start(where(cursor));
    meter_.begin(Clock::now());
  }

  std::optional<batch_type> next() {
    if (!worker_) start("the source's first");
    Clock::time_point const asked = Clock::now();
    std::optional<Read> read = dealt_.next([this] { return worker_->next(); });
    if (!read) {
      meter_.end();
      return std::nullopt;
    }
    meter_.step(asked, Clock::now());
    consumed_ = read->consumed;
    return std::move(read->batch);
  }

  /// From the next seek on, the worker reads these batches alone, if the source can pass over others
  /// without reading them; skip() passes over those.
  void divide(Division const& own) { own_ = own; }
  /// Passes over the next batch, without waiting for it where another process reads it; returns its
  /// samples, 0 at the end of the epoch.
  std::uint64_t skip() {
    if (!worker_) start("the source's first");
    std::optional<Read> left;
    auto const passed = dealt_.skip([this] { return worker_->next(); }, left);
    if (passed) {
      consumed_.at(passed->consumed);
      return passed->samples;
    }
    if (!left) return 0;
    consumed_ = left->consumed;
    return static_cast<std::uint64_t>(batch_samples(*left->batch));
  }

  /// Pauses the worker, so that nothing disturbs the caller. `next()` still returns batches that
  /// were read ahead, and then waits for resume().
  bool pause() { return !worker_ || worker_->pause(); }
  void resume() {
    if (worker_) worker_->resume();
  }

  /// Samples and batches per epoch, as the source said at the last seek: it belongs to the
  /// worker while that runs.
  std::uint64_t samples() const
    requires SizedSource<S>
  {
    return samples_;
  }
  std::uint64_t batches() const
    requires SizedSource<S>
  {
    return batches_;
  }
  std::int64_t batch_size() const
    requires requires(S const& source) { source.batch_size(); }
  {
    return std::as_const(*source_).batch_size();
  }
  std::uint64_t consumed() const
    requires ConsumingSource<S>
  {
    return consumed_.position();
  }
  void identify(DataIdentity& to) const { detail::identify(std::as_const(*source_), to); }

  /// Seconds that next() waited. What the source itself waits for is not among it: training does
  /// not.
  double waited() const { return meter_.waited(); }
  /// What a run should change; empty where nothing. A fit puts it into its Report.
  std::string warning() const {
    LoaderReport report;
    meter_.fill(report);
    return report.warning(
        "the source of Prefetch makes batches more slowly than they are used, so store the set in "
        "shards, make its functions cheaper, or read it as a set of samples with loader(), which "
        "has several workers");
  }

 private:
  struct Read {
    std::optional<batch_type> batch{};
    [[no_unique_address]] detail::ConsumedAt<S> consumed{};
    std::vector<detail::PassedOver> before{};  ///< batches of other processes
    std::vector<detail::PassedOver> after{};
    bool is_batch() const { return batch.has_value(); }
  };

  void measure() {
    if constexpr (SizedSource<S>) {
      samples_ = static_cast<std::uint64_t>(std::as_const(*source_).samples());
      batches_ = static_cast<std::uint64_t>(std::as_const(*source_).batches());
    }
  }

  void start(std::string where) {
    detail::DivisionCounter counter;
    counter.begin(own_);
    auto produce = [source = source_, threads = settings_.threads, first = true,
                    counter]() mutable -> std::optional<Read> {
      if (std::exchange(first, false)) detail::limit_operator_threads(threads);
      at::NoGradGuard const no_grad;
      auto const pass = [&] {
        std::uint64_t const samples =
            detail::skip_batch(*source, [](auto const& batch) { return batch_samples(batch); });
        detail::ConsumedAt<S> consumed;
        consumed.read(*source);
        return detail::PassedOver{samples, consumed.position()};
      };
      Read read;
      read.before = counter.others(pass);
      auto&& batch = source->next();
      if (!batch) {
        if (read.before.empty()) return std::nullopt;
        return read;
      }
      read.batch.emplace(*std::forward<decltype(batch)>(batch));
      read.consumed.read(*source);
      counter.count();
      read.after = counter.others(pass);
      return read;
    };
    worker_ = std::make_unique<Worker<Read>>(std::move(produce), settings_, std::move(where),
                                             &detail::words_without_backtrace);
  }

  static std::string where(Cursor const& cursor) {
    return "sample " + std::to_string(cursor.position) + " of epoch " +
           std::to_string(cursor.epoch);
  }

  Division own_{};  ///< the batches that this process reads, from the next seek on
  detail::PassedQueue<Read> dealt_;
  std::shared_ptr<S> source_;
  PrefetchOptions settings_;
  std::uint64_t samples_ = 0;
  std::uint64_t batches_ = 0;
  bool hanging_ = false;
  [[no_unique_address]] detail::ConsumedAt<S> consumed_;  // of the last batch that was given
  detail::WaitMeter meter_;
  std::unique_ptr<Worker<Read>> worker_;
};

}  // namespace frugal

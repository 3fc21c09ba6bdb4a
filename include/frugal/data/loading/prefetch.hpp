// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/loading/worker.hpp>
#include <frugal/data/source.hpp>
#include <frugal/error.hpp>

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#if __has_include(<dlfcn.h>)
#include <dlfcn.h>
#endif

namespace frugal {

namespace detail {

/// Limits the cores that operators called from this thread spread over.
///
/// at::set_num_threads will not do: it changes MKL and every thread that has yet to start. The
/// OpenMP setting is the thread's own; LibTorch brings the OpenMP runtime, so it is looked up
/// rather than linked, and where there is none the limit is not needed.
inline void limit_operator_threads(int threads) {
  if (threads < 1) return;
  at::get_num_threads();  // LibTorch sets the thread up on its first use, and must not do so later
#if __has_include(<dlfcn.h>)
  using Set = void (*)(int);
  if (auto const set = reinterpret_cast<Set>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) {
    set(threads);
  }
#endif
}

/// LibTorch appends a page of frames to what its errors say.
inline std::string words_without_backtrace(std::exception const& error) {
  if (auto const* torch = dynamic_cast<c10::Error const*>(&error)) {
    return torch->what_without_backtrace();
  }
  return error.what();
}

}  // namespace detail

/// Reads any source ahead in a background thread: batches and order are those of the source,
/// bit for bit.
///
/// Lever   idle device: decoding and gathering overlap with training.
/// Cost    a thread per seek, a lock per batch, `depth` + 1 batches of memory. A source that only
///         gathers resident tensors gains nothing: the gather is cheaper than the handover.
/// Cursor  prefetched is not consumed: a cursor kept by the caller stays where `next()` is, and
///         `seek()` throws away what was read ahead.
/// Errors  WorkerError from `next()` at the batch where the source threw, with what it threw
///         nested; WorkerError when no batch came within `patience`. `seek()` throws what the
///         source's own seek throws, and a WorkerError when the worker hangs.
///
/// The worker runs without gradients and with `threads` cores per operator. Autocast and other
/// thread-local settings of the caller do not reach it. A source that draws from LibTorch's
/// global random generator shares it with the training thread, and then no run repeats: give
/// such a source its own generator. Batches on a device are made on the worker's stream:
/// wrap sources that give host tensors.
template <Source S>
class Prefetch {
 public:
  using batch_type = batch_of<S>;

  explicit Prefetch(S source, Prefetching settings = {})
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
    source_->seek(cursor);
    measure();
    start(where(cursor));
  }

  std::optional<batch_type> next() {
    if (!worker_) start("the source's first");
    return worker_->next();
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

 private:
  void measure() {
    if constexpr (SizedSource<S>) {
      samples_ = static_cast<std::uint64_t>(std::as_const(*source_).samples());
      batches_ = static_cast<std::uint64_t>(std::as_const(*source_).batches());
    }
  }

  void start(std::string where) {
    auto produce = [source = source_, threads = settings_.threads,
                    first = true]() mutable -> std::optional<batch_type> {
      if (std::exchange(first, false)) detail::limit_operator_threads(threads);
      at::NoGradGuard const no_grad;
      if (auto&& batch = source->next()) return std::optional<batch_type>(*std::move(batch));
      return std::nullopt;
    };
    worker_ = std::make_unique<Worker<batch_type>>(std::move(produce), settings_, std::move(where),
                                                   &detail::words_without_backtrace);
  }

  static std::string where(Cursor const& cursor) {
    return "sample " + std::to_string(cursor.position) + " of epoch " +
           std::to_string(cursor.epoch);
  }

  std::shared_ptr<S> source_;
  Prefetching settings_;
  std::uint64_t samples_ = 0;
  std::uint64_t batches_ = 0;
  bool hanging_ = false;
  std::unique_ptr<Worker<batch_type>> worker_;
};

}  // namespace frugal

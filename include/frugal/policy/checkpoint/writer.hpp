// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// A thread that runs one job at a time. Keeps what a job throws until it is asked for; first calls
/// `on_failure` in the thread. Destruction waits for the current job.
class BackgroundWriter {
 public:
  explicit BackgroundWriter(std::function<void()> on_failure) : on_failure_(std::move(on_failure)) {
    thread_ = signal_free_thread([this] { run(); });
  }
  BackgroundWriter(BackgroundWriter const&) = delete;
  BackgroundWriter& operator=(BackgroundWriter const&) = delete;
  FRUGAL_INLINE ~BackgroundWriter() {
    {
      std::unique_lock lock(mutex_);
      idle_.wait(lock, [&] { return !job_; });
      ended_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  /// Waits until the last job is done, then begins this one. Returns at once.
  FRUGAL_INLINE void submit(std::function<void()> job) {
    {
      std::unique_lock lock(mutex_);
      idle_.wait(lock, [&] { return !job_; });
      job_ = std::move(job);
    }
    wake_.notify_one();
  }

  /// Waits until the last job is done.
  FRUGAL_INLINE void wait() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return !job_; });
  }

  /// The exception of the last job, once; null without one.
  FRUGAL_INLINE std::exception_ptr take_failure() {
    std::scoped_lock const lock(mutex_);
    return std::exchange(failure_, nullptr);
  }

  /// Seconds that the last job took.
  FRUGAL_INLINE double seconds() const {
    std::scoped_lock const lock(mutex_);
    return seconds_;
  }

 private:
  FRUGAL_INLINE void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return job_ || ended_; });
      if (!job_) return;
      lock.unlock();
      auto const start = std::chrono::steady_clock::now();
      std::exception_ptr failure;
      try {
        job_();
      } catch (...) {
        failure = std::current_exception();
      }
      std::chrono::duration<double> const spent = std::chrono::steady_clock::now() - start;
      lock.lock();
      job_ = nullptr;
      seconds_ = spent.count();
      if (failure) {
        failure_ = std::move(failure);
        on_failure_();
      }
      idle_.notify_all();
    }
  }

  std::function<void()> on_failure_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::function<void()> job_;
  std::exception_ptr failure_;
  double seconds_ = 0;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace frugal::detail

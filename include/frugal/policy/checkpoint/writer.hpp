// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include <frugal/base/signal_free_thread.hpp>

namespace frugal::detail {

/// A thread that runs one job at a time. Keeps what a job throws until it is asked for. Calls
/// `on_done` in the thread after each. Destruction waits for the current job.
class BackgroundWriter {
 public:
  explicit BackgroundWriter(std::function<void()> on_done) : on_done_(std::move(on_done)) {
    thread_ = signal_free_thread([this] { run(); });
  }
  BackgroundWriter(BackgroundWriter const&) = delete;
  BackgroundWriter& operator=(BackgroundWriter const&) = delete;
  ~BackgroundWriter();

  /// Waits until the last job is done, then begins this one. Returns at once.
  void submit(std::function<void()> job);

  /// Waits until the last job is done.
  void wait();

  /// The exception of the last job, once; null without one.
  std::exception_ptr take_failure();

  /// Seconds that the last job took.
  double seconds() const;

 private:
  void run();

  std::function<void()> on_done_;
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

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/writer.ipp>
#endif

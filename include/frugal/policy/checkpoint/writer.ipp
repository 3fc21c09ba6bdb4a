// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/writer.hpp>

#include <frugal/inline.hpp>

#include <chrono>

namespace frugal::detail {

FRUGAL_INLINE BackgroundWriter::~BackgroundWriter() {
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return !job_; });
    ended_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

FRUGAL_INLINE void BackgroundWriter::submit(std::function<void()> job) {
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return !job_; });
    job_ = std::move(job);
  }
  wake_.notify_one();
}

FRUGAL_INLINE void BackgroundWriter::wait() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return !job_; });
}

FRUGAL_INLINE std::exception_ptr BackgroundWriter::take_failure() {
  std::scoped_lock const lock(mutex_);
  return std::exchange(failure_, nullptr);
}

FRUGAL_INLINE double BackgroundWriter::seconds() const {
  std::scoped_lock const lock(mutex_);
  return seconds_;
}

FRUGAL_INLINE void BackgroundWriter::run() {
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
    if (failure) failure_ = std::move(failure);
    on_done_();
    idle_.notify_all();
  }
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/signal_free_thread.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace frugal::detail {

/// The number of threads that a setting of 0 means.
inline unsigned threads_or_cores(unsigned threads) {
  return threads != 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
}

/// Calls `work(thread, begin, end)` for every chunk of [0, size), from `threads` threads. Each
/// thread takes the next chunk when it has done one. If calls throw, the exception of the first of
/// these chunks is thrown, whatever the number of threads.
template <class Work>
void in_chunks(std::uint64_t size, std::uint64_t chunk, unsigned threads, Work const& work) {
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  std::uint64_t failed_at = std::numeric_limits<std::uint64_t>::max();
  auto const run = [&](unsigned thread) {
    for (std::uint64_t begin = next.fetch_add(chunk); begin < size; begin = next.fetch_add(chunk)) {
      try {
        work(thread, begin, begin + std::min(chunk, size - begin));
      } catch (...) {
        std::lock_guard const lock(mutex);
        if (begin < failed_at) {
          failed_at = begin;
          failure = std::current_exception();
        }
        // Chunks before this one were taken before it, and their threads finish them.
        next = size;
        return;
      }
    }
  };
  auto const others = std::min<std::uint64_t>(threads, (size + chunk - 1) / chunk);
  std::vector<std::thread> running;
  try {
    for (unsigned thread = 1; thread < others; ++thread) {
      running.push_back(signal_free_thread([&run, thread] { run(thread); }));
    }
  } catch (std::system_error const&) {
    // The threads that could be started, and this one, do all the work.
  }
  run(0);
  for (std::thread& each : running) each.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <string>
#include <thread>

#if __has_include(<dlfcn.h>)

#endif

namespace frugal {

namespace detail {

/// Sets this thread up in LibTorch, which does so on its first use.
///
/// In a process that was forked the first of its threads to be set up replaces LibTorch's thread
/// pool, and a second one that does so meanwhile meets "Invalid thread pool". So the first of each
/// process goes alone. Without a mutex: a process may be forked while it is held.
inline void enter_operator_threads() {
  static std::atomic<pid_t> entered{0};  // the process; negative while its first thread is at it
  pid_t const mine = ::getpid();
  for (;;) {
    pid_t seen = entered.load();
    if (seen == mine) {
      at::get_num_threads();
      return;
    }
    if (seen == -mine) {
      std::this_thread::yield();
    } else if (entered.compare_exchange_weak(seen, -mine)) {
      break;
    }
  }
  try {
    at::get_num_threads();
  } catch (...) {
    entered = 0;
    throw;
  }
  entered = mine;
}

/// Limits the cores that operators called from this thread spread over.
///
/// at::set_num_threads will not do: it changes MKL and every thread that has yet to start. The
/// OpenMP setting is the thread's own; LibTorch brings the OpenMP runtime, so it is looked up
/// rather than linked, and where there is none the limit is not needed.
void limit_operator_threads(int threads);

/// LibTorch appends a page of frames to what its errors say.
std::string words_without_backtrace(std::exception const& error);

}  // namespace detail

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/loading/operator_threads.ipp>
#endif

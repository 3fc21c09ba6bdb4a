// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <exception>
#include <string>

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

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/loading/operator_threads.hpp>

#include <frugal/inline.hpp>

#include <dlfcn.h>

namespace frugal::detail {

FRUGAL_INLINE void limit_operator_threads(int threads) {
  enter_operator_threads();  // LibTorch must not set the thread up later, with its own number
  if (threads < 1) return;
#if __has_include(<dlfcn.h>)
  using Set = void (*)(int);
  if (auto const set = reinterpret_cast<Set>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) {
    set(threads);
  }
#endif
}

FRUGAL_INLINE std::string words_without_backtrace(std::exception const& error) {
  if (auto const* torch = dynamic_cast<c10::Error const*>(&error)) {
    return torch->what_without_backtrace();
  }
  return error.what();
}

}  // namespace frugal::detail

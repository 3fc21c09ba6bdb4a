// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/keep_host_memory.hpp>

#include <frugal/inline.hpp>

#include <malloc.h>

#include <cstdlib>  // defines __GLIBC__ under glibc

namespace frugal {

FRUGAL_INLINE bool KeepHostMemory::keep() {
#ifdef __GLIBC__
  constexpr int growth = 64 << 20;  // bytes; reduces the number of calls while the heap grows
  return mallopt(M_MMAP_MAX, 0) == 1 && mallopt(M_TRIM_THRESHOLD, -1) == 1 &&
         mallopt(M_TOP_PAD, growth) == 1;
#else
  return false;
#endif
}

}  // namespace frugal

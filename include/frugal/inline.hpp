// SPDX-License-Identifier: Apache-2.0
#pragma once

// FRUGAL_INLINE marks the functions in .ipp files: those that know no recipe and are not worth inlining. A header
// includes the .ipp file of its name at its end, so they are inline, and every program compiles those that it uses.
// frugal::compiled defines FRUGAL_COMPILED for what links it, which leaves the .ipp files out, and compiles all of
// them in its two source files (src.hpp, src_cluster.hpp), where the mark is empty.
#ifndef FRUGAL_INLINE
#define FRUGAL_INLINE inline
#endif

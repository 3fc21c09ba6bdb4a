// SPDX-License-Identifier: Apache-2.0
#pragma once

// FRUGAL_INLINE marks functions that know no recipe and are not worth inlining. By default they are
// inline, and every program compiles those that it uses. With FRUGAL_COMPILED, which the target
// frugal::compiled defines, clang makes no code of them: src.hpp has compiled all of them, once. g++ has
// no such attribute for functions with a body (its gnu_inline keeps the bodies to inline them, and takes
// more time and memory than before), so there FRUGAL_COMPILED changes nothing.
#if !defined(__clang__)
#define FRUGAL_INLINE inline
#elif defined(FRUGAL_COMPILES)
#define FRUGAL_INLINE [[gnu::used]] inline
#elif !defined(FRUGAL_COMPILED)
#define FRUGAL_INLINE inline
#else
// Clang warns of every such function that is not `extern` as well, which a member cannot be.
#pragma clang diagnostic ignored "-Wgnu-inline-cpp-without-extern"
#define FRUGAL_INLINE [[gnu::gnu_inline, gnu::noinline]] inline
#endif

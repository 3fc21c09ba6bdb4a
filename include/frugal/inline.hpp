// SPDX-License-Identifier: Apache-2.0
#pragma once

// FRUGAL_INLINE marks functions that know no recipe and are not worth inlining. By default they are
// inline, and every program compiles those that it uses. With FRUGAL_COMPILED, which the target
// frugal::compiled defines, no code is made of them: src/frugal.cpp has compiled all of them, once.
#if defined(FRUGAL_COMPILES)
#define FRUGAL_INLINE [[gnu::used]] inline
#elif !defined(FRUGAL_COMPILED)
#define FRUGAL_INLINE inline
#elif defined(__clang__)
// Clang warns of every such function that is not `extern` as well, which a member cannot be.
#pragma clang diagnostic ignored "-Wgnu-inline-cpp-without-extern"
#define FRUGAL_INLINE [[gnu::gnu_inline, gnu::noinline]] inline
#else
#define FRUGAL_INLINE [[gnu::gnu_inline, gnu::noclone]] inline
#endif

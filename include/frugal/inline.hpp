// SPDX-License-Identifier: Apache-2.0
#pragma once

// FRUGAL_INLINE marks functions that know no recipe and are not worth inlining. They are inline, and every
// program compiles those that it uses. A program that links frugal::compiled includes a copy of the headers
// in which cmake/declarations.py has left these functions without bodies and without this mark: the
// library's own source files (src.hpp) compile all of them, once.
#ifdef FRUGAL_COMPILES
#define FRUGAL_INLINE [[gnu::used]] inline
#else
#define FRUGAL_INLINE inline
#endif

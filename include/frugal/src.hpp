// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one source file of frugal::compiled includes this and nothing else, from the headers as they are.
// Without CMake: docs/install.md#installing.
#ifdef FRUGAL_INLINE
#error "frugal: frugal/src.hpp belongs into a source file of its own, which includes nothing else."
#endif
#define FRUGAL_COMPILES

#include <frugal/compare.hpp>
#include <frugal/data.hpp>
#include <frugal/frugal.hpp>
#include <frugal/report.hpp>
#include <frugal/version.hpp>

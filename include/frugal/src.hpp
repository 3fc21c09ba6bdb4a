// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one source file of frugal::compiled includes this and nothing else, from the headers as they are.
// Without CMake: docs/install.md#installing.
#ifdef FRUGAL_INLINE
#error "frugal: frugal/src.hpp belongs into a source file of its own, which includes nothing else."
#endif
#define FRUGAL_COMPILES

#include <frugal/data.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>
#include <frugal/report.hpp>
#include <frugal/version.hpp>
// All of compare.hpp but itself, which needs Boost.Hana.
#include <frugal/report/compare/comparison.hpp>
#include <frugal/report/compare/job.hpp>
#include <frugal/report/compare/order.hpp>
#include <frugal/report/compare/peak_memory.hpp>
#include <frugal/report/compare/watch.hpp>

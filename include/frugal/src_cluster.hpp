// SPDX-License-Identifier: Apache-2.0
#pragma once

// The second source file of frugal::compiled includes this and nothing else: the functions of cluster/, which need
// the declarations in cmake/gloo. Those of all other rooms are in the first one (frugal/src.hpp), so their headers come
// before cluster.hpp and leave their .ipp files out. A program that trains in one process links the first one alone.
#ifdef FRUGAL_INLINE
#error \
    "frugal: frugal/src_cluster.hpp belongs into a source file of its own, which includes nothing else."
#endif
#define FRUGAL_INLINE
#ifndef FRUGAL_COMPILED
#define FRUGAL_COMPILED
#endif
#include <frugal/core/libtorch/low_rank.hpp>
#include <frugal/data.hpp>
#include <frugal/frugal.hpp>
#include <frugal/model.hpp>
#undef FRUGAL_COMPILED
#include <frugal/cluster.hpp>

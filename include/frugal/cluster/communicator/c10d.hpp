// SPDX-License-Identifier: Apache-2.0
#pragma once

// LibTorch's headers of process groups. Its packages have Gloo, and the header asks for this name.
#ifndef USE_C10D_GLOO
#define USE_C10D_GLOO
#endif
#if !__has_include(<gloo/context.h>)
#error \
    "frugal: <frugal/cluster.hpp> needs the component cluster. Write find_package(frugal COMPONENTS cluster) and link frugal::cluster, or add frugal's folder cmake/gloo to the include path."
#endif

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#ifdef USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

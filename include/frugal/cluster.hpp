// SPDX-License-Identifier: Apache-2.0
#pragma once

// Training in several processes: component cluster.
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/grid.hpp>
#include <frugal/cluster/measure_link.hpp>
#include <frugal/cluster/pipeline.hpp>
#include <frugal/cluster/power_sgd.hpp>
#include <frugal/cluster/replicate_exact.hpp>
#include <frugal/cluster/replicate_local.hpp>
#include <frugal/cluster/replicate_options.hpp>
#include <frugal/cluster/replicate_ring.hpp>
#include <frugal/cluster/tensor_parallel.hpp>
#include <frugal/cluster/world.hpp>

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Modules whose weights are cut over a group of processes.
#include <frugal/cluster/tensor_parallel/attention.hpp>
#include <frugal/cluster/tensor_parallel/collectives.hpp>
#include <frugal/cluster/tensor_parallel/dropout.hpp>
#include <frugal/cluster/tensor_parallel/embedding.hpp>
#include <frugal/cluster/tensor_parallel/linear.hpp>
#include <frugal/cluster/tensor_parallel/whole_state.hpp>

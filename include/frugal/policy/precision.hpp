// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/precision/bf16.hpp>
#include <frugal/policy/precision/fp16.hpp>
#include <frugal/policy/precision/fp32.hpp>
#include <frugal/policy/precision/fp8.hpp>
#include <frugal/policy/precision/from_env.hpp>
#include <frugal/policy/precision/int8.hpp>

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Training steps that Python exports, as machine code. Component `step`.

#include <frugal/step/package.hpp>

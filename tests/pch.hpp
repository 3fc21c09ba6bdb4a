// SPDX-License-Identifier: Apache-2.0
// What every test, example and benchmark includes sooner or later, compiled once. doctest is not
// among it: it leaves a symbol in whatever includes it, and examples do not link it.
#pragma once

#include <torch/torch.h>

// LibTorch's logging has a CHECK of its own; in the tests doctest's is meant.
#undef CHECK

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// SPDX-License-Identifier: Apache-2.0
// Headers that every test, example and benchmark includes, precompiled. Without doctest, which
// leaves a symbol in every including file, and which examples do not link.
#pragma once

#include <torch/torch.h>

// LibTorch's logging defines its own CHECK; tests mean doctest's.
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

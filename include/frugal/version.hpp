// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace frugal {

/// The version of the library, in this one place: CMake and the packages read it from here.
inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;
inline constexpr int version_patch = 0;
inline constexpr std::string_view version = "0.1.0";

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace frugal {

/// The name of an alias, for a type that users write by one. Specialise it next to the alias:
///
///     using WatchLoss = Watch<"loss", Better::lower>;
///     template <>
///     inline constexpr std::string_view alias_name<WatchLoss> = "WatchLoss";
///
/// `explain` and messages then have the alias in place of the template and its arguments. What is
/// saved does not look at it.
template <class T>
inline constexpr std::string_view alias_name{};

}  // namespace frugal

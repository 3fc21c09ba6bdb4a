// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace frugal {

/// The name of the alias by which users write a type. Specialise it next to the alias:
///
///     using WatchLoss = Watch<"loss", Better::lower>;
///     template <>
///     inline constexpr std::string_view alias_name<WatchLoss> = "WatchLoss";
///
/// `explain` and messages then show the alias instead of the template and its arguments. Saved
/// state does not depend on it.
template <class T>
inline constexpr std::string_view alias_name{};

}  // namespace frugal

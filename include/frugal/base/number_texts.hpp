// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_text.hpp>

#include <string>

/// Numbers for people, in the same digits wherever a run is: no locale changes the decimal point.
namespace frugal::watch {

/// Four significant digits: 0.7131, 12.4, 1.2e-05.
inline std::string short_number(double value) { return frugal::detail::general(value, 4); }

/// A rate of constant width: 950, 12.3k, 4.56M.
std::string rate_text(double value);

/// 42s, 3m07s, 2h05m, 3d04h.
std::string duration_text(double seconds);

}  // namespace frugal::watch

namespace frugal::detail {

/// A size for messages, the same in every locale: "1.5 KiB". A difference may be negative.
std::string bytes_text(double bytes);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/number_texts.ipp>
#endif

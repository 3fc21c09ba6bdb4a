// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace frugal::detail {

/// A size for messages, the same in every locale: "1.5 KiB". A difference may be negative.
std::string bytes_text(double bytes);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/base/bytes.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string_view>

namespace frugal::watch {

/// Writes a text and flushes it, so that a kill loses none of it. False with the reason in errno if
/// that fails. A pipe whose reader has gone (`program 2>&1 | head`) is EPIPE, without a SIGPIPE: a
/// closed terminal does not end a run.
bool write_text(std::FILE* out, std::string_view text);

}  // namespace frugal::watch

#ifndef FRUGAL_COMPILED
#include <frugal/base/write_text.ipp>
#endif

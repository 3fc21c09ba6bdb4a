// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace frugal::detail {

/// A name from a file, made safe for an error text: quoted, printable ASCII, and short. A hostile
/// name may be megabytes long, or move a terminal's cursor.
std::string safetensors_quoted(std::string_view text);

/// For faults without a byte offset.
inline constexpr std::uint64_t safetensors_no_place = std::numeric_limits<std::uint64_t>::max();

/// The fix for a damaged file.
inline constexpr char safetensors_mend[] = "Use another copy of the file, or write it again.";

/// Throws FormatError. `part` is the part of the file at `byte`: a tensor, the metadata, or empty.
[[noreturn]] void safetensors_fail(std::string const& file, std::string const& part,
                                   std::uint64_t byte, std::string what, std::string why,
                                   std::string fix = safetensors_mend);

/// "tensor "encoder.weight"", as in errors.
inline std::string safetensors_tensor(std::string_view name) {
  return "tensor " + safetensors_quoted(name);
}

/// The metadata key of the format, and the header limit in bytes.
inline constexpr std::string_view safetensors_metadata_key = "__metadata__";
inline constexpr std::uint64_t safetensors_most_header = 100'000'000;
/// The header's length precedes the header.
inline constexpr std::uint64_t safetensors_length_bytes = 8;

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/safetensors_fault.ipp>
#endif

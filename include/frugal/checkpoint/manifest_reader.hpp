// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json_fields.hpp>
#include <frugal/checkpoint/manifest.hpp>

#include <filesystem>
#include <string_view>

namespace frugal {

namespace detail {

/// Reads the fields of a manifest whose hash matched.
Manifest read_manifest(std::string_view text, JsonFields const& fields,
                       std::filesystem::path const& where);

}  // namespace detail

/// Parses the text of Manifest::text; `where` is the file's path, for errors. FormatError if it is
/// damaged or not a manifest, NewerFormatError for an unknown version.
Manifest parse_manifest(std::string_view text, std::filesystem::path const& where);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/checkpoint/manifest_reader.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frugal::detail {

/// The validation source whose data this name of a DataIdentity is of: "" for the one without a
/// name.
std::optional<std::string> validation_source(std::string_view name);

/// Compares the training data, their order and the validation data (DataIdentity) with those of a
/// checkpoint. StateError that names all differences with both values, unless `allowed` has their
/// names. Returns the allowed ones in words. A validation source may come or go: only one that both
/// have must be the same.
std::vector<std::string> changed_data(std::map<std::string, std::string> const& here,
                                      std::map<std::string, std::string> const& there,
                                      std::vector<std::string> const& allowed,
                                      std::filesystem::path const& where);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/changed_data.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/core/compose/scope.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// The validation source whose data this name of a DataIdentity is of: "" for the one without a
/// name.
FRUGAL_INLINE std::optional<std::string> validation_source(std::string_view name) {
  constexpr std::string_view before = "validation '";
  if (name == "validation") return std::string();
  if (!name.starts_with(before) || !name.ends_with('\'')) return std::nullopt;
  return std::string(name.substr(before.size(), name.size() - before.size() - 1));
}

/// Compares the training data, their order and the validation data (DataIdentity) with those of a
/// checkpoint. StateError that names all differences with both values, unless `allowed` has their
/// names. Returns the allowed ones in words. A validation source may come or go: only one that both
/// have must be the same.
FRUGAL_INLINE std::vector<std::string> changed_data(std::map<std::string, std::string> const& here,
                                                    std::map<std::string, std::string> const& there,
                                                    std::vector<std::string> const& allowed,
                                                    std::filesystem::path const& where) {
  std::map<std::string, std::string> all = there;
  all.insert(here.begin(), here.end());
  auto const value = [](std::map<std::string, std::string> const& of, std::string const& name) {
    auto const found = of.find(name);
    return found == of.end() ? std::string("nothing") : found->second;
  };
  std::string refused;
  std::string names;
  std::vector<std::string> borne;
  for (auto const& [name, ignored] : all) {
    std::string const saved = value(there, name);
    std::string const now = value(here, name);
    if (saved == now) continue;
    if (validation_source(name) && (!there.contains(name) || !here.contains(name))) continue;
    if (is_among(allowed, name)) {
      borne.push_back(name + " was " + saved + " and is " + now);
      continue;
    }
    refused +=
        (refused.empty() ? "" : "; ") + name + " is " + saved + " there and " + now + " here";
    names += (names.empty() ? "\"" : ", \"") + name + "\"";
  }
  if (refused.empty()) return borne;
  throw StateError({.what = "this checkpoint was made with other data",
                    .where = where.string(),
                    .why = std::move(refused),
                    .fix = "Resume with the data and the order that saved it, set "
                           "Checkpoint::changed_data to {" +
                           names +
                           "} to continue with these, set Checkpoint::resume to Resume::Weights "
                           "to take the weights alone, or give another Settings::run_dir."});
}

}  // namespace frugal::detail

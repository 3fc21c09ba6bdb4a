// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/changed_data.hpp>

#include <frugal/core/compose/scope.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::optional<std::string> validation_source(std::string_view name) {
  constexpr std::string_view before = "validation '";
  if (name == "validation") return std::string();
  if (!name.starts_with(before) || !name.ends_with('\'')) return std::nullopt;
  return std::string(name.substr(before.size(), name.size() - before.size() - 1));
}

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

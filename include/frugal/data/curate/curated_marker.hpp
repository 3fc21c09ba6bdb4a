// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/error.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace frugal {

/// The content of a marker file: somebody has chosen the samples of the data next to it.
struct CuratedMark {
  std::string name;  ///< of the set; an override repeats it
  std::string why;   ///< who chose, and how
};

/// Where the marker of a file or a folder lies: `x.jsonl.curated`, `folder/.curated`.
inline std::filesystem::path curated_marker_of(std::filesystem::path const& data) {
  std::error_code ignored;
  if (std::filesystem::is_directory(data, ignored)) return data / ".curated";
  std::filesystem::path marker = data;
  marker += ".curated";
  return marker;
}

/// The mark of a file or a folder, if it has one.
///
/// Errors  FormatError for a marker that cannot be understood: it is no permission.
inline std::optional<CuratedMark> curated_mark(std::filesystem::path const& data) {
  std::filesystem::path const path = curated_marker_of(data);
  std::error_code failure;
  if (!std::filesystem::exists(path, failure) && !failure) return std::nullopt;
  std::string const text = detail::read_whole_file(path);
  detail::JsonFields const fields({.what = "the marker of a curated set is damaged",
                                   .where = path.string(),
                                   .why = "",
                                   .fix = "Mark the data again, or remove the marker."});
  auto const all = fields.parse(text, "frugal curated");
  CuratedMark mark{.name = fields.text(all, "name"), .why = fields.text(all, "why")};
  if (mark.name.empty()) fields.fail("it has no name");
  return mark;
}

/// Marks a file or a folder as curated, replacing a mark that it has: deduplicate() then refuses it
/// unless overridden by this name.
///
/// Errors  SettingsError for an empty name; StoreError if the marker cannot be written.
inline void mark_curated(std::filesystem::path const& data, CuratedMark const& mark) {
  if (mark.name.empty()) {
    throw SettingsError({.what = "a curated set without a name",
                         .where = data.string(),
                         .why = "an override repeats the name",
                         .fix = "Give the set a name."});
  }
  detail::JsonLine line;
  line.add("format", "frugal curated").add("version", 1);
  line.add("name", mark.name).add("why", mark.why);
  detail::write_whole_file(curated_marker_of(data), std::move(line).str(), detail::Durable::yes);
}

namespace detail {

/// Refuses to deduplicate a curated set, unless `allowed` is its name.
inline void refuse_curated(CuratedMark const& mark, std::string const& allowed) {
  if (mark.name == allowed) return;
  throw SettingsError({.what = "the set \"" + mark.name + "\" is marked as curated",
                       .where = "deduplicate",
                       .why = mark.why.empty() ? "somebody has chosen its samples" : mark.why,
                       .fix = "Train on it as it is; or set .even_if_curated = \"" + mark.name +
                              "\" to deduplicate it all the same."});
}

}  // namespace detail

}  // namespace frugal

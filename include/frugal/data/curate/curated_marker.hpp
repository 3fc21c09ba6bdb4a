// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/file.hpp>
#include <frugal/store/folder.hpp>
#include <frugal/store/json_fields.hpp>
#include <frugal/store/json_line.hpp>
#include <frugal/store/mapped_file.hpp>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace frugal {

/// What a marker file says about the data next to it: somebody has chosen these samples.
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
  MappedFile const file(path);
  std::string_view const text(reinterpret_cast<char const*>(file.bytes().data()),
                              file.bytes().size());
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
  std::filesystem::path const path = curated_marker_of(data);
  std::filesystem::path written = path;
  written += ".new";
  remove_tree(written);  // of a process that was killed
  detail::JsonLine object;
  object.add("format", "frugal curated").add("version", 1);
  object.add("name", mark.name).add("why", mark.why);
  std::string const line = std::move(object).str();
  File file = File::create(written);
  file.write(std::as_bytes(std::span(line)));
  file.sync();
  file.close();
  rename_path(written, path);
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/curate/curation.hpp>
#include <frugal/data/curate/deduplicator.hpp>
#include <frugal/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

/// A set that was curated. `curated()` is its name, empty if it was not.
template <class S>
concept CuratedSet = SampleSet<S> && requires(S const& set) {
  { set.curated() } -> std::convertible_to<std::string>;
};

/// The text of a sample that is text or bytes already.
struct AsText {
  std::string operator()(std::string text) const { return text; }
  std::string operator()(std::string_view text) const { return std::string(text); }
  std::string operator()(char const* text) const { return text; }
  std::string operator()(std::span<std::byte const> bytes) const {
    return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
  }
  std::string operator()(std::span<unsigned char const> bytes) const {
    return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
  }
};

namespace detail {

template <class Set, class Text>
concept TextsOf = requires(Set const& set, Text const& text, std::uint64_t index) {
  { std::invoke(text, set.get(index)) } -> std::convertible_to<std::string_view>;
};

template <class Set>
std::string identity_text(Set const& set) {
  if constexpr (IdentifiedSet<Set>) {
    return set.identity();
  } else {
    return {};
  }
}

}  // namespace detail

/// Finds copies and near-duplicates among the texts of a set. `text` gives the text of a sample.
///
/// Copies have the same bytes. Near-duplicates share shingles: MinHash-LSH finds candidates, which
/// are then compared exactly, so that all that is removed is at least `threshold` similar to a
/// sample of its group. One sample of each group stays. The result is the same for any number of
/// threads and any limit of memory.
///
/// Memory  `memory` bytes, one bit a sample, and about 250 bytes for each sample that has a twin;
///         16 bytes of disk for a sample and a band beyond that.
/// Errors  SettingsError for a setting out of range, and for a set that is marked as curated unless
///         `even_if_curated` is its name; StoreError if spilling fails; what the set throws.
template <SampleSet Set, class Text = AsText>
Curation deduplicate(Set const& set, Deduplicate const& settings, Text const& text = {}) {
  static_assert(detail::ReadsByIndex<Set>,
                "frugal: deduplicate reads each sample once, and this set gives another sample in "
                "every epoch. Deduplicate the set behind its random transform.");
  static_assert(!detail::ReadsByIndex<Set> || detail::TextsOf<Set, Text>,
                "frugal: a sample of this set is no text. Give deduplicate a function that makes "
                "one of it: `deduplicate(set, settings, [](Sample const& s) { return s.text; })`.");
  Deduplicate const used = detail::checked(settings);
  if constexpr (CuratedSet<Set>) {
    std::string const name = set.curated();
    if (!name.empty()) detail::refuse_curated({.name = name, .why = ""}, used.even_if_curated);
  }
  if (!used.data.empty()) {
    if (auto const mark = curated_mark(used.data)) {
      detail::refuse_curated(*mark, used.even_if_curated);
    }
  }
  if constexpr (detail::ReadsByIndex<Set> && detail::TextsOf<Set, Text>) {
    Curation out = detail::Deduplicator(used, set.size(), [&](std::uint64_t index) {
                     return std::string(std::invoke(text, set.get(index)));
                   }).run();
    out.name = used.name;
    out.identity = detail::identity_text(set);
    out.method = detail::method_of(used);
    out.price = used.price;
    return out;
  }
}

/// Deduplicates with the default settings.
template <SampleSet Set>
Curation deduplicate(Set const& set) {
  static_assert(!CuratedSet<Set>,
                "frugal: this set is marked as curated, and deduplication would thin it out. To do "
                "so all the same, name it: `deduplicate(set, {.even_if_curated = \"name\"})`.");
  return deduplicate(set, Deduplicate{});
}

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/json.hpp>
#include <frugal/data/curate/curation.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace frugal {

/// What a report calls a sample, as sample_name() does.
using NameOfSample = std::function<std::string(std::uint64_t)>;

namespace detail {

inline std::uint64_t hash_of_text(std::string_view text) {
  return Hash::of(std::as_bytes(std::span(text)));
}

std::string head_line(Curation const& curation);

std::string row_line(Removed const& row, NameOfSample const& name);

/// Reads the lines of a file whose hash matched.
class CurationReader {
 public:
  explicit CurationReader(std::string where) : where_(std::move(where)) {}

  Curation read(std::string_view text);

 private:
  JsonFields fields() const;

  /// The text before the last line, which has its hash.
  std::string_view checked_body(std::string_view text) const;

  Curation head(std::string_view text);

  Removed row(std::string_view text, Curation const& so_far) const;

  double real(Json const& all, char const* name) const;

  std::string where_;
  std::size_t line_ = 1;
  std::uint64_t expected_ = 0;
};

}  // namespace detail

/// The report as JSONL: a line about the set, one for each removed sample, and a hash of them all.
/// `name` is what lines call a sample.
std::string curation_text(Curation const& curation, NameOfSample const& name = {});

/// Writes the report as JSONL, replacing a file of that name. StoreError if that fails.
inline void write_curation(std::filesystem::path const& path, Curation const& curation,
                           NameOfSample const& name = {}) {
  detail::write_whole_file(path, curation_text(curation, name), detail::Durable::yes);
}

/// Reads a report back; `where` is what errors call it.
///
/// Errors  FormatError with the line for a text that is cut off, damaged or contradictory.
inline Curation parse_curation(std::string_view text, std::string where) {
  return detail::CurationReader(std::move(where)).read(text);
}

/// Reads the report of a file. StoreError if it cannot be read.
inline Curation read_curation(std::filesystem::path const& path) {
  return parse_curation(detail::read_whole_file(path), path.string());
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/curate/curation_file.ipp>
#endif

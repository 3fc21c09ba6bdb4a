// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// What training on a sample costs, for the dollars that a curation saves.
struct Price {
  double per_hour = 0;            ///< dollars for an hour of the machine
  double seconds_per_sample = 0;  ///< of training
  double seconds_per_byte = 0;    ///< of training, where cost depends on length

  bool operator==(Price const&) const = default;
};

/// A sample that a curation leaves out, and why.
struct Removed {
  std::uint64_t index = 0;  ///< in the set
  std::uint64_t twin = 0;   ///< the sample of its group that stays
  /// Jaccard similarity of the shingles with the twin, 1 for a copy; for images the share of equal
  /// bits. Below the threshold if the two are alike only `through` a third.
  double similarity = 0;
  bool copy = false;              ///< its bytes are those of the twin
  std::uint64_t through = 0;      ///< the alike sample that puts it into the group; else the twin
  double through_similarity = 0;  ///< with that one, at least the threshold
  std::uint64_t bytes = 0;        ///< of the sample

  bool operator==(Removed const&) const = default;
};

/// What a curation found: which samples of a set stay, and what went and why.
struct Curation {
  std::string name;           ///< of the set, for overrides
  std::string identity;       ///< of the set, empty if it has none
  std::string method;         ///< the settings in words
  std::uint64_t samples = 0;  ///< of the set
  std::uint64_t bytes = 0;    ///< of all samples
  Price price{};
  std::vector<Removed> removed{};  ///< ascending by index

  std::uint64_t candidates = 0;  ///< pairs that share a band
  std::uint64_t compared = 0;    ///< of these, pairs whose similarity was computed
  std::uint64_t spilled = 0;     ///< run files written

  std::uint64_t kept() const { return samples - removed.size(); }

  std::uint64_t removed_bytes() const;

  std::uint64_t copies() const;

  /// Dollars that an epoch without the removed samples saves; nothing without a price.
  std::optional<double> dollars_per_epoch() const;
};

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
#include <frugal/data/curate/curation.ipp>
#endif

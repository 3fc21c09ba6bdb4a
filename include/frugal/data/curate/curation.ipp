// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/curate/curation.hpp>

#include <frugal/base/json_writer.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE std::uint64_t Curation::removed_bytes() const {
  std::uint64_t sum = 0;
  for (Removed const& each : removed) sum += each.bytes;
  return sum;
}

FRUGAL_INLINE std::uint64_t Curation::copies() const {
  std::uint64_t count = 0;
  for (Removed const& each : removed) count += each.copy;
  return count;
}

FRUGAL_INLINE std::optional<double> Curation::dollars_per_epoch() const {
  double const seconds = price.seconds_per_sample * static_cast<double>(removed.size()) +
                         price.seconds_per_byte * static_cast<double>(removed_bytes());
  if (!(price.per_hour > 0) || !(price.seconds_per_sample > 0 || price.seconds_per_byte > 0)) {
    return std::nullopt;
  }
  return seconds / 3600 * price.per_hour;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE std::string head_line(Curation const& curation) {
  JsonLine line;
  line.add("format", "frugal curation").add("version", 1);
  line.add("name", curation.name).add("identity", curation.identity);
  line.add("method", curation.method);
  line.add("samples", curation.samples).add("bytes", curation.bytes);
  line.add("removed", curation.removed.size()).add("removed_bytes", curation.removed_bytes());
  line.add("candidates", curation.candidates).add("compared", curation.compared);
  line.add("price_per_hour", curation.price.per_hour);
  line.add("seconds_per_sample", curation.price.seconds_per_sample);
  line.add("seconds_per_byte", curation.price.seconds_per_byte);
  if (auto const dollars = curation.dollars_per_epoch()) line.add("dollars_per_epoch", *dollars);
  return std::move(line).str();
}

FRUGAL_INLINE std::string row_line(Removed const& row, NameOfSample const& name) {
  JsonLine line;
  line.add("index", row.index);
  if (name) line.add("name", name(row.index));
  line.add("twin", row.twin);
  if (name) line.add("twin_name", name(row.twin));
  line.add("kind", row.copy ? "copy" : "near").add("similarity", row.similarity);
  line.add("through", row.through).add("through_similarity", row.through_similarity);
  line.add("bytes", row.bytes);
  return std::move(line).str();
}

FRUGAL_INLINE Curation CurationReader::read(std::string_view text) {
  std::string_view const body = checked_body(text);
  Curation out = head(body.substr(0, body.find('\n')));
  std::string_view rest = body.substr(body.find('\n') + 1);
  for (; !rest.empty(); rest.remove_prefix(rest.find('\n') + 1)) {
    ++line_;
    out.removed.push_back(row(rest.substr(0, rest.find('\n')), out));
  }
  if (out.removed.size() != expected_) {
    fields().fail("it lists " + std::to_string(out.removed.size()) + " samples, and says " +
                  std::to_string(expected_));
  }
  return out;
}

FRUGAL_INLINE JsonFields CurationReader::fields() const {
  return JsonFields({.what = "the report of a curation is damaged",
                     .where = where_ + ", line " + std::to_string(line_),
                     .why = "",
                     .fix = "Curate the set again, or fetch the report again."});
}

FRUGAL_INLINE std::string_view CurationReader::checked_body(std::string_view text) const {
  if (text.empty() || text.back() != '\n') fields().fail("it is cut off");
  std::size_t const end = text.substr(0, text.size() - 1).rfind('\n');
  if (end == text.npos) fields().fail("it has only one line");
  std::string_view const body = text.substr(0, end + 1);
  JsonLine expected;
  expected.add("xxh3", hex_of(hash_of_text(body)));
  if (text.substr(end + 1) != std::move(expected).str()) {
    fields().fail("its lines do not have the hash of its last line");
  }
  return body;
}

FRUGAL_INLINE Curation CurationReader::head(std::string_view text) {
  JsonFields const fields = this->fields();
  auto const all = fields.parse(text, "frugal curation");
  if (fields.version(all) > 1) fields.fail("a newer frugal wrote it; update frugal");
  expected_ = fields.number(all, "removed");
  return {.name = fields.text(all, "name"),
          .identity = fields.text(all, "identity"),
          .method = fields.text(all, "method"),
          .samples = fields.number(all, "samples"),
          .bytes = fields.number(all, "bytes"),
          .price = {.per_hour = real(all, "price_per_hour"),
                    .seconds_per_sample = real(all, "seconds_per_sample"),
                    .seconds_per_byte = real(all, "seconds_per_byte")},
          .candidates = fields.number(all, "candidates"),
          .compared = fields.number(all, "compared")};
}

FRUGAL_INLINE Removed CurationReader::row(std::string_view text, Curation const& so_far) const {
  JsonFields const fields = this->fields();
  JsonError error;
  auto const all = Json::parse(std::string(text), &error);
  if (!all) fields.fail("it is no JSON object: " + error.why);
  std::string const kind = fields.text(*all, "kind");
  if (kind != "copy" && kind != "near") fields.fail("its kind is neither copy nor near");
  Removed const out{.index = fields.number(*all, "index"),
                    .twin = fields.number(*all, "twin"),
                    .similarity = real(*all, "similarity"),
                    .copy = kind == "copy",
                    .through = fields.number(*all, "through"),
                    .through_similarity = real(*all, "through_similarity"),
                    .bytes = fields.number(*all, "bytes")};
  if (out.index >= so_far.samples || out.twin >= so_far.samples || out.through >= so_far.samples) {
    fields.fail("it names a sample beyond the last of " + std::to_string(so_far.samples));
  }
  if (out.twin == out.index) fields.fail("the sample is its own twin");
  if (!so_far.removed.empty() && out.index <= so_far.removed.back().index) {
    fields.fail("its samples are not in ascending order");
  }
  return out;
}

FRUGAL_INLINE double CurationReader::real(Json const& all, char const* name) const {
  auto const value = fields().member(all, name).as_double();
  if (!value) fields().fail("\"" + std::string(name) + "\" is no number");
  return *value;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::string curation_text(Curation const& curation, NameOfSample const& name) {
  std::string text = detail::head_line(curation);
  for (Removed const& each : curation.removed) text += detail::row_line(each, name);
  detail::JsonLine last;
  last.add("xxh3", hex_of(detail::hash_of_text(text)));
  return text + std::move(last).str();
}

}  // namespace frugal

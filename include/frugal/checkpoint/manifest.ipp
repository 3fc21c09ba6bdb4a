// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/manifest.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         name != Manifest::file_name && is_utf8(name) &&
         std::none_of(name.begin(), name.end(), [](char c) {
           return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::string Manifest::text() const {
  detail::JsonWriter out;
  out.object(detail::JsonLayout::lines).add("format", "frugal checkpoint");
  out.add("version", newest_version).add("step", step).add("serial", serial);
  out.add("saved_at", std::max<std::int64_t>(saved_at, 0)).key("metrics").object();
  // A name may hold any bytes; a save must not fail because of it.
  for (auto const& [name, value] : metrics) out.add(name, value);
  out.end().key("files").array();
  for (FileEntry const& file : files) {
    out.object(detail::JsonLayout::spaced).add("name", file.name).add("size", file.size);
    out.add("xxh3", hex_of(file.hash)).end();
  }
  std::uint64_t const hash = Hash::of(detail::bytes_of(out.end().text()));
  return out.add("xxh3", hex_of(hash)).str("\n");
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE Manifest read_manifest(std::string_view text, JsonFields const& fields,
                                     std::filesystem::path const& where) {
  auto const all = fields.parse(text, "frugal checkpoint");
  if (std::uint64_t const written = fields.version(all); written > Manifest::newest_version) {
    throw NewerFormatError(
        {.what = "the checkpoint has a newer format",
         .where = where.string(),
         .why = "its version is " + std::to_string(written) +
                ", and this library reads versions up to " +
                std::to_string(Manifest::newest_version),
         .fix = "Update frugal, or move this checkpoint out of the run directory."});
  }
  fields.only(all, {"format", "version", "step", "serial", "saved_at", "metrics", "files", "xxh3"});
  Manifest out;
  out.step = fields.number(all, "step");
  out.serial = fields.number(all, "serial");
  if (out.serial > Manifest::largest_serial) {
    fields.fail(fields.member(all, "serial"), "\"serial\" leaves no number for the next save");
  }
  out.saved_at = fields.time(all, "saved_at");
  for (Json const& metric : fields.object(all, "metrics")) {
    auto const value = metric.as_double();
    if (!value && !metric.is(Json::Kind::null)) {
      fields.fail(metric, "the metric \"" + metric.name() + "\" is not a number");
    }
    out.metrics[metric.name()] = value.value_or(std::numeric_limits<double>::quiet_NaN());
  }
  for (Json const& file : fields.array(all, "files")) {
    FileEntry entry{.name = fields.text(file, "name"), .size = 0, .hash = 0};
    fields.only(file, {"name", "size", "xxh3"});
    if (!is_file_name(entry.name)) fields.fail(file, "a file has an invalid name");
    entry.size = fields.number(file, "size");
    if (std::any_of(out.files.begin(), out.files.end(),
                    [&](FileEntry const& other) { return other.name == entry.name; })) {
      fields.fail(file, "\"" + entry.name + "\" is listed twice");
    }
    entry.hash = fields.hash(file, "xxh3");
    out.files.push_back(std::move(entry));
  }
  return out;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE Manifest parse_manifest(std::string_view text, std::filesystem::path const& where) {
  detail::JsonFields const fields(
      {.what = "the manifest of a checkpoint is damaged",
       .where = where.string(),
       .why = "",
       .fix = "Use another checkpoint, or restore this one from a copy."});
  std::size_t const tail = detail::manifest_seal.size() + 16 + 4;
  if (text.size() <= tail) fields.fail("it is cut off");
  std::string_view const body = text.substr(0, text.size() - tail);
  std::string const seal =
      std::string(detail::manifest_seal) + hex_of(Hash::of(detail::bytes_of(body))) + "\"\n}\n";
  if (text.substr(body.size()) != seal) {
    fields.fail("its last line does not hold the hash of what stands before it");
  }
  return detail::read_manifest(text, fields, where);
}

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/manifest.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/inline.hpp>

#include <algorithm>

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

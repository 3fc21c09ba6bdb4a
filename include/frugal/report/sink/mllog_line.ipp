// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/sink/mllog_line.hpp>

#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE std::string mllog_value(Event::Value const& value) {
  return JsonWriter().value(value).str();
}

FRUGAL_INLINE std::string mllog_object(
    std::vector<std::pair<std::string, Event::Value>> const& fields) {
  JsonWriter object;
  object.object(JsonLayout::spaced);
  for (auto const& [name, value] : fields) object.add(name, value);
  return object.str();
}

FRUGAL_INLINE std::string mllog_line(std::uint64_t time_ms, std::string_view event_type,
                                     std::string_view key, std::string_view value,
                                     std::string_view metadata) {
  JsonWriter line(":::MLLOG ");
  line.object(JsonLayout::spaced).add("namespace", "").add("time_ms", time_ms);
  line.add("event_type", event_type).add("key", key);
  line.key("value").raw(value).key("metadata").raw(metadata);
  return line.str("\n");
}

}  // namespace frugal::detail

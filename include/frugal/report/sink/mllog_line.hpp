// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <frugal/base/json_text.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/core/run/event.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// Values as one JSON object, in their order.
FRUGAL_INLINE std::string mllog_object(
    std::vector<std::pair<std::string, Event::Value>> const& fields);

FRUGAL_INLINE std::string mllog_value(Event::Value const& value) {
  std::string out;
  std::visit(
      [&](auto const& each) {
        using Value = std::remove_cvref_t<decltype(each)>;
        if constexpr (std::same_as<Value, std::string>) {
          append_json(out, as_utf8(each));
        } else if constexpr (std::integral<Value>) {
          out += std::to_string(each);
        } else {
          append_json(out, each);
        }
      },
      value);
  return out;
}

FRUGAL_INLINE std::string mllog_object(
    std::vector<std::pair<std::string, Event::Value>> const& fields) {
  std::string out = "{";
  for (auto const& [name, value] : fields) {
    if (out.size() > 1) out += ", ";
    append_json(out, as_utf8(name));
    out += ": " + mllog_value(value);
  }
  return out + "}";
}

/// A line as MLPerf's mllog writes it; `value` and `metadata` are JSON.
FRUGAL_INLINE std::string mllog_line(std::uint64_t time_ms, std::string_view event_type,
                                     std::string_view key, std::string_view value,
                                     std::string_view metadata) {
  std::string line = R"(:::MLLOG {"namespace": "", "time_ms": )" + std::to_string(time_ms) +
                     R"(, "event_type": ")" + std::string(event_type) + R"(", "key": )";
  append_json(line, as_utf8(key));
  line += R"(, "value": )";
  line += value;
  line += R"(, "metadata": )";
  line += metadata;
  return line + "}\n";
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/json_writer.hpp>
#include <frugal/core/run/event.hpp>

namespace frugal::detail {

std::string mllog_value(Event::Value const& value);

/// Values as one JSON object, in their order.
std::string mllog_object(std::vector<std::pair<std::string, Event::Value>> const& fields);

/// A line as MLPerf's mllog writes it; `value` and `metadata` are JSON.
std::string mllog_line(std::uint64_t time_ms, std::string_view event_type, std::string_view key,
                       std::string_view value, std::string_view metadata);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/sink/mllog_line.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/sink/record.hpp>

#include <frugal/inline.hpp>

#include <variant>

namespace frugal {

FRUGAL_INLINE MetricRecord& MetricRecord::add(std::string_view field, Event::Value value) {
  fields.emplace_back(std::string(field), std::move(value));
  return *this;
}

FRUGAL_INLINE Event::Value const* MetricRecord::find(std::string_view field) const {
  auto const found = std::find_if(fields.begin(), fields.end(),
                                  [&](Field const& each) { return each.first == field; });
  return found == fields.end() ? nullptr : &found->second;
}

FRUGAL_INLINE std::optional<double> MetricRecord::number(std::string_view field) const {
  Event::Value const* const value = find(field);
  return value == nullptr ? std::nullopt : number_in(*value);
}

FRUGAL_INLINE std::string_view MetricRecord::text(std::string_view field) const {
  Event::Value const* const value = find(field);
  auto const* const found = value == nullptr ? nullptr : std::get_if<std::string>(value);
  return found == nullptr ? std::string_view() : *found;
}

FRUGAL_INLINE std::optional<double> MetricRecord::number_in(Event::Value const& value) {
  if (auto const* const real = std::get_if<double>(&value)) return *real;
  if (auto const* const count = std::get_if<std::uint64_t>(&value)) {
    return static_cast<double>(*count);
  }
  return std::nullopt;
}

}  // namespace frugal

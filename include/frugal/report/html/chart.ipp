// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/chart.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/inline.hpp>

#include <array>
#include <cmath>
#include <cstdint>

namespace frugal::html {

FRUGAL_INLINE std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  bool const whole = std::abs(value) < 0x1p53 && value == std::trunc(value);
  return whole ? std::to_string(static_cast<std::int64_t>(value)) : detail::general(value, 7);
}

FRUGAL_INLINE void write_texts(detail::JsonWriter& json, std::string_view name,
                               std::vector<std::string> const& texts) {
  if (texts.empty()) return;
  json.key(name).array();
  for (std::string const& each : texts) json.value(each);
  json.end();
}

FRUGAL_INLINE void write_legend(detail::JsonWriter& json, std::vector<LegendKey> const& legend) {
  if (legend.empty()) return;
  json.key("legend").array();
  for (LegendKey const& each : legend) {
    json.object().add("kind", each.kind).add("name", each.name).add("spot", each.spot).end();
  }
  json.end();
}

FRUGAL_INLINE void write_chart(Page& page, Chart const& chart) {
  static constexpr std::array units{"plain", "count", "percent", "bytes", "dollars", "seconds"};
  auto const unit = [](Unit of) { return units[static_cast<std::size_t>(of)]; };
  detail::JsonWriter& json = page.begin("chart");
  json.add("title", chart.title).add("unit", unit(chart.unit));
  for (auto const& [name, text] :
       {std::pair{"id", &chart.id}, {"note", &chart.note}, {"about", &chart.about}}) {
    if (!text->empty()) json.add(name, *text);
  }
  if (chart.from_zero) json.add("zero", true);
  if (chart.may_be_logarithmic) json.add("log", true);
  auto const add_axes = [&](char const* name, std::vector<Axis> const& axes) {
    json.key(name).array();
    for (Axis const& each : axes) {
      json.object().add("id", each.id).add("name", each.name).add("unit", unit(each.unit));
      if (each.loose) json.add("loose", true);
      if (!each.ticks.empty()) json.key("ticks").array();
      for (auto const& [at, label] : each.ticks) json.array().value(at).value(label).end();
      if (!each.ticks.empty()) json.end();
      json.end();
    }
    json.end();
  };
  add_axes("axes", chart.axes);
  add_axes("columns", chart.columns);
  json.key("marks").array();
  for (Point const& mark : chart.marks) {
    json.object();
    for (Axis const& each : chart.axes) json.key(each.id).raw(json_number(mark.*each.of));
    json.end();
  }
  json.end().key("lines").array();
  for (ChartLine const& line : chart.lines) {
    auto const add_values = [&](std::string_view name, double Point::* of) {
      json.key(name).array();
      for (Point const& point : line.points) json.raw(json_number(point.*of));
      json.end();
    };
    json.object();
    if (chart.legend.empty()) {
      json.add("name", line.name).add("color", line.color);
    } else {
      json.add("kind", line.kind).add("dot", line.dot).add("path", line.path);
    }
    write_texts(json, "titles", line.titles);
    for (Axis const& each : chart.axes) add_values(each.id, each.of);
    for (Axis const& each : chart.columns) add_values(each.id, each.of);
    add_values("value", &Point::value);
    json.end();
  }
  json.end();
  write_legend(json, chart.legend);
  write_texts(json, "notes", chart.notes);
  if (chart.table) Page::write(json.key("table"), *chart.table);
  json.end();
}

}  // namespace frugal::html

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/levers.hpp>

#include <frugal/base/json.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/html/quantity.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace frugal::html {

FRUGAL_INLINE Levers parse_levers(std::string const& text, std::string const& where) {
  auto const refuse = [&](std::string why) -> DataError {
    return DataError({.what = "the table of levers cannot be read",
                      .where = where,
                      .why = std::move(why),
                      .fix = "Write it again, with frugal_plan or ./dev bench course."});
  };
  detail::JsonError error;
  auto const all = detail::Json::parse(text, &error);
  if (!all) throw refuse("at byte " + std::to_string(error.at) + ": " + error.why);
  auto const at = [](detail::Json const& value) {
    return " at byte " + std::to_string(value.at());
  };
  detail::Json const* const written = all->find("version");
  if (written == nullptr || written->as_unsigned() != std::uint64_t{1}) {
    throw refuse("its \"version\" is not 1");
  }
  auto const text_of = [](detail::Json const& parent, std::string_view name) {
    detail::Json const* const found = parent.find(name);
    return found != nullptr && found->is(detail::Json::Kind::text) ? found->text() : std::string();
  };
  Levers levers{.title = text_of(*all, "title")};
  for (char const* name : {"currency", "unit"}) {
    if (auto said = text_of(*all, name); !said.empty()) levers.unit = std::move(said);
  }
  detail::Json const* const steps = all->find("steps");
  if (steps == nullptr || !steps->is(detail::Json::Kind::array)) {
    throw refuse("it has no \"steps\"");
  }
  constexpr std::size_t most = 100;
  if (steps->items().size() > most) throw refuse("it has more than 100 steps");
  for (detail::Json const& each : steps->items()) {
    Levers::Step step{.name = text_of(each, "name")};
    detail::Json const* const value = each.find("value");
    if (step.name.empty()) throw refuse("a step has no \"name\"," + at(each));
    auto const number = value == nullptr ? std::nullopt : value->as_double();
    if (!number || !(*number >= 0) || *number > 1e15) {
      throw refuse("the \"value\" of a step is no amount from 0 to 1e15," + at(each));
    }
    step.value = *number;
    if (detail::Json const* const hours = each.find("hours")) step.hours = hours->as_double();
    step.note = text_of(each, "note");
    levers.steps.push_back(std::move(step));
  }
  if (levers.steps.empty()) throw refuse("its \"steps\" are empty");
  return levers;
}

FRUGAL_INLINE std::string amount_text(double value, std::string const& unit) {
  if (unit == "hours") return time_text(3600 * value);
  if (unit == "seconds") return time_text(value);
  return money_text(value, unit);
}

}  // namespace frugal::html

namespace frugal::html::parts {

FRUGAL_INLINE std::string share_text(double part, double of) {
  if (!(of > 0)) return no_value;
  double const percent = 100 * part / of;
  std::string const digits = detail::fixed(std::abs(percent), std::abs(percent) < 9.95 ? 1 : 0);
  return (percent < 0 ? minus : "") + digits + "%";
}

FRUGAL_INLINE std::string change_text(double planned, double actual) {
  if (!(planned > 0)) return "";
  return std::string(actual > planned ? " (+" : " (") + share_text(actual - planned, planned) + ")";
}

}  // namespace frugal::html::parts

namespace frugal::html {

FRUGAL_INLINE void write_waterfall(Page& page, Levers const& levers) {
  double most = 0;
  for (Levers::Step const& step : levers.steps) most = std::max(most, step.value);
  double const scale = most > 0 ? most : 1;
  double const first = levers.steps.front().value, last = levers.steps.back().value;
  std::vector<Bar> bars{{.name = levers.steps.front().name,
                         .value = amount_text(first, levers.unit),
                         .to = first / scale,
                         .note = levers.steps.front().note}};
  for (std::size_t i = 1; i < levers.steps.size(); ++i) {
    double const before = levers.steps[i - 1].value, after = levers.steps[i].value;
    bool const saves = after <= before;
    bars.push_back({.name = levers.steps[i].name,
                    .value = (saves ? minus : "+") +
                             amount_text(std::abs(before - after), levers.unit) + " (" +
                             (saves ? "" : "+") + parts::share_text(after - before, before) + ")",
                    .from = before / scale,
                    .to = after / scale,
                    .kind = saves ? "saved" : "more",
                    .note = levers.steps[i].note});
  }
  if (levers.steps.size() > 1) {
    std::string value = amount_text(last, levers.unit);
    if (last > 0 && first > last)
      value += ", 1/" + short_number(std::round(10 * first / last) / 10);
    bars.push_back({.name = "Result", .value = value, .to = last / scale});
  }
  page.bars(bars);
}

FRUGAL_INLINE void write_waterfall_section(Page& page, Levers const& levers) {
  page.section("savings", levers.title.empty() ? "What each lever saved" : levers.title);
  write_waterfall(page, levers);
}

}  // namespace frugal::html

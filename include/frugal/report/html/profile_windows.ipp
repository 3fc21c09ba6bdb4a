// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/profile_windows.hpp>

#include <frugal/base/html_text.hpp>
#include <frugal/base/json.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

namespace frugal::html {

FRUGAL_INLINE std::vector<ProfileWindow> parse_windows(std::string const& text,
                                                       std::string const& where) {
  using detail::Json;
  constexpr std::size_t most_windows = 1000, most_spots = 50;
  auto const refuse = [&](std::string why) {
    return DataError({.what = "the hot spots cannot be read",
                      .where = where,
                      .why = std::move(why),
                      .fix = "Remove the file, or profile again."});
  };
  detail::JsonError error;
  auto const all = Json::parse(text, &error);
  if (!all) throw refuse("at byte " + std::to_string(error.at) + ": " + error.why);
  Json const* const written = all->find("version");
  if (written == nullptr || written->as_unsigned() != std::uint64_t{1}) {
    throw refuse("its \"version\" is not 1");
  }
  auto const items = [&](Json const& parent, char const* name) -> std::vector<Json> const& {
    Json const* const found = parent.find(name);
    if (found == nullptr || !found->is(Json::Kind::array)) {
      throw refuse("\"" + std::string(name) + "\" is no array, at byte " +
                   std::to_string(parent.at()));
    }
    return found->items();
  };
  auto const number = [](Json const& parent, char const* name) {
    Json const* const found = parent.find(name);
    auto const value = found == nullptr ? std::nullopt : found->as_double();
    return value.value_or(std::numeric_limits<double>::quiet_NaN());
  };
  auto const text_of = [](Json const& parent, char const* name) {
    Json const* const found = parent.find(name);
    return found != nullptr && found->is(Json::Kind::text) ? detail::beginning(found->text(), 500)
                                                           : std::string();
  };
  std::vector<ProfileWindow> windows;
  for (Json const& each : items(*all, "windows")) {
    if (windows.size() == most_windows) windows.erase(windows.begin());
    ProfileWindow window{.step = number(each, "step"),
                         .seconds = number(each, "seconds"),
                         .step_seconds = number(each, "step_seconds"),
                         .overhead_seconds = number(each, "overhead_seconds"),
                         .bound = text_of(each, "bound"),
                         .advice = text_of(each, "advice"),
                         .trace = text_of(each, "trace"),
                         .memory = {}};
    double const idle = number(each, "device_idle");
    if (idle >= 0 && idle <= 1) window.device_idle = idle;
    for (Json const& spot : items(each, "hot_spots")) {
      HotSpot found{.name = text_of(spot, "name"),
                    .share = number(spot, "share"),
                    .microseconds = number(spot, "microseconds")};
      if (found.name.empty() || !(found.share >= 0)) {
        ++window.damaged;
        continue;
      }
      if (Json const* const calls = spot.find("calls")) {
        found.calls = calls->as_unsigned().value_or(0);
      }
      if (window.hot_spots.size() < most_spots) window.hot_spots.push_back(std::move(found));
    }
    if (each.find("memory") != nullptr) {
      for (Json const& point : items(each, "memory")) {
        double const at = number(point, "seconds");
        if (at >= 0) {
          window.memory.add({.step = window.step, .seconds = at, .value = number(point, "bytes")});
        }
      }
    }
    windows.push_back(std::move(window));
  }
  return windows;
}

}  // namespace frugal::html

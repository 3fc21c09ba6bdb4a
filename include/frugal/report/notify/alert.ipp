// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/notify/alert.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>

namespace frugal::notify {

FRUGAL_INLINE std::string Alert::json() const {
  detail::JsonWriter object;
  object.object().add("text", text);
  for (auto const& [name, value] : fields) object.add(name, value);
  return object.str();
}

FRUGAL_INLINE std::map<std::string, std::string> Alert::words() const {
  std::map<std::string, std::string> all{{"text", text}};
  for (auto const& [name, value] : fields) {
    all[name] = std::visit(
        [](auto const& each) {
          if constexpr (std::is_same_v<std::decay_t<decltype(each)>, std::string>) {
            return each;
          } else if constexpr (std::is_same_v<std::decay_t<decltype(each)>, double>) {
            return frugal::detail::fixed_short(each, 6);
          } else {
            return std::to_string(each);
          }
        },
        value);
  }
  return all;
}

FRUGAL_INLINE void Delivery::require_valid(std::string const& where) const {
  auto const refuse = [&](char const* name, auto value, char const* least) {
    throw SettingsError({.what = std::string(name) + " is " + std::to_string(value),
                         .where = where + ".delivery." + name,
                         .why = "no alert could be sent with it",
                         .fix = std::string("Give ") + least + " or more."});
  };
  if (attempts < 1) refuse("attempts", attempts, "1");
  if (most_waiting < 1) refuse("most_waiting", most_waiting, "1");
  if (first_wait.count() < 0) refuse("first_wait", first_wait.count(), "0 ms");
  if (longest_wait.count() < 0) refuse("longest_wait", longest_wait.count(), "0 ms");
  if (at_end.count() < 0) refuse("at_end", at_end.count(), "0 ms");
}

FRUGAL_INLINE Delivery Delivery::bounded() const {
  constexpr std::chrono::milliseconds most = std::chrono::hours(24 * 365);
  Delivery out = *this;
  for (auto* each : {&out.first_wait, &out.longest_wait, &out.at_end}) {
    *each = std::min(*each, most);
  }
  return out;
}

}  // namespace frugal::notify

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/error.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <istream>
#include <iterator>
#include <numeric>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Insertions, removals and exchanges of characters that make one text of another.
inline std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      std::size_t const exchanged = corner + (a[i] == b[j] ? 0 : 1);
      corner = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, exchanged});
    }
  }
  return row.back();
}

/// SettingsError for an option that a program does not have, with the nearest that it has.
[[noreturn]] inline void refuse_option(CLI::App const& app, std::string const& name,
                                       std::string const& where) {
  std::string nearest;
  std::size_t fewest = name.size() / 2 + 1;
  for (CLI::Option const* const each : app.get_options()) {
    for (std::string const& known : each->get_lnames()) {
      // The last part alone is a good guess, too: "lr" for "optimize.lr".
      bool const is_end = known.ends_with("." + name);
      std::size_t const edits = is_end ? 0 : edits_between(name, known);
      if (edits < fewest) {
        fewest = edits;
        nearest = known;
      }
    }
  }
  throw SettingsError(
      {.what = "there is no option '" + name + "'",
       .where = where,
       .why = nearest.empty() ? "no option has a name like it" : "the nearest is '" + nearest + "'",
       .fix = "Call the program with --help for a list."});
}

/// SettingsError for what no option of a program has taken.
inline void refuse_extras(CLI::App const& app) {
  for (std::string const& each : app.remaining()) {
    if (each.starts_with("--")) {
      refuse_option(app, each.substr(2, each.find('=') - 2), "the command line");
    }
  }
  if (app.remaining().empty()) return;
  throw SettingsError({.what = "'" + app.remaining().front() + "' is no option",
                       .where = "the command line",
                       .why = "options begin with --",
                       .fix = "Call the program with --help for a list."});
}

/// What CLI11 says of a command line.
[[noreturn]] inline void refuse_arguments(CLI::ParseError const& error) {
  if (dynamic_cast<CLI::FileError const*>(&error) != nullptr) {
    throw SettingsError({.what = error.what(),
                         .where = "--config",
                         .why = "the file of --config must be there",
                         .fix = "Give the path of a file that can be read."});
  }
  throw SettingsError({.what = error.what(),
                       .where = "the command line",
                       .why = "",
                       .fix = "Call the program with --help for a list of its options."});
}

/// A file of options: TOML as CLI11 reads it, or JSON, of which objects are sections.
class SettingsFile : public CLI::ConfigBase {
 public:
  explicit SettingsFile(CLI::App const& app) : app_(&app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::string const text{std::istreambuf_iterator<char>(input), {}};
    std::size_t const first = text.find_first_not_of(" \t\r\n");
    std::vector<CLI::ConfigItem> found;
    if (first != std::string::npos && text[first] == '{') {
      JsonError error;
      auto const all = Json::parse(text, &error);
      if (!all) refuse("byte " + std::to_string(error.at) + ": " + error.why);
      flatten(*all, "", found);
    } else {
      std::istringstream again(text);
      for (CLI::ConfigItem& each : CLI::ConfigBase::from_config(again)) {
        if (each.name == "++" || each.name == "--") continue;  // a section begins or ends
        std::string name;
        for (std::string const& parent : each.parents) name += parent + ".";
        add(found, name + each.name, each.inputs);
      }
    }
    for (CLI::ConfigItem const& each : found) {
      if (app_->get_option_no_throw("--" + each.name) == nullptr) {
        refuse_option(*app_, each.name, "the file of --config");
      }
    }
    return found;
  }

 private:
  [[noreturn]] static void refuse(std::string why) {
    throw SettingsError({.what = "the file of --config cannot be read",
                         .where = "--config",
                         .why = std::move(why),
                         .fix = "Write names and values: TOML with sections, or a JSON object."});
  }

  /// An option gets one text; values of an array are separated by commas.
  static void add(std::vector<CLI::ConfigItem>& items, std::string name,
                  std::vector<std::string> const& values) {
    std::string all;
    for (std::string const& each : values) all += (all.empty() ? "" : ",") + each;
    bool const twice =
        std::ranges::any_of(items, [&](CLI::ConfigItem const& each) { return each.name == name; });
    if (twice) refuse("'" + name + "' is there twice");
    items.push_back({.parents = {}, .name = std::move(name), .inputs = {all}});
  }

  static std::string text_of(Json const& value) {
    switch (value.kind()) {
      case Json::Kind::text:
      case Json::Kind::number:
        return value.text();
      case Json::Kind::boolean:
        return value.truth() ? "true" : "false";
      case Json::Kind::null:
        return "none";
      default:
        refuse("byte " + std::to_string(value.at()) +
               ": a value is a text, a number, true, false, null, or an array of these");
    }
  }

  static void flatten(Json const& object, std::string const& prefix,
                      std::vector<CLI::ConfigItem>& items) {
    for (Json const& each : object.items()) {
      std::string const name = prefix + each.name();
      if (each.is(Json::Kind::object)) {
        flatten(each, name + ".", items);
      } else if (each.is(Json::Kind::array)) {
        std::vector<std::string> values;
        for (Json const& value : each.items()) values.push_back(text_of(value));
        add(items, name, values);
      } else {
        add(items, name, {text_of(each)});
      }
    }
  }

  CLI::App const* app_;
};

}  // namespace frugal::detail

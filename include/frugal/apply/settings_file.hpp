// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/apply/setting.hpp>
#include <frugal/base/json.hpp>
#include <frugal/error.hpp>

#include <toml++/toml.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <istream>
#include <iterator>
#include <numeric>
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

/// A name of a settings file, and what it has there.
struct FileSetting {
  std::string name{};                 ///< with its sections: "optimize.lr"
  std::vector<std::string> values{};  ///< one, or those of an array
  bool is_array = false;
  bool is_null = false;     ///< JSON's null
  bool is_section = false;  ///< the name of a table or an object
};

[[noreturn]] inline void refuse_file_of_settings(std::string why) {
  throw SettingsError({.what = "the file of --config cannot be read",
                       .where = "--config",
                       .why = std::move(why),
                       .fix = "Write names and values: TOML with sections, or a JSON object."});
}

inline std::string toml_text(toml::node const& value) {
  if (auto const text = value.as_string()) return text->get();
  if (auto const truth = value.as_boolean()) return truth->get() ? "true" : "false";
  if (auto const whole = value.as_integer()) return std::to_string(whole->get());
  if (auto const number = value.as_floating_point()) {
    std::string text = setting_text(number->get());
    // A number with a fraction remains one: "3.0" is no number of epochs.
    if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
    return text;
  }
  refuse_file_of_settings("line " + std::to_string(value.source().begin.line) +
                          ": a value is a text, a number, true, false, or an array of these");
}

inline void flatten_toml(toml::table const& table, std::string const& prefix,
                         std::vector<FileSetting>& all) {
  for (auto const& [key, value] : table) {
    std::string const name = prefix + std::string(key.str());
    if (toml::table const* const section = value.as_table()) {
      all.push_back({.name = name, .is_section = true});
      flatten_toml(*section, name + ".", all);
    } else if (toml::array const* const array = value.as_array()) {
      FileSetting setting{.name = name, .is_array = true};
      for (toml::node const& each : *array) setting.values.push_back(toml_text(each));
      all.push_back(std::move(setting));
    } else {
      all.push_back({.name = name, .values = {toml_text(value)}});
    }
  }
}

inline std::vector<FileSetting> read_toml(std::string_view text) {
  std::vector<FileSetting> all;
  try {
    toml::table const table = toml::parse(text);
    flatten_toml(table, "", all);
  } catch (toml::parse_error const& error) {
    refuse_file_of_settings("line " + std::to_string(error.source().begin.line) + ": " +
                            std::string(error.description()));
  }
  return all;
}

/// A file of options: TOML, or JSON, of which objects are sections.
class SettingsFile : public CLI::ConfigBase {
 public:
  /// `own`: the options of a trainer, beside those of the program.
  SettingsFile(CLI::App const& app, std::vector<Option> own) : app_(&app), own_(std::move(own)) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::string text{std::istreambuf_iterator<char>(input), {}};
    if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // an editor's byte order mark
    std::size_t const first = text.find_first_not_of(" \t\r\n");
    std::vector<FileSetting> all;
    if (first != std::string::npos && text[first] == '{') {
      JsonError error;
      auto const object = Json::parse(text, &error);
      if (!object) refuse_file_of_settings("byte " + std::to_string(error.at) + ": " + error.why);
      flatten(*object, "", all);
    } else {
      all = read_toml(text);
    }
    std::vector<CLI::ConfigItem> items;
    for (FileSetting& each : all) {
      if (each.is_section) continue;
      if (app_->get_option_no_throw("--" + each.name) == nullptr) {
        refuse_option(*app_, each.name, "the file of --config");
      }
      if (std::ranges::find(items, each.name, &CLI::ConfigItem::name) != items.end()) {
        refuse_file_of_settings("'" + each.name + "' is there twice");
      }
      items.push_back({.parents = {}, .name = each.name, .inputs = inputs_of(each)});
    }
    // Last: the name of an option in it says more.
    for (FileSetting const& each : all) {
      if (each.is_section) require_section(each.name);
    }
    return items;
  }

 private:
  void require_section(std::string const& name) const {
    for (CLI::Option const* const each : app_->get_options()) {
      for (std::string const& known : each->get_lnames()) {
        if (known.starts_with(name + ".")) return;
      }
    }
    refuse_option(*app_, name, "a section of the file of --config");
  }

  /// An option of a trainer gets one text; values of an array are separated by commas.
  std::vector<std::string> inputs_of(FileSetting& setting) const {
    auto const own = std::ranges::find(own_, setting.name, &Option::name);
    bool const is_own = own != own_.end();
    if (setting.is_null && !(is_own && own->is_optional)) {
      refuse_setting(setting.name, "null", "it always has a value", "Give one, or leave it out.");
    }
    if (!is_own) return std::move(setting.values);
    std::string all;
    for (std::string const& each : setting.values) {
      all += (all.empty() ? "" : ",") + each;
      if (setting.is_array && each.find(',') != std::string::npos) {
        refuse_setting(setting.name, each, "commas separate its values",
                       "Give values without commas.");
      }
    }
    if (setting.is_array && !own->is_row) {
      refuse_setting(setting.name, "[" + all + "]", "it has one value, and no array",
                     "Give the value without brackets.");
    }
    return {all};
  }

  static std::string text_of(Json const& value) {
    switch (value.kind()) {
      case Json::Kind::text:
      case Json::Kind::number:
        return value.text();
      case Json::Kind::boolean:
        return value.truth() ? "true" : "false";
      default:
        refuse_file_of_settings("byte " + std::to_string(value.at()) +
                                ": a value is a text, a number, true, false, null, or an array of "
                                "texts, numbers and truth values");
    }
  }

  static void flatten(Json const& object, std::string const& prefix,
                      std::vector<FileSetting>& all) {
    for (Json const& each : object.items()) {
      std::string const name = prefix + each.name();
      if (each.is(Json::Kind::object)) {
        all.push_back({.name = name, .is_section = true});
        flatten(each, name + ".", all);
        continue;
      }
      FileSetting setting{.name = name, .is_array = each.is(Json::Kind::array)};
      setting.is_null = each.is(Json::Kind::null);
      if (setting.is_array) {
        for (Json const& value : each.items()) setting.values.push_back(text_of(value));
      } else {
        setting.values.push_back(setting.is_null ? "none" : text_of(each));
      }
      all.push_back(std::move(setting));
    }
  }

  CLI::App const* app_;
  std::vector<Option> own_;
};

}  // namespace frugal::detail

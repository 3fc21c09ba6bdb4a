// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/apply/page_options.hpp>
#include <frugal/apply/setting.hpp>
#include <frugal/apply/settings_file.hpp>
#include <frugal/core/compose/about.hpp>
#include <frugal/core/compose/composition.hpp>
#include <frugal/error.hpp>
#include <frugal/trainer.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal {

namespace detail {

/// "ClipNorm" of frugal::ClipNorm<...>.
template <class T>
std::string bare_type_name() {
  std::string_view const full = type_name<T>();
  std::string_view const name = full.substr(0, full.find('<'));
  std::size_t const colon = name.rfind(':');
  return std::string(colon == std::string_view::npos ? name : name.substr(colon + 1));
}

/// "clip_norm" of "ClipNorm".
inline std::string snake_case(std::string_view name) {
  std::string text;
  for (char const c : name) {
    bool const upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (upper && !text.empty()) text += '_';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

/// The name, or "csv_2" for the second of a name.
inline std::string numbered(std::map<std::string, int>& seen, std::string name) {
  int const number = ++seen[name];
  return number == 1 ? name : name + "_" + std::to_string(number);
}

inline std::string effect_of(std::string_view owner, std::string_view member) {
  std::string const name = std::string(owner) + "." + std::string(member);
  for (PageOption const& each : page_options) {
    if (each.name == name) return std::string(each.effect);
  }
  return {};
}

/// Adds the members of one object, and of the aggregates that it has.
class OptionList {
 public:
  OptionList(std::vector<Option>& all, std::map<std::string, std::string>& set)
      : all_(all), set_(set) {}

  /// `prefix` is what its options begin with: "optimize.", or nothing.
  template <class Object>
  void add(Object& object, std::string const& prefix, std::string const& owner) {
    group_ = owner;
    collect(object, prefix, owner, "");
  }

 private:
  template <class Object>
  void collect(Object& object, std::string const& prefix, std::string const& owner,
               std::string const& inside) {
    auto const visit = [&](std::string_view name, auto& member, std::string help = {}) {
      using T = std::remove_reference_t<decltype(member)>;
      std::string const path = inside + std::string(name);
      if constexpr (std::is_const_v<T>) {
        // A constant of the type.
      } else if constexpr (is_setting<T>()) {
        if (help.empty()) help = effect_of(owner, path);
        if (help.empty()) help = effect_of(bare_type_name<Object>(), name);
        add_one(prefix + path, member, std::move(help));
      } else if constexpr (std::is_class_v<T> && std::is_aggregate_v<T>) {
        if (inside.empty()) collect(member, prefix, owner, path + ".");
      }
    };
    if constexpr (requires { object.each_option(visit); }) {
      object.each_option(visit);
    } else if constexpr (type_name<Object>().starts_with("frugal::")) {
      each_page_option(object, visit);
    }
    // The metrics of Validate, likewise.
    if constexpr (requires { std::tuple_size<decltype(object.metrics)>::value; }) {
      std::map<std::string, int> seen;
      auto const look = [&](auto& metric) {
        if constexpr (requires { metric.each_option(visit); }) {
          std::string const type = bare_type_name<std::remove_reference_t<decltype(metric)>>();
          collect(metric, prefix + numbered(seen, snake_case(type)) + ".", type, "");
        }
      };
      std::apply([&](auto&... metric) { (look(metric), ...); }, object.metrics);
    }
    // The curves of a Schedule, by their names.
    if constexpr (requires { std::tuple_size<decltype(object.parts)>::value; }) {
      std::map<std::string, int> seen;
      auto const look = [&](auto& part) {
        using Part = std::remove_reference_t<decltype(part)>;
        if constexpr (requires { std::string_view(Part::name); }) {
          collect(part, prefix + numbered(seen, std::string(Part::name)) + ".",
                  bare_type_name<Part>(), "");
        }
      };
      std::apply([&](auto&... part) { (look(part), ...); }, object.parts);
    }
  }

  template <class T>
  void add_one(std::string const& name, T& member, std::string help) {
    // A policy's own list may name a member twice.
    std::string unique = name;
    for (int number = 2; has(unique); ++number) unique = name + "_" + std::to_string(number);
    all_.push_back({.name = unique,
                    .group = group_,
                    .help = std::move(help),
                    .type = setting_type<T>(),
                    .before = setting_text(member),
                    .is_optional = is_optional_setting<T>,
                    .is_row = is_setting_row<T>,
                    .set = [&member, &set = set_, unique](std::string const& text) {
                      member = setting_of<T>(unique, text);
                      set[unique] = setting_text(member);
                    }});
  }
  bool has(std::string const& name) const {
    return std::ranges::find(all_, name, &Option::name) != all_.end();
  }

  std::vector<Option>& all_;
  std::map<std::string, std::string>& set_;
  std::string group_;
};

}  // namespace detail

/// The members of a trainer's settings, objective and policies that a text may set, in the order of the
/// recipe. They refer to the trainer, which must not move.
///
/// A policy of yours adds its own by `void each_option(auto&& visit) { visit("ratio", ratio, "help"); }`.
template <class Trainer>
std::vector<Option> options_of(Trainer& trainer) {
  std::vector<Option> all;
  detail::OptionList list(all, trainer.settings().options);
  list.add(trainer.settings(), "", "Settings");
  using Objective = std::remove_reference_t<decltype(trainer.objective())>;
  list.add(trainer.objective(), "objective.", detail::bare_type_name<Objective>());
  auto& values = detail::TrainerAccess::values_of(trainer);
  std::map<std::string, int> seen;
  auto const look = [&]<class P>(P& policy) {
    std::string const owner = detail::bare_type_name<P>();
    list.add(policy, detail::numbered(seen, detail::snake_case(owner)) + ".", owner);
  };
  [&]<std::size_t... Is>(std::index_sequence<Is...>) {
    (look(detail::get<Is>(values)), ...);
  }(std::make_index_sequence<Trainer::policies::size>{});
  return all;
}

/// Adds the options of a trainer to those of a program of yours, and `--config`, a file that sets them.
/// The trainer must live, where it is, until the program's options are parsed.
template <class Trainer>
void add_options(CLI::App& app, Trainer& trainer) {
  std::vector<Option> own = options_of(trainer);
  for (Option const& each : own) {
    app.add_option_function<std::string>("--" + each.name, each.set, each.help)
        ->type_name(each.type)
        ->default_str(each.before)
        ->group(each.group);
  }
  app.set_config("--config", "",
                 "a TOML or JSON file with these names; the command line is stronger")
      ->check([](std::string const& file) {
        return std::string(file.empty() ? "a file has a name" : "");
      });
  app.config_formatter(std::make_shared<detail::SettingsFile>(app, std::move(own)));
}

/// Sets members of a trainer's settings, objective and policies from the command line, and from the file
/// that `--config` names: `--epochs 5 --optimize.lr 1e-3 --schedule.warmup.steps 200`.
///
/// A policy's options have its name in lower case and the member's: `--clip_norm.max_norm`; the second of
/// a name is `csv_2`. `--help` prints them all, and ends the program with exit code 0. What was set is in
/// Settings::options.
///
/// Errors  SettingsError for an option that does not exist, with the nearest name; for a value of another
///         type; for a file that cannot be read.
template <class Trainer>
void apply(Trainer& trainer, int argc, char const* const* argv) {
  CLI::App app(trainer.name());
  add_options(app, trainer);
  app.allow_extras();
  try {
    app.parse(argc, argv);
    detail::refuse_extras(app);
  } catch (CLI::CallForHelp const&) {
    std::cout << app.help();
    std::exit(0);
  } catch (CLI::ParseError const& error) {
    detail::refuse_arguments(error);
  }
}

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <frugal/base/json.hpp>
#include <frugal/base/whole_file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal {

/// A model's config.json, as Hugging Face writes it. Copies share it.
///
/// Errors  FormatError with file and key for a key that is missing, and for a value of another type,
///         such as a number that does not fit into the integer; StoreError for a file that cannot be
///         read.
///
///     auto const config = ModelConfig::read("all-minilm");
///     int const width = config.get<int>("hidden_size");
///     double const epsilon = config.get<double>("layer_norm_eps", 1e-12);
class ModelConfig {
 public:
  /// Of a file, or of config.json in a folder.
  FRUGAL_INLINE static ModelConfig read(std::filesystem::path path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) path /= "config.json";
    return parse(detail::read_whole_file(path), path.string());
  }

  /// Of a text; errors call it `name`.
  FRUGAL_INLINE static ModelConfig parse(std::string text, std::string name = "config.json") {
    detail::JsonError error;
    auto all = detail::Json::parse(std::move(text), &error);
    if (!all || !all->is(Kind::object)) {
      throw FormatError({.what = "the file is not a model's configuration",
                         .where = name + (all ? "" : ", byte " + std::to_string(error.at)),
                         .why = all ? "it is not a JSON object" : error.why,
                         .fix = "Give the config.json of a model."});
    }
    return ModelConfig(std::make_shared<detail::Json const>(*std::move(all)), std::move(name));
  }

  /// Whether the key is there; a null counts as missing.
  bool has(std::string_view key) const { return find(key) != nullptr; }

  /// The value of a key: bool, an integer, a floating-point number, std::string, or a std::vector of
  /// one of these.
  template <class T>
  T get(std::string_view key) const {
    if (detail::Json const* const value = find(key)) return as<T>(*value, key);
    std::string keys;
    for (detail::Json const& each : all_->items()) keys += (keys.empty() ? "" : ", ") + each.name();
    refuse(key, "it is missing", "its keys are " + keys);
  }
  /// The same, or another value if the key is missing.
  template <class T>
  T get(std::string_view key, T otherwise) const {
    detail::Json const* const value = find(key);
    return value == nullptr ? std::move(otherwise) : as<T>(*value, key);
  }

  /// An object within the file, such as "rope_scaling".
  FRUGAL_INLINE ModelConfig part(std::string_view key) const {
    detail::Json const* const value = find(key);
    if (value == nullptr || !value->is(Kind::object)) {
      refuse(key, value == nullptr ? "it is missing" : "it is not an object", "");
    }
    return ModelConfig({all_, value}, name_ + ", " + std::string(key));
  }

  /// The file, as errors name it.
  std::string const& name() const { return name_; }

 private:
  using Kind = detail::Json::Kind;

  FRUGAL_INLINE ModelConfig(std::shared_ptr<detail::Json const> all, std::string name)
      : all_(std::move(all)), name_(std::move(name)) {}

  FRUGAL_INLINE detail::Json const* find(std::string_view key) const {
    detail::Json const* const value = all_->find(key);
    return value == nullptr || value->is(Kind::null) ? nullptr : value;
  }

  [[noreturn]] FRUGAL_INLINE void refuse(std::string_view key, std::string const& what,
                                         std::string why) const {
    throw FormatError({.what = "\"" + std::string(key) + "\" cannot be read: " + what,
                       .where = name_,
                       .why = std::move(why),
                       .fix = "Give the config.json of this kind of model, or a default."});
  }

  template <class T>
  T as(detail::Json const& value, std::string_view key) const {
    if constexpr (std::same_as<T, bool>) {
      if (value.is(Kind::boolean)) return value.truth();
      refuse(key, "it is not true or false", "");
    } else if constexpr (std::integral<T>) {
      auto const found = value.as_signed();
      if (found && std::in_range<T>(*found)) return static_cast<T>(*found);
      refuse(key, "it is not an integer of the type that is asked for", value.text());
    } else if constexpr (std::floating_point<T>) {
      if (auto const found = value.as_double()) return static_cast<T>(*found);
      refuse(key, "it is not a number", value.text());
    } else if constexpr (std::same_as<T, std::string>) {
      if (value.is(Kind::text)) return value.text();
      refuse(key, "it is not a text", value.text());
    } else {
      if (!value.is(Kind::array)) refuse(key, "it is not a list", "");
      T all;
      for (detail::Json const& each : value.items()) {
        all.push_back(as<typename T::value_type>(each, key));
      }
      return all;
    }
  }

  std::shared_ptr<detail::Json const> all_;
  std::string name_;
};

}  // namespace frugal

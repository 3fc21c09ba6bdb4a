// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <frugal/base/json.hpp>

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
  static ModelConfig read(std::filesystem::path path);

  /// Of a text; errors call it `name`.
  static ModelConfig parse(std::string text, std::string name = "config.json");

  /// Whether the key is there; a null counts as missing.
  bool has(std::string_view key) const { return find(key) != nullptr; }

  /// Whether the key is there with a null, which may mean another thing than the default.
  bool is_null(std::string_view key) const;

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
  ModelConfig part(std::string_view key) const;

  /// The file, as errors name it.
  std::string const& name() const { return name_; }

 private:
  using Kind = detail::Json::Kind;

  ModelConfig(std::shared_ptr<detail::Json const> all, std::string name);

  detail::Json const* find(std::string_view key) const;

  [[noreturn]] void refuse(std::string_view key, std::string const& what, std::string why) const;

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

#ifndef FRUGAL_COMPILED
#include <frugal/model/model_config.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/model_config.hpp>

#include <frugal/base/file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstdint>
#include <optional>
#include <system_error>
#include <vector>

namespace frugal {

FRUGAL_INLINE ModelConfig ModelConfig::read(std::filesystem::path path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) path /= "config.json";
  return parse(detail::read_whole_file(path), path.string());
}

FRUGAL_INLINE ModelConfig ModelConfig::parse(std::string text, std::string name) {
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

FRUGAL_INLINE ModelConfig ModelConfig::part(std::string_view key) const {
  detail::Json const* const value = find(key);
  if (value == nullptr || !value->is(Kind::object)) {
    refuse(key, value == nullptr ? "it is missing" : "it is not an object", "");
  }
  return ModelConfig({all_, value}, name_ + ", " + std::string(key));
}

FRUGAL_INLINE ModelConfig::ModelConfig(std::shared_ptr<detail::Json const> all, std::string name)
    : all_(std::move(all)), name_(std::move(name)) {}

FRUGAL_INLINE detail::Json const* ModelConfig::find(std::string_view key) const {
  detail::Json const* const value = all_->find(key);
  return value == nullptr || value->is(Kind::null) ? nullptr : value;
}

FRUGAL_INLINE bool ModelConfig::is_null(std::string_view key) const {
  detail::Json const* const value = all_->find(key);
  return value != nullptr && value->is(Kind::null);
}

FRUGAL_INLINE void ModelConfig::refuse(std::string_view key, std::string const& what,
                                       std::string why) const {
  throw FormatError({.what = "\"" + std::string(key) + "\" cannot be read: " + what,
                     .where = name_,
                     .why = std::move(why),
                     .fix = "Give the config.json of this kind of model, or a default."});
}

}  // namespace frugal

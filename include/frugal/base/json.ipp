// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json.hpp>

#include <frugal/inline.hpp>

#include <limits>
#include <set>

namespace frugal::detail {

FRUGAL_INLINE Json const* Json::find(std::string_view name) const {
  if (kind_ != Kind::object) return nullptr;
  auto const found = std::find_if(items_.begin(), items_.end(),
                                  [&](Json const& item) { return item.name_ == name; });
  return found == items_.end() ? nullptr : &*found;
}

FRUGAL_INLINE bool Json::Builder::Bool(bool truth) {
  Json value = of(Kind::boolean, truth ? 4 : 5);
  value.truth_ = truth;
  return add(std::move(value));
}

FRUGAL_INLINE bool Json::Builder::RawNumber(char const*, unsigned size, bool) {
  Json value = of(Kind::number, size);
  value.text_ = stream_.last(size);
  return add(std::move(value));
}

FRUGAL_INLINE bool Json::Builder::String(char const* text, unsigned size, bool) {
  if (!is_json_text({text, size})) return false;
  Json value = of(Kind::text, 0);
  value.at_ = stream_.text_began() - 1;
  value.text_.assign(text, size);
  return add(std::move(value));
}

FRUGAL_INLINE bool Json::Builder::Key(char const* text, unsigned size, bool) {
  name_.assign(text, size);
  return is_json_text(name_);
}

FRUGAL_INLINE Json Json::Builder::of(Kind kind, std::size_t size) const {
  Json value;
  value.kind_ = kind;
  value.at_ = stream_.Tell() - size;
  return value;
}

FRUGAL_INLINE bool Json::Builder::add(Json value) {
  value.name_ = std::exchange(name_, {});
  if (open_.empty()) {
    open_.push_back(std::move(value));
  } else {
    open_.back().items_.push_back(std::move(value));
  }
  return true;
}

FRUGAL_INLINE bool Json::Builder::open(Kind kind) {
  if (open_.size() == deepest) return false;
  open_.push_back(of(kind, 1));
  open_.back().name_ = std::exchange(name_, {});
  return true;
}

FRUGAL_INLINE bool Json::Builder::close() {
  if (open_.size() == 1) return true;
  Json value = std::move(open_.back());
  open_.pop_back();
  open_.back().items_.push_back(std::move(value));
  return true;
}

FRUGAL_INLINE std::optional<Json> Json::parse(std::string text, JsonError* error) {
  JsonStream stream(text.data(), text.size());
  Builder builder(stream);
  if (auto fault = parse_json(stream, builder)) {
    if (error != nullptr) *error = *std::move(fault);
    return std::nullopt;
  }
  return builder.take();
}

FRUGAL_INLINE Json JsonFields::parse(std::string_view text, std::string_view format) const {
  JsonError error;
  std::optional<Json> all = Json::parse(std::string(text), &error);
  if (!all) fail_at(error.at, "it is not a JSON object");
  if (!all->is(Json::Kind::object)) fail(*all, "it is not a JSON object");
  Json const* const found = all->find("format");
  if (found == nullptr || !found->is(Json::Kind::text) || found->text() != format) {
    fail(found == nullptr ? *all : *found,
         "\"format\" does not say \"" + std::string(format) + "\"");
  }
  return *std::move(all);
}

FRUGAL_INLINE std::uint64_t JsonFields::version(Json const& all) const {
  std::uint64_t const found = number(all, "version");
  if (found == 0) fail(member(all, "version"), "there was never a version 0");
  return found;
}

FRUGAL_INLINE void JsonFields::only(Json const& parent,
                                    std::initializer_list<std::string_view> names) const {
  for (Json const& item : members(parent)) {
    if (std::find(names.begin(), names.end(), item.name()) == names.end()) {
      fail(item, "\"" + item.name() + "\" is not known");
    }
  }
}

FRUGAL_INLINE Json const& JsonFields::member(Json const& parent, char const* name) const {
  if (!parent.is(Json::Kind::object)) {
    fail(parent, "an object is missing where \"" + std::string(name) + "\" goes");
  }
  Json const* const found = parent.find(name);
  if (found == nullptr) fail(parent, "\"" + std::string(name) + "\" is missing");
  return *found;
}

FRUGAL_INLINE std::vector<Json> const& JsonFields::array(Json const& parent,
                                                         char const* name) const {
  Json const& value = member(parent, name);
  if (!value.is(Json::Kind::array)) fail(value, "\"" + std::string(name) + "\" is not an array");
  return value.items();
}

FRUGAL_INLINE std::vector<Json> const& JsonFields::object(Json const& parent,
                                                          char const* name) const {
  Json const& value = member(parent, name);
  if (!value.is(Json::Kind::object)) fail(value, "\"" + std::string(name) + "\" is not an object");
  return members(value);
}

FRUGAL_INLINE std::uint64_t JsonFields::number(Json const& parent, char const* name) const {
  Json const& found = member(parent, name);
  auto const value = found.as_unsigned();
  if (!value || *value > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    fail(found, "\"" + std::string(name) + "\" is not a number from 0 to 2^63 - 1");
  }
  return *value;
}

FRUGAL_INLINE std::string JsonFields::text(Json const& parent, char const* name) const {
  Json const& value = member(parent, name);
  return value.is(Json::Kind::text) ? value.text() : std::string();
}

FRUGAL_INLINE std::uint64_t JsonFields::hash(Json const& parent, char const* name) const {
  std::uint64_t out = 0;
  Json const& value = member(parent, name);
  std::string const digits = text(parent, name);
  for (char const c : digits) {
    auto const digit = std::string_view("0123456789abcdef").find(c);
    if (digit == std::string_view::npos) fail(value, "a hash has an invalid digit");
    out = out << 4U | digit;
  }
  if (digits.size() != 16) fail(value, "a hash does not have 16 digits");
  return out;
}

FRUGAL_INLINE void JsonFields::fail(std::string why) const {
  Fault fault = fault_;
  fault.why = std::move(why);
  throw FormatError(std::move(fault));
}

FRUGAL_INLINE std::vector<Json> const& JsonFields::members(Json const& parent) const {
  std::set<std::string_view> names;
  for (Json const& item : parent.items()) {
    if (!names.insert(item.name()).second) fail(item, "\"" + item.name() + "\" is there twice");
  }
  return parent.items();
}

FRUGAL_INLINE void JsonFields::fail_at(std::size_t byte, std::string why) const {
  Fault fault = fault_;
  fault.where += ", byte " + std::to_string(byte);
  fault.why = std::move(why);
  throw FormatError(std::move(fault));
}

}  // namespace frugal::detail

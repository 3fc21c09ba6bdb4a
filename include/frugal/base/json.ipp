// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/inline.hpp>

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

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/pickle_stack.hpp>

#include <frugal/base/text_width.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstring>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE PickleValue const* PickleValue::find(std::string_view key) const {
  for (std::size_t i = 0; kind == Kind::dict && i < items.size(); i += 2) {
    if (items[i]->is(Kind::text) && items[i]->text == key) return items[i + 1];
  }
  return nullptr;
}

FRUGAL_INLINE std::string shown(std::string_view text) {
  constexpr std::size_t most = 100;
  return watch::printable(text.substr(0, most)) + (text.size() > most ? "..." : "");
}

FRUGAL_INLINE PickleStack::PickleStack(std::string_view bytes, std::string place)
    : bytes_(bytes), place_(std::move(place)) {}

FRUGAL_INLINE void PickleStack::refuse(std::string what, std::string why, std::string fix) const {
  throw FormatError({.what = std::move(what),
                     .where = place_ + ", byte " + std::to_string(began_) + " of data.pkl",
                     .why = std::move(why),
                     .fix = std::move(fix)});
}

FRUGAL_INLINE void PickleStack::damaged(std::string why) const {
  refuse("the pickle is damaged", std::move(why), "Restore the file from a copy.");
}

FRUGAL_INLINE void PickleStack::refuse_object(std::string why) const {
  refuse("the file has more than tensors",
         std::move(why) + ", and frugal never runs code of a file",
         "In a Python that may trust the file, save the tensors alone: "
         "torch.save(model.state_dict(), FILE).");
}

FRUGAL_INLINE std::string_view PickleStack::take(std::uint64_t count) {
  if (count > bytes_.size() - at_) damaged("it ends in the middle");
  std::string_view const taken = bytes_.substr(at_, count);
  at_ += count;
  return taken;
}

FRUGAL_INLINE std::uint64_t PickleStack::number(std::size_t width) {
  std::uint64_t value = 0;
  std::memcpy(&value, take(width).data(), width);
  return value;
}

FRUGAL_INLINE std::string PickleStack::line() {
  std::size_t const end = bytes_.find('\n', at_);
  if (end == std::string_view::npos) damaged("it ends in the middle");
  std::string const text(take(end - at_));
  ++at_;
  return text;
}

FRUGAL_INLINE PickleValue* PickleStack::made(Kind kind) {
  arena_.push_back({.kind = kind});
  return &arena_.back();
}

FRUGAL_INLINE void PickleStack::push(PickleValue* value) { stack_.push_back(value); }

FRUGAL_INLINE void PickleStack::push_text(std::string_view text) {
  push(made(Kind::text));
  stack_.back()->text = text;
}

FRUGAL_INLINE void PickleStack::push_integer(std::int64_t value, Kind kind) {
  push(made(kind));
  stack_.back()->number = value;
}

FRUGAL_INLINE PickleValue* PickleStack::top() const {
  if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) {
    damaged("it takes from an empty stack");
  }
  return stack_.back();
}

FRUGAL_INLINE PickleValue* PickleStack::pop() {
  PickleValue* const value = top();
  stack_.pop_back();
  return value;
}

FRUGAL_INLINE std::vector<PickleValue*> PickleStack::pop_to_mark() {
  if (marks_.empty()) damaged("a mark is missing");
  auto const from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  std::vector<PickleValue*> values(from, stack_.end());
  stack_.erase(from, stack_.end());
  marks_.pop_back();
  return values;
}

FRUGAL_INLINE void PickleStack::push_tuple(std::vector<PickleValue*> values) {
  push(made(Kind::tuple));
  stack_.back()->items = std::move(values);
}

FRUGAL_INLINE void PickleStack::push_tuple(std::size_t count) {
  std::vector<PickleValue*> values(count);
  while (count-- > 0) values[count] = pop();
  push_tuple(std::move(values));
}

FRUGAL_INLINE void PickleStack::append(std::vector<PickleValue*> const& values, Kind to) {
  PickleValue* const target = top();
  if (!target->is(to)) damaged("it fills what is not a list or a dict");
  if (to == Kind::dict && values.size() % 2 != 0) damaged("a key has no value");
  target->items.insert(target->items.end(), values.begin(), values.end());
}

FRUGAL_INLINE void PickleStack::remember(std::uint64_t number) { memo_[number] = top(); }

FRUGAL_INLINE void PickleStack::recall(std::uint64_t number) {
  auto const found = memo_.find(number);
  if (found == memo_.end()) damaged("it uses what it has not made");
  push(found->second);
}

FRUGAL_INLINE unsigned char PickleStack::next() {
  began_ = at_;
  return static_cast<unsigned char>(take(1)[0]);
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/tensor_pickle.hpp>

#include <frugal/base/text_width.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
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

FRUGAL_INLINE TensorPickle::TensorPickle(std::string_view bytes, std::string place)
    : PickleStack(bytes, std::move(place)) {
  while (root_ == nullptr) run(next());
}

FRUGAL_INLINE void TensorPickle::run(unsigned char opcode) {
  switch (opcode) {
    case 0x80:
      return version(number(1));
    case 0x95:
      return static_cast<void>(take(8));  // FRAME: a hint for buffering
    case '(':
      return mark();
    case '.':
      return stop();
    case '0':
      return static_cast<void>(pop());
    case 'N':
      return push(made(Kind::none));
    case 0x88:
      return push_integer(1, Kind::boolean);
    case 0x89:
      return push_integer(0, Kind::boolean);
    case 'J':
      return push_integer(static_cast<std::int32_t>(number(4)));
    case 'K':
      return push_integer(static_cast<std::int64_t>(number(1)));
    case 'M':
      return push_integer(static_cast<std::int64_t>(number(2)));
    case 0x8a:
      return push_long(number(1));
    case 'G':
      return push_real();
    case 'X':
      return push_text(take(number(4)));
    case 0x8c:
      return push_text(take(number(1)));
    case 0x8d:
      return push_text(take(number(8)));
    case ')':
      return push_tuple(std::vector<PickleValue*>{});
    case 't':
      return push_tuple(pop_to_mark());
    case 0x85:
      return push_tuple(1);
    case 0x86:
      return push_tuple(2);
    case 0x87:
      return push_tuple(3);
    case ']':
      return push(made(Kind::list));
    case '}':
      return push(made(Kind::dict));
    case 'a':
      return append_one();
    case 'e':
      return append(pop_to_mark(), Kind::list);
    case 's':
      return set_one();
    case 'u':
      return append(pop_to_mark(), Kind::dict);
    case 'q':
      return remember(number(1));
    case 'r':
      return remember(number(4));
    case 0x94:
      return remember(remembered());
    case 'h':
      return recall(number(1));
    case 'j':
      return recall(number(4));
    case 'c':
      return global();
    case 0x93:
      return stack_global();
    case 'Q':
      return push(storage_of(pop()));
    case 'R':
      return reduce();
    case 'b':
      return build();
    default:
      break;
  }
  constexpr std::string_view digits = "0123456789abcdef";
  refuse_object(std::string("it has the opcode 0x") + digits[opcode >> 4U] + digits[opcode & 15U] +
                ", which no state dict needs");
}

FRUGAL_INLINE void TensorPickle::version(std::uint64_t protocol) const {
  if (protocol < 2 || protocol > 5) damaged("its protocol is " + std::to_string(protocol));
}

FRUGAL_INLINE void TensorPickle::stop() {
  PickleValue* const value = pop();
  if (!is_empty()) damaged("it leaves values on the stack");
  root_ = value;
}

FRUGAL_INLINE void TensorPickle::push_long(std::uint64_t width) {
  if (width > 8) damaged("an integer has more than 64 bits");
  std::uint64_t value = number(width);
  bool const negative = width != 0 && width != 8 && (value >> (8 * width - 1) & 1U) != 0;
  if (negative) value |= ~std::uint64_t{0} << (8 * width);
  push_integer(static_cast<std::int64_t>(value));
}

FRUGAL_INLINE void TensorPickle::push_real() {
  std::uint64_t bits = 0;
  for (char const byte : take(8)) bits = bits << 8U | static_cast<unsigned char>(byte);
  push(made(Kind::real));
  top()->real = std::bit_cast<double>(bits);
}

FRUGAL_INLINE void TensorPickle::append_one() {
  PickleValue* const value = pop();
  append({value}, Kind::list);
}

FRUGAL_INLINE void TensorPickle::set_one() {
  PickleValue* const value = pop();
  PickleValue* const key = pop();
  append({key, value}, Kind::dict);
}

FRUGAL_INLINE void TensorPickle::build() {
  pop();
  if (!top()->is(Kind::dict)) refuse_object("it sets the attributes of an object");
}

FRUGAL_INLINE void TensorPickle::global() {
  std::string const module = line();
  push_global(module + "." + line());
}

FRUGAL_INLINE void TensorPickle::stack_global() {
  PickleValue const* const name = pop();
  PickleValue const* const module = pop();
  if (!name->is(Kind::text) || !module->is(Kind::text)) damaged("a global has no name");
  push_global(std::string(module->text) + "." + std::string(name->text));
}

FRUGAL_INLINE void TensorPickle::push_global(std::string const& name) {
  constexpr std::array<std::string_view, 8> functions{"collections.OrderedDict",
                                                      "torch._utils._rebuild_tensor_v2",
                                                      "torch._utils._rebuild_tensor_v3",
                                                      "torch._utils._rebuild_parameter",
                                                      "torch.Size",
                                                      "torch.device",
                                                      "torch.storage.UntypedStorage",
                                                      "torch.UntypedStorage"};
  push(made(Kind::global));
  auto const* const function = std::find(functions.begin(), functions.end(), name);
  if (function != functions.end()) {
    top()->text = *function;
    return;
  }
  constexpr std::string_view package = "torch.";
  for (PickleType const& each : pickle_types) {
    bool const is_storage = each.storage == name;
    if (!is_storage && (!name.starts_with(package) || name.substr(package.size()) != each.plain)) {
      continue;
    }
    top()->text = is_storage ? each.storage : each.plain;
    top()->type = each.plain;
    return;
  }
  refuse_object("it names " + shown(name));
}

FRUGAL_INLINE PickleValue* TensorPickle::storage_of(PickleValue const* id) {
  if (!id->is(Kind::tuple) || id->items.size() != 5 || !id->items[1]->is(Kind::global) ||
      !id->items[2]->is(Kind::text) || !id->items[4]->is(Kind::integer)) {
    damaged("a tensor's storage is not named as torch.save names it");
  }
  PickleValue* const storage = made(Kind::storage);
  storage->text = id->items[2]->text;
  storage->type = id->items[1]->type;
  storage->number = id->items[4]->number;
  return storage;
}

FRUGAL_INLINE void TensorPickle::reduce() {
  PickleValue const* const arguments = pop();
  PickleValue const* const called = pop();
  if (!called->is(Kind::global) || !arguments->is(Kind::tuple)) damaged("it calls a value");
  auto const& items = arguments->items;
  if (called->text == "collections.OrderedDict" && items.empty()) return push(made(Kind::dict));
  if (called->text == "torch._utils._rebuild_tensor_v2") return push(tensor(items, false));
  if (called->text == "torch._utils._rebuild_tensor_v3") return push(tensor(items, true));
  if (called->text == "torch._utils._rebuild_parameter" && !items.empty()) return push(items[0]);
  if (called->text == "torch.Size" || called->text == "torch.device") {
    return push(made(Kind::none));  // of no interest
  }
  damaged("it calls " + std::string(called->text) + " with other arguments than torch.save gives");
}

FRUGAL_INLINE PickleValue* TensorPickle::tensor(std::vector<PickleValue*> const& arguments,
                                                bool typed) {
  if (arguments.size() < (typed ? 7U : 6U) || !arguments[0]->is(Kind::storage) ||
      !arguments[1]->is(Kind::integer)) {
    damaged("a tensor is not made as torch.save makes it");
  }
  PickleValue* const made_tensor = made(Kind::tensor);
  made_tensor->storage = arguments[0];
  made_tensor->number = arguments[1]->number;
  made_tensor->sizes = integers(*arguments[2]);
  made_tensor->strides = integers(*arguments[3]);
  made_tensor->type = typed ? arguments[6]->type : arguments[0]->type;
  if (made_tensor->sizes.size() != made_tensor->strides.size()) {
    damaged("a tensor has not as many strides as sizes");
  }
  if (made_tensor->type.empty()) damaged("a tensor has no type");
  std::size_t const known = typed ? 7 : 6;
  if (arguments.size() > known) made_tensor->view = set_bit(*arguments[known]);
  return made_tensor;
}

FRUGAL_INLINE std::string_view TensorPickle::set_bit(PickleValue const& metadata) const {
  if (metadata.is(Kind::none)) return {};
  if (!metadata.is(Kind::dict)) damaged("a tensor's metadata is no dict");
  for (std::size_t i = 0; i < metadata.items.size(); i += 2) {
    PickleValue const& key = *metadata.items[i];
    PickleValue const& value = *metadata.items[i + 1];
    if (!key.is(Kind::text)) damaged("a tensor's metadata has a key without a name");
    if (!value.is(Kind::boolean) || value.number != 0) return key.text;
  }
  return {};
}

FRUGAL_INLINE std::vector<std::int64_t> TensorPickle::integers(PickleValue const& tuple) const {
  constexpr std::size_t most = 64;  // LibTorch's own limit
  if (!tuple.is(Kind::tuple)) damaged("a tensor's sizes are no tuple");
  if (tuple.items.size() > most) damaged("a tensor has more than 64 dimensions");
  std::vector<std::int64_t> values;
  for (PickleValue const* const each : tuple.items) {
    if (!each->is(Kind::integer) || each->number < 0) damaged("a tensor's size is not a number");
    values.push_back(each->number);
  }
  return values;
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <frugal/base/text_width.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

/// What a pickle of tensors is made of. Owned by its TensorPickle. Texts are where the pickle has them: one
/// text may be that of many values, and copies of it would take memory without bound.
struct PickleValue {
  enum class Kind : unsigned char {
    none,
    boolean,
    integer,
    real,
    text,
    tuple,
    list,
    dict,
    global,
    storage,
    tensor,
  };

  Kind kind = Kind::none;
  std::int64_t number = 0;  ///< integer, boolean; of a tensor its offset in elements
  double real = 0;
  std::string_view text{};            ///< of a storage its key, of a global its name
  std::vector<PickleValue*> items{};  ///< of a dict key, value, key, value
  std::string_view type{};  ///< "float32", of a storage or tensor; of a global that is one
  std::vector<std::int64_t> sizes{};
  std::vector<std::int64_t> strides{};
  PickleValue const* storage = nullptr;
  std::string_view view{};  ///< of a tensor that is one of its storage's numbers changed: "conj"

  bool is(Kind wanted) const { return kind == wanted; }
  /// The value of a key, in a dict; null without it.
  FRUGAL_INLINE PickleValue const* find(std::string_view key) const {
    for (std::size_t i = 0; kind == Kind::dict && i < items.size(); i += 2) {
      if (items[i]->is(Kind::text) && items[i]->text == key) return items[i + 1];
    }
    return nullptr;
  }
};

/// A text of a file as errors show it. It may be most of the file.
FRUGAL_INLINE std::string shown(std::string_view text) {
  constexpr std::size_t most = 100;
  return watch::printable(text.substr(0, most)) + (text.size() > most ? "..." : "");
}

/// The state of reading a pickle: its bytes, and the stack, marks and memo of its values.
class PickleStack {
 public:
  FRUGAL_INLINE PickleStack(std::string_view bytes, std::string place)
      : bytes_(bytes), place_(std::move(place)) {}
  PickleStack(PickleStack const&) = delete;
  PickleStack& operator=(PickleStack const&) = delete;

 protected:
  using Kind = PickleValue::Kind;

  [[noreturn]] FRUGAL_INLINE void refuse(std::string what, std::string why, std::string fix) const {
    throw FormatError({.what = std::move(what),
                       .where = place_ + ", byte " + std::to_string(began_) + " of data.pkl",
                       .why = std::move(why),
                       .fix = std::move(fix)});
  }
  [[noreturn]] FRUGAL_INLINE void damaged(std::string why) const {
    refuse("the pickle is damaged", std::move(why), "Restore the file from a copy.");
  }
  [[noreturn]] FRUGAL_INLINE void refuse_object(std::string why) const {
    refuse("the file has more than tensors",
           std::move(why) + ", and frugal never runs code of a file",
           "In a Python that may trust the file, save the tensors alone: "
           "torch.save(model.state_dict(), FILE).");
  }

  // ---- the bytes --------------------------------------------------------------------------------

  FRUGAL_INLINE std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) damaged("it ends in the middle");
    std::string_view const taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }
  /// A little-endian number of so many bytes.
  FRUGAL_INLINE std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    std::memcpy(&value, take(width).data(), width);
    return value;
  }
  FRUGAL_INLINE std::string line() {
    std::size_t const end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) damaged("it ends in the middle");
    std::string const text(take(end - at_));
    ++at_;
    return text;
  }

  // ---- the stack --------------------------------------------------------------------------------

  FRUGAL_INLINE PickleValue* made(Kind kind) {
    arena_.push_back({.kind = kind});
    return &arena_.back();
  }
  FRUGAL_INLINE void push(PickleValue* value) { stack_.push_back(value); }
  FRUGAL_INLINE void push_text(std::string_view text) {
    push(made(Kind::text));
    stack_.back()->text = text;
  }
  FRUGAL_INLINE void push_integer(std::int64_t value, Kind kind = Kind::integer) {
    push(made(kind));
    stack_.back()->number = value;
  }
  FRUGAL_INLINE PickleValue* top() const {
    if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) {
      damaged("it takes from an empty stack");
    }
    return stack_.back();
  }
  FRUGAL_INLINE PickleValue* pop() {
    PickleValue* const value = top();
    stack_.pop_back();
    return value;
  }
  /// What was pushed since the last mark.
  FRUGAL_INLINE std::vector<PickleValue*> pop_to_mark() {
    if (marks_.empty()) damaged("a mark is missing");
    auto const from = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleValue*> values(from, stack_.end());
    stack_.erase(from, stack_.end());
    marks_.pop_back();
    return values;
  }
  FRUGAL_INLINE void push_tuple(std::vector<PickleValue*> values) {
    push(made(Kind::tuple));
    stack_.back()->items = std::move(values);
  }
  FRUGAL_INLINE void push_tuple(std::size_t count) {
    std::vector<PickleValue*> values(count);
    while (count-- > 0) values[count] = pop();
    push_tuple(std::move(values));
  }
  FRUGAL_INLINE void append(std::vector<PickleValue*> const& values, Kind to) {
    PickleValue* const target = top();
    if (!target->is(to)) damaged("it fills what is not a list or a dict");
    if (to == Kind::dict && values.size() % 2 != 0) damaged("a key has no value");
    target->items.insert(target->items.end(), values.begin(), values.end());
  }
  FRUGAL_INLINE void remember(std::uint64_t number) { memo_[number] = top(); }
  FRUGAL_INLINE void recall(std::uint64_t number) {
    auto const found = memo_.find(number);
    if (found == memo_.end()) damaged("it uses what it has not made");
    push(found->second);
  }

  /// The next opcode; errors name its byte.
  FRUGAL_INLINE unsigned char next() {
    began_ = at_;
    return static_cast<unsigned char>(take(1)[0]);
  }
  bool is_empty() const { return stack_.empty() && marks_.empty(); }
  void mark() { marks_.push_back(stack_.size()); }
  std::size_t remembered() const { return memo_.size(); }

 private:
  std::string_view bytes_;
  std::string place_;
  std::size_t at_ = 0;
  std::size_t began_ = 0;          ///< of the opcode that is being read
  std::deque<PickleValue> arena_;  ///< pickles may refer to themselves
  std::vector<PickleValue*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, PickleValue*> memo_;
};

}  // namespace frugal::detail

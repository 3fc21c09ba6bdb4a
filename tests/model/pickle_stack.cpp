// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/model/pickle_stack.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace frugal_test::model_pickle_stack {

using frugal::detail::PickleStack;
using frugal::detail::PickleValue;

/// What TensorPickle sees of it.
struct Stack : PickleStack {
  explicit Stack(std::string_view bytes = {}) : PickleStack(bytes, "file") {}
  using Kind = PickleStack::Kind;
  using PickleStack::append, PickleStack::is_empty, PickleStack::line, PickleStack::made,
      PickleStack::mark, PickleStack::next, PickleStack::number, PickleStack::pop,
      PickleStack::pop_to_mark, PickleStack::push, PickleStack::push_integer,
      PickleStack::push_text, PickleStack::push_tuple, PickleStack::recall, PickleStack::remember,
      PickleStack::remembered, PickleStack::take, PickleStack::top;
};

template <class Call>
void refuses(Call const& call, std::string const& why) {
  CAPTURE(why);
  CHECK_THROWS_WITH_AS(call(), doctest::Contains(why.c_str()), frugal::FormatError);
}

TEST_CASE("numbers are little-endian, and a line ends before its newline") {
  Stack stack(std::string_view("\x01\x02\x03posix\n\n\xff", 11));
  CHECK(stack.number(2) == 0x0201);
  CHECK(stack.number(1) == 3);
  CHECK(stack.line() == "posix");
  CHECK(stack.line().empty());
  CHECK(stack.next() == 0xff);
}

TEST_CASE("what ends too early is refused at the byte of its opcode") {
  Stack stack("ab12");
  stack.next();
  stack.next();
  refuses([&] { static_cast<void>(stack.take(3)); }, "byte 1 of data.pkl): it ends in the middle");
  refuses([&] { static_cast<void>(stack.take(~std::uint64_t{0})); }, "it ends in the middle");
  refuses([&] { static_cast<void>(stack.line()); }, "it ends in the middle");
  CHECK(stack.take(2) == "12");
}

TEST_CASE("values since a mark are taken in the order in which they were pushed") {
  Stack stack;
  stack.push_integer(1);
  stack.mark();
  stack.push_integer(2);
  stack.mark();
  stack.push_integer(3);
  stack.push_integer(4);
  auto const inner = stack.pop_to_mark();
  REQUIRE(inner.size() == 2);
  CHECK(inner[0]->number == 3);
  CHECK(inner[1]->number == 4);
  CHECK(stack.pop_to_mark().size() == 1);
  CHECK(stack.pop()->number == 1);
  CHECK(stack.is_empty());
  refuses([&] { stack.pop_to_mark(); }, "a mark is missing");
}

TEST_CASE("nothing is taken from below a mark, and a mark is no empty stack") {
  Stack stack;
  stack.push_integer(1);
  stack.mark();
  refuses([&] { stack.pop(); }, "takes from an empty stack");
  refuses([&] { stack.remember(0); }, "takes from an empty stack");
  CHECK(stack.pop_to_mark().empty());
  stack.pop();
  stack.mark();
  CHECK_FALSE(stack.is_empty());
}

TEST_CASE("a tuple has its values in order") {
  Stack stack;
  stack.push_integer(1);
  stack.push_integer(2);
  stack.push_tuple(2);
  REQUIRE(stack.top()->items.size() == 2);
  CHECK(stack.top()->items[0]->number == 1);
  CHECK(stack.top()->items[1]->number == 2);
  refuses([&] { stack.push_tuple(2); }, "takes from an empty stack");
}

TEST_CASE("a dict finds a value by a text, and takes keys only with values") {
  Stack stack;
  stack.push_text("1");
  PickleValue* const text = stack.pop();
  stack.push_integer(1);
  PickleValue* const number = stack.pop();
  stack.push(stack.made(Stack::Kind::dict));
  stack.append({number, text, text, number}, Stack::Kind::dict);
  CHECK(stack.top()->find("1") == number);
  CHECK(stack.top()->find("") == nullptr);
  refuses([&] { stack.append({text}, Stack::Kind::dict); }, "a key has no value");
  refuses([&] { stack.append({text}, Stack::Kind::list); }, "fills what is not a list or a dict");
  CHECK(text->find("1") == nullptr);
}

TEST_CASE("a value that is remembered is recalled itself, by its number") {
  Stack stack;
  stack.push(stack.made(Stack::Kind::list));
  stack.remember(300);
  CHECK(stack.remembered() == 1);
  refuses([&] { stack.recall(0); }, "uses what it has not made");
  stack.recall(300);
  PickleValue const* const again = stack.pop();
  CHECK(again == stack.pop());
}

TEST_CASE("an error shows the beginning of a text, without what moves a cursor") {
  CHECK(frugal::detail::shown("encoder.weight") == "encoder.weight");
  CHECK(frugal::detail::shown("a\x1b[2J\xff") == "a?[2J?");
  CHECK(frugal::detail::shown(std::string(101, 'n')) == std::string(100, 'n') + "...");
  CHECK(frugal::detail::shown(std::string(100, 'n')) == std::string(100, 'n'));
}

}  // namespace frugal_test::model_pickle_stack

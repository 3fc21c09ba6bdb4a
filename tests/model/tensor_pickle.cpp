// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/model/tensor_pickle.hpp>

#include "support/pickle.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::model_tensor_pickle {

using frugal::detail::PickleValue;
using frugal::detail::TensorPickle;
using support::Pickle;
using Kind = PickleValue::Kind;

void refuses(std::string const& bytes, std::string const& why) {
  CAPTURE(why);
  CHECK_THROWS_WITH_AS(TensorPickle(bytes, "file"), doctest::Contains(why.c_str()),
                       frugal::FormatError);
}

TEST_CASE("a pickle is dicts, lists, tuples, texts, numbers and tensors") {
  Pickle pickle;
  pickle.raw("}(");
  pickle.text("n").raw("N").text("t").raw("\x88").text("f").raw("\x89");
  pickle.text("i").integer(-7).text("k").raw("K\xff").text("m").raw(
      std::string_view("M\x00\x01", 3));
  pickle.text("l").raw(std::string_view("\x8a\x02\x00\xff", 4)).text("g");
  pickle.raw(std::string_view("G\x3f\xf8\x00\x00\x00\x00\x00\x00", 9));
  pickle.text("list")
      .raw(
          "](K\x01K\x02"
          "eK\x03"
          "a")
      .text("pair")
      .raw("K\x04K\x05\x86");
  pickle.text("w").tensor("0", "Half", 6, 1, {2, 3}, {1, 2}).raw("u");
  std::string const bytes = pickle.done();
  TensorPickle const read(bytes, "file");
  PickleValue const& root = read.root();
  REQUIRE(root.is(Kind::dict));
  CHECK(root.find("n")->is(Kind::none));
  CHECK(root.find("t")->number == 1);
  CHECK(root.find("f")->is(Kind::boolean));
  CHECK(root.find("i")->number == -7);
  CHECK(root.find("k")->number == 255);
  CHECK(root.find("m")->number == 256);
  CHECK(root.find("l")->number == -256);
  CHECK(root.find("g")->real == 1.5);
  REQUIRE(root.find("list")->items.size() == 3);
  CHECK(root.find("list")->items[2]->number == 3);
  CHECK(root.find("pair")->items[1]->number == 5);
  CHECK(root.find("x") == nullptr);
  PickleValue const& tensor = *root.find("w");
  REQUIRE(tensor.is(Kind::tensor));
  CHECK(tensor.type == "float16");
  CHECK(tensor.number == 1);
  CHECK(tensor.sizes == std::vector<std::int64_t>{2, 3});
  CHECK(tensor.strides == std::vector<std::int64_t>{1, 2});
  CHECK(tensor.storage->text == "0");
}

TEST_CASE("a value that a pickle remembers is the same one, even if it is filled later") {
  // {"a": d, "b": d}, with d filled through the second.
  std::string const bytes = Pickle()
                                .raw("}(")
                                .text("a")
                                .raw("}q\x05")
                                .text("b")
                                .raw("h\x05")
                                .text("k")
                                .raw("K\x07su")
                                .done();
  TensorPickle const read(bytes, "file");
  CHECK(read.root().find("a") == read.root().find("b"));
  CHECK(read.root().find("a")->find("k")->number == 7);
}

TEST_CASE("a text that many values have is there once") {
  std::string storages = Pickle().raw("((").text("storage").global("torch", "FloatStorage").done();
  storages.pop_back();  // its end
  storages += Pickle().text("key").text("cpu").integer(6).raw("tq\x01Qh\x01Qt").done().substr(2);
  TensorPickle const read(storages, "file");
  auto const& items = read.root().items;
  REQUIRE(items.size() == 2);
  CHECK(items[0] != items[1]);
  CHECK(items[0]->text == "key");
  CHECK(static_cast<void const*>(items[0]->text.data()) == items[1]->text.data());
}

TEST_CASE("a pickle that names code is refused at its name, and nothing is called") {
  refuses(Pickle().global("posix", "system").text("touch pwned").raw("\x85R").done(),
          "it names posix.system, and frugal never runs code of a file");
  refuses(Pickle().text("builtins").text("eval").raw("\x93").done(), "it names builtins.eval");
  refuses(Pickle().global("torch.nn.modules.linear", "Linear").raw(")\x81").done(),
          "it names torch.nn.modules.linear.Linear");
  // As TorchScript names its classes.
  refuses(Pickle().global("__torch__.Net", "Net").raw(")\x81").done(),
          "it names __torch__.Net.Net");
  refuses(Pickle().global("torch._utils", "_rebuild_qtensor").done(), "_rebuild_qtensor");
  refuses(Pickle().global("m", std::string(9000, 'n')).done(), "nnn..., and frugal");
  // Opcodes that make objects, or look them up in a registry.
  refuses(Pickle().raw("(ios\nsystem\n").done(), "the opcode 0x69");
  refuses(Pickle().raw(std::string_view("\x82\x01", 2)).done(), "the opcode 0x82");
  // The attributes of a tensor; those of a state dict are its versions.
  refuses(Pickle().tensor("0", "Float", 1, 0, {1}, {1}).raw("}b").done(),
          "it sets the attributes of an object");
  std::string const versions =
      Pickle().dict([](Pickle&) {}).raw("}(").text("_metadata").raw("Nub").done();
  CHECK(TensorPickle(versions, "file").root().is(Kind::dict));
}

TEST_CASE("a damaged pickle is refused with the byte, wherever it ends") {
  std::string const bytes =
      Pickle()
          .dict([](Pickle& to) { to.text("w").tensor("0", "Float", 6, 0, {2, 3}, {3, 1}); })
          .done();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK_THROWS_AS(TensorPickle(std::string_view(bytes).substr(0, size), "file"),
                    frugal::FormatError);
  }
  refuses(std::string("\x80\x07") + "N.", "its protocol is 7");
  refuses(Pickle().raw("t").done(), "a mark is missing");
  refuses(Pickle().raw("(0").done(), "takes from an empty stack");
  refuses(Pickle().raw("NN").done(), "leaves values on the stack");
  refuses(Pickle().raw("h\x01").done(), "uses what it has not made");
  refuses(Pickle().raw("}(Nu").done(), "a key has no value");
  refuses(Pickle().raw("N(Nu").done(), "fills what is not a list or a dict");
  refuses(Pickle().raw("NQ").done(), "storage is not named");
  refuses(Pickle().tensor("0", "Float", 6, 0, {2, -3}, {3, 1}).done(), "size is not a number");
  refuses(Pickle().tensor("0", "Float", 6, 0, {2, 3}, {1}).done(), "as many strides as sizes");
  refuses(Pickle().tensor("0", "Float", 6, 0, std::vector<std::int32_t>(65, 1), {}).done(),
          "more than 64 dimensions");
  refuses(Pickle().raw("\x8a\x09xxxxxxxxx").done(), "more than 64 bits");
  // Without this, a tensor with sizes of another kind would be a scalar.
  refuses(Pickle()
              .global("torch._utils", "_rebuild_tensor_v2")
              .raw("((")
              .text("storage")
              .global("torch", "FloatStorage")
              .text("0")
              .text("cpu")
              .integer(6)
              .raw("tQ")
              .integer(0)
              .raw("NN\x89NtR")
              .done(),
          "sizes are no tuple");
}

}  // namespace frugal_test::model_tensor_pickle

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

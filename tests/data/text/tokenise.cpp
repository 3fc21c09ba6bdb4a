// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/text/tokenise.hpp>

#include <doctest/doctest.h>

#include <frugal/core/source/sample_set.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal_test::data_text_tokenise {

using frugal::Encoded;
using Pair = std::pair<std::size_t, std::size_t>;
using frugal::Documents;

TEST_CASE("tokens are appended and cut with their types and spans") {
  Encoded one, two;
  one.push(7, 0, {0, 3});
  one.push(8, 0, {4, 6});
  two.push(9, 1, {0, 1});
  one.append(two);
  one.resize(1);
  one.append(two);
  Encoded expected;
  expected.push(7, 0, {0, 3});
  expected.push(9, 1, {0, 1});
  CHECK(one == expected);
  CHECK(one.size() == 2);
}

// Values of tokenizers 0.23, strategy longest_first; tests/interop/wordpiece.py compares many more.
TEST_CASE("the longer of two texts is cut first, and the odd token is the longer's") {
  using frugal::detail::longest_first;
  CHECK(longest_first(3, 4, 7) == Pair{3, 4});
  CHECK(longest_first(3, 9, 7) == Pair{3, 4});
  CHECK(longest_first(9, 3, 7) == Pair{4, 3});
  CHECK(longest_first(9, 9, 7) == Pair{3, 4});
  CHECK(longest_first(10, 9, 7) == Pair{4, 3});
  CHECK(longest_first(0, 9, 4) == Pair{0, 4});
  CHECK(longest_first(5, 5, 0) == Pair{0, 0});
  CHECK(longest_first(5, 5, frugal::detail::no_token_limit) == Pair{5, 5});
}

/// Bytes as ids.
struct Bytes {
  void append_ids(std::string_view text, std::vector<std::int32_t>& ids) const {
    if (text.starts_with("bad")) throw std::runtime_error(std::string(text));
    for (char const c : text) ids.push_back(static_cast<unsigned char>(c));
  }
  std::string identity() const { return "bytes"; }
};
static_assert(frugal::Tokenizer<Bytes> && !frugal::Tokenizer<std::string>);

std::vector<std::string> texts(std::size_t count) {
  std::vector<std::string> made;
  for (std::size_t i = 0; i < count; ++i)
    made.push_back(std::string(i % 7, 'x') + std::to_string(i));
  return made;
}

struct Set {
  std::uint64_t size() const { return 1000; }
  std::string get(std::uint64_t index) const { return std::to_string(index); }
};

TEST_CASE("each text becomes a document, in order, for any number of threads") {
  for (std::size_t const count : {0U, 1U, 255U, 256U, 257U, 3000U}) {
    Documents expected;
    for (std::string const& text : texts(count)) {
      std::vector<std::int32_t> ids;
      Bytes{}.append_ids(text, ids);
      expected.append(ids);
    }
    for (std::size_t threads = 0; threads <= 8; ++threads) {
      CHECK(frugal::tokenise(texts(count), Bytes{}, threads) == expected);
    }
  }
}

TEST_CASE("a set of texts is tokenised as a range is") {
  std::vector<std::string> same;
  for (std::uint64_t i = 0; i < Set{}.size(); ++i) same.push_back(Set{}.get(i));
  CHECK(frugal::tokenise(Set{}, Bytes{}, 3) == frugal::tokenise(same, Bytes{}, 1));
}

TEST_CASE("the error is that of the first text with one, for any number of threads") {
  auto some = texts(4000);
  for (std::size_t const at : {3900U, 2000U, 700U, 3000U}) some[at] = "bad " + std::to_string(at);
  for (std::size_t threads = 1; threads <= 8; ++threads) {
    CHECK_THROWS_WITH(static_cast<void>(frugal::tokenise(some, Bytes{}, threads)), "bad 700");
  }
}

TEST_CASE("every chunk is done once, and those before a failed one always are") {
  std::vector<std::atomic<int>> done(500);
  frugal::detail::Chunks(500).run(4, [&](std::size_t chunk) { ++done[chunk]; });
  for (auto const& times : done) CHECK(times == 1);
  std::vector<std::atomic<int>> before(500);
  CHECK_THROWS(frugal::detail::Chunks(500).run(4, [&](std::size_t chunk) {
    if (chunk == 300) throw 1;
    ++before[chunk];
  }));
  for (std::size_t chunk = 0; chunk < 300; ++chunk) CHECK(before[chunk] == 1);
}

using Tokens = std::vector<std::int32_t>;

static_assert(frugal::SampleSet<Documents> && frugal::IdentifiedSet<Documents>);

Documents of(std::vector<Tokens> const& all) {
  Documents made;
  for (Tokens const& tokens : all) made.append(tokens);
  return made;
}

Tokens read(Documents const& documents, std::uint64_t index) {
  auto const tokens = documents.get(index);
  return {tokens.begin(), tokens.end()};
}

TEST_CASE("documents come back as they were added, empty ones too") {
  Documents const documents = of({{1, 2, 3}, {}, {4}});
  CHECK(documents.size() == 3);
  CHECK(documents.tokens() == 4);
  CHECK(read(documents, 0) == Tokens{1, 2, 3});
  CHECK(read(documents, 1).empty());
  CHECK(read(documents, 2) == Tokens{4});
  CHECK(documents.length(0) == 3);
  CHECK(frugal::sample_name(documents, 2) == "document 2");
}

TEST_CASE("appending a collection gives what appending its documents gives") {
  Documents joined = of({{1, 2}, {}});
  joined.append(of({{3}, {4, 5}}));
  CHECK(joined == of({{1, 2}, {}, {3}, {4, 5}}));
}

TEST_CASE("the identity changes with a token, and with a boundary") {
  CHECK(of({{1, 2}, {3}}).identity() == of({{1, 2}, {3}}).identity());
  CHECK(of({{1, 2}, {3}}).identity() != of({{1, 2}, {4}}).identity());
  CHECK(of({{1, 2}, {3}}).identity() != of({{1}, {2, 3}}).identity());
}

}  // namespace frugal_test::data_text_tokenise

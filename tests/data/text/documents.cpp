// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/text/documents.hpp>

#include <cstdint>
#include <vector>

namespace frugal_test::data_text_documents {

using frugal::Documents;
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

}  // namespace frugal_test::data_text_documents

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/tar_index.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::data_shards_tar_index {

using frugal::DataError;
using frugal::detail::TarIndex;
using frugal::detail::TarIndexBuilder;

constexpr frugal::detail::TarStamp stamp{.size = 10'000, .time = 77};

TarIndex small() {
  TarIndexBuilder builder("t.tar", stamp);
  builder.add("a/0.jpg", {512, 5});
  builder.add("a/0.cls", {1536, 1});
  builder.add("a/1.jpg", {2560, 0});
  return builder.finish();
}

/// The samples as text: "key: extension offset+size, ...".
std::vector<std::string> told(TarIndex const& index) {
  std::vector<std::string> out;
  for (std::uint64_t i = 0; i < index.samples(); ++i) {
    std::string line(index.key(i));
    for (std::uint64_t m = index.first_member(i); m < index.end_member(i); ++m) {
      auto const member = index.member(m);
      line += " " + std::string(member.extension) + " " + std::to_string(member.place.offset) +
              "+" + std::to_string(member.place.size);
    }
    out.push_back(line);
  }
  return out;
}

std::string why(TarIndexBuilder& builder, std::string const& name,
                frugal::detail::MemberPlace const& place) {
  try {
    builder.add(name, place);
  } catch (DataError const& error) {
    return error.fault().why;
  }
  return "nothing was thrown";
}

TEST_CASE("the hash of the content is that of a copy, and no other's") {
  auto const hash = [](frugal::detail::TarStamp const& of, std::uint64_t size = 5) {
    TarIndexBuilder builder("t.tar", of);
    builder.add("a.jpg", {512, size});
    return builder.finish().hash();
  };
  CHECK(hash({.size = 10'000, .time = 77, .changed = 1}) == hash(stamp));
  CHECK(hash({.size = 10'000, .time = 78}) != hash(stamp));
  CHECK(hash({.size = 10'001, .time = 77}) != hash(stamp));
  CHECK(hash(stamp, 6) != hash(stamp));
  TarIndexBuilder builder("t.tar", {.size = 10'000, .time = 77, .changed = 9});
  CHECK(builder.finish().stamp().changed == 9);
}

TEST_CASE("neighbours with one key are one sample, and meta members are none") {
  TarIndexBuilder builder("t.tar", stamp);
  builder.add("__meta__/x.json", {512, 5});
  builder.add("0.jpg", {1536, 5});
  builder.add("README", {2560, 5});
  builder.add("0.cls", {3584, 1});
  builder.add("1.jpg", {4608, 2});
  builder.add("0.jpg", {5632, 3});  // not a neighbour: another sample, as webdataset reads it
  CHECK(told(builder.finish()) ==
        std::vector<std::string>{"0 jpg 1536+5 cls 3584+1", "1 jpg 4608+2", "0 jpg 5632+3"});
}

TEST_CASE("an index is read from its bytes as it was made") {
  TarIndex const made = small();
  std::vector<std::byte> const copy(made.bytes().begin(), made.bytes().end());
  TarIndex const read = TarIndex::parse(copy, "i");
  CHECK(told(read) == told(made));
  CHECK(read.stamp() == stamp);
  CHECK(read.hash() == made.hash());
  CHECK(told(TarIndexBuilder("t.tar", stamp).finish()).empty());
}

TEST_CASE("an index is read at any address") {
  TarIndex const made = small();
  auto const bytes = made.bytes();
  std::vector<std::byte> shifted(bytes.size() + 1);
  std::memcpy(shifted.data() + 1, bytes.data(), bytes.size());
  CHECK(told(TarIndex::parse(std::span(shifted).subspan(1), "i")) == told(small()));
}

TEST_CASE("every truncation and every flipped bit of an index is refused") {
  TarIndex const made = small();
  auto const bytes = made.bytes();
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  for (std::size_t size = 0; size < copy.size(); ++size) {
    CHECK_THROWS_AS(TarIndex::parse(std::span(copy).first(size), "i"), DataError);
  }
  for (std::size_t bit = 0; bit < 8 * copy.size(); ++bit) {
    copy[bit / 8] ^= std::byte(1U << bit % 8);
    CHECK_THROWS_AS(TarIndex::parse(copy, "i"), DataError);
    copy[bit / 8] ^= std::byte(1U << bit % 8);
  }
}

/// Sets a word of the index and corrects the hash: what a checksum alone would let through.
std::string forged(std::size_t word, std::uint64_t value) {
  TarIndex const made = small();
  auto const bytes = made.bytes();
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  std::memcpy(copy.data() + 8 * word, &value, sizeof value);
  std::uint64_t const hash = frugal::Hash::of(std::span(copy).first(copy.size() - 8));
  std::memcpy(copy.data() + copy.size() - 8, &hash, sizeof hash);
  try {
    (void)TarIndex::parse(copy, "i");
  } catch (DataError const& error) {
    return error.fault().why;
  }
  return "nothing was thrown";
}

TEST_CASE("an index with right hash and wrong content is refused") {
  // Words 10 to 12: first members 0, 2, 3. 13 to 15: keys at 0, 3, 6. 16 on: members.
  CHECK(forged(TarIndex::version, 1) == "its version is 1, not 2");
  CHECK(forged(TarIndex::sample_count, ~std::uint64_t{0}) == "it claims more than it can hold");
  CHECK(forged(TarIndex::member_count, 4) == "it has another size than it claims");
  CHECK(forged(TarIndex::tar_size, 2000) == "a member leaves the tar file");
  CHECK(forged(10, 1) == "a table does not begin with 0");
  CHECK(forged(11, 0) == "a table falls");                  // a sample without members
  CHECK(forged(11, ~std::uint64_t{0}) == "a table falls");  // the next word is not above 2^64 - 1
  CHECK(forged(12, 4) == "a table has another end");
  CHECK(forged(14, 7) == "a table falls");
  CHECK(forged(16, 1600) == "the members of a sample are out of order");
  CHECK(forged(17, ~std::uint64_t{0}) == "a member leaves the tar file");
  CHECK(forged(18, 2) == "a member has an extension that is not listed");
}

TEST_CASE("a member that breaks a rule is refused with the rule") {
  TarIndexBuilder builder("t.tar", stamp);
  builder.add("0.jpg", {512, 5});
  CHECK(why(builder, "../1.jpg", {1536, 5}) == "a member's name leads out of its folder (..)");
  CHECK(why(builder, "0.JPG", {1536, 5}) == "the sample has a member of that name already");
  CHECK(why(builder, "2.jpg", {9'999, 2}).find("ends 1 bytes after") != std::string::npos);
  CHECK(why(builder, "3.jpg", {2560, 600}) == "nothing was thrown");
  CHECK(why(builder, "3.cls", {3072, 1}) == "the member lies in the one before it");
}

TEST_CASE("a sample with a bad member is left out, and its later members with it") {
  TarIndexBuilder builder("t.tar", stamp);
  builder.add("0.jpg", {512, 5});
  builder.add("1.jpg", {1536, 5});
  CHECK_THROWS_AS(builder.add("1.jpg", {2560, 5}), DataError);
  builder.add("1.cls", {3584, 5});
  builder.add("2.jpg", {4608, 5});
  CHECK(builder.lost() == 1);
  CHECK(told(builder.finish()) == std::vector<std::string>{"0 jpg 512+5", "2 jpg 4608+5"});
}

TEST_CASE("the last sample of a file that is cut off stays if it has what the one before has") {
  for (bool const same : {true, false}) {
    TarIndexBuilder builder("t.tar", stamp);
    builder.add("0.jpg", {512, 5});
    builder.add("0.cls", {1536, 5});
    builder.add("1.jpg", {2560, 5});
    if (same) builder.add("1.cls", {3584, 5});
    builder.cut_off();
    CHECK(builder.samples() == (same ? 2 : 1));
    CHECK(builder.lost() == (same ? 0 : 1));
    CHECK(builder.finish().samples() == (same ? 2 : 1));
  }
}

}  // namespace frugal_test::data_shards_tar_index

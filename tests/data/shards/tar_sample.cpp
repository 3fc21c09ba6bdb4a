// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/tar_sample.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace frugal_test::data_shards_tar_sample {

using frugal::DataError;
using frugal::TarSample;
using frugal::detail::integer_of;
using frugal::detail::is_meta_name;
using frugal::detail::json_of;
using frugal::detail::outside_of_file;
using frugal::detail::shown_name;
using frugal::detail::split_member_name;
using frugal::detail::text_of;
using frugal::detail::unsafe_name;

std::string split(std::string const& name) {
  auto const parts = split_member_name(name);
  return parts ? std::string(parts->key) + " | " + parts->extension : "none";
}

TEST_CASE("a name is cut at the first dot of its base name") {
  // As webdataset 1.0 cuts them: base_plus_ext of its tariterators.
  CHECK(split("0001.jpg") == "0001 | jpg");
  CHECK(split("a/b.c/0001.seg.png") == "a/b.c/0001 | seg.png");
  CHECK(split("./a.txt") == "./a | txt");
  CHECK(split("a.") == "a | ");
  CHECK(split("a.JPG") == "a | jpg");
  CHECK(split("a\xc3\x84.T\xc3\x84") == "a\xc3\x84 | t\xc3\x84");
}

TEST_CASE("a name without a dot, or that begins with one, belongs to no sample") {
  for (char const* name : {"README", "a.b/README", ".hidden", ".", "", "/", "a/"}) {
    CAPTURE(name);
    CHECK(split(name) == "none");
  }
}

TEST_CASE("members that describe the shard are known by their underscores") {
  CHECK(is_meta_name("__meta__"));
  CHECK(is_meta_name("__MACOSX__/._a.jpg"));
  CHECK(is_meta_name("____"));
  CHECK_FALSE(is_meta_name("__key.txt"));
  CHECK_FALSE(is_meta_name("___"));
  CHECK_FALSE(is_meta_name("a/__meta__/x.txt"));
}

TEST_CASE("names that lead out of their folder are unsafe, and say why") {
  CHECK(unsafe_name("/etc/passwd.txt") == "a member's name is an absolute path");
  for (char const* name : {"..", "../a.txt", "a/../../b.txt", "a/.."}) {
    CAPTURE(name);
    CHECK(unsafe_name(name) == "a member's name leads out of its folder (..)");
  }
  CHECK(unsafe_name("") == "a member has no name");
  CHECK(unsafe_name("a\nb.txt") == "a member's name has control characters");
  CHECK(unsafe_name(std::string("a\0.txt", 6)) == "a member's name has control characters");
  CHECK(unsafe_name(std::string(4097, 'n')).find("4097 bytes") != std::string::npos);
  for (char const* name : {"a..b.txt", "...", "a/...x.txt", "./a.txt"}) {
    CAPTURE(name);
    CHECK(unsafe_name(name).empty());
  }
  CHECK(unsafe_name(std::string(4096, 'n')).empty());
}

TEST_CASE("a member lies in its file, whatever its numbers add up to") {
  auto const most = std::numeric_limits<std::uint64_t>::max();
  CHECK(outside_of_file({512, 488}, 1000).empty());
  CHECK(outside_of_file({1000, 0}, 1000).empty());
  CHECK(outside_of_file({512, 489}, 1000) ==
        "the member has 489 bytes from byte 512 on, and the file ends 488 bytes after it");
  for (auto const& [offset, size] : {std::pair{most, std::uint64_t{0}},
                                     {std::uint64_t{1001}, std::uint64_t{0}},
                                     {std::uint64_t{512}, most},
                                     {most, most}}) {
    CAPTURE(offset);
    CHECK_FALSE(outside_of_file({offset, size}, 1000).empty());
  }
}

TEST_CASE("a name is shown without control characters, and cut at 120 bytes") {
  CHECK(shown_name("a\x1b[2Jb") == "a?[2Jb");
  CHECK(shown_name(std::string(121, 'n')) == std::string(120, 'n') + "...");
}

TEST_CASE("whole numbers are read as Python's int() reads them") {
  CHECK(integer_of("7", "x") == 7);
  CHECK(integer_of(" -12\n", "x") == -12);
  CHECK(integer_of("+3", "x") == 3);
  CHECK(integer_of("007", "x") == 7);
  CHECK(integer_of("9223372036854775807", "x") == INT64_MAX);
  for (char const* text : {"", " ", "7.0", "1e3", "0x10", "7 8", "+-3", "--3", "seven"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(integer_of(text, "x"), DataError);
  }
  CHECK_THROWS_WITH_AS(integer_of("9223372036854775808", "a.tar, sample 3, field cls"),
                       "frugal: a field's number does not fit into 64 bits (a.tar, sample 3, field "
                       "cls). Check that sample, or leave it out.",
                       DataError);
}

TEST_CASE("text must be UTF-8") {
  CHECK(text_of("caf\xc3\xa9", "x") == "caf\xc3\xa9");
  CHECK_THROWS_AS(text_of("caf\xe9", "x"), DataError);
}

TEST_CASE("JSON is read, and refused with the byte") {
  CHECK(json_of("{\"label\": 3}", "x").find("label")->as_signed() == 3);
  try {
    (void)json_of("{\"label\": }", "x");
    FAIL("nothing was thrown");
  } catch (DataError const& error) {
    CHECK(error.fault().where == "x, byte 10");
  }
}

/// A sample of "12", "text" and bytes that are neither.
TarSample sample() {
  std::string_view const bytes = "12text\xff";
  auto held = std::make_shared<char[]>(bytes.size());
  std::memcpy(held.get(), bytes.data(), bytes.size());
  return {"a/7",
          std::make_shared<std::string const>("t.tar"),
          std::move(held),
          {{.extension = "cls", .begin = 0, .size = 2},
           {.extension = "txt", .begin = 2, .size = 4},
           {.extension = "bin", .begin = 6, .size = 1}}};
}

TEST_CASE("fields are found by extension, and read as what they are asked for") {
  TarSample const s = sample();
  CHECK(s.size() == 3);
  CHECK(s.extension(1) == "txt");
  CHECK(s.bytes(1) == "text");
  CHECK(s["cls"] == "12");
  CHECK(s.integer("cls") == 12);
  CHECK(s.text("txt") == "text");
  CHECK(s.json("cls").as_unsigned() == 12);
  CHECK_FALSE(s.find("jpg"));
  CHECK(s.has("bin"));
}

TEST_CASE("errors name shard, sample and field") {
  TarSample const s = sample();
  auto const where = [&](auto&& read) {
    try {
      static_cast<void>(read());
    } catch (DataError const& error) {
      return error.fault().where;
    }
    return std::string("nothing was thrown");
  };
  CHECK(where([&] { return s["jpg"]; }) == "t.tar, sample a/7");
  CHECK(where([&] { return s.integer("txt"); }) == "t.tar, sample a/7, field txt");
  CHECK(where([&] { return s.text("bin"); }) == "t.tar, sample a/7, field bin");
  CHECK(where([&] { return s.json("txt"); }).starts_with("t.tar, sample a/7, field txt, byte"));
  CHECK(where([&] { return s.npy("bin"); }).starts_with("t.tar, sample a/7, field bin, byte"));
  CHECK(TarSample().name() == "sample ");
}

TEST_CASE("a name that is twice in an object of JSON is refused, at any depth") {
  auto const json = [](std::string_view text) {
    auto held = std::make_shared<char[]>(text.size());
    std::memcpy(held.get(), text.data(), text.size());
    return TarSample("a", nullptr, std::move(held),
                     {{.extension = "json", .begin = 0, .size = text.size()}})
        .json("json");
  };
  CHECK(json(R"({"label": 1, "box": {"label": 2}})").find("label")->as_signed() == 1);
  CHECK(json(R"([{"a": 1}, {"a": 2}])").items().size() == 2);
  CHECK_THROWS_WITH_AS(
      json(R"({"label": 1, "label": 2})"),
      "frugal: a field's JSON has the name \"label\" twice in an object (sample a, "
      "field json, byte 22). Check that sample, or leave it out.",
      DataError);
  CHECK_THROWS_AS(json(R"([{"x": {"a": 1, "b": 0, "a": 2}}])"), DataError);
}

TEST_CASE("copies keep the bytes") {
  TarSample copy;
  {
    TarSample const s = sample();
    copy = s;
  }
  CHECK(copy["txt"] == "text");
}

}  // namespace frugal_test::data_shards_tar_sample

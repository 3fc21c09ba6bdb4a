// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/shards/tar_sample.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>

namespace frugal_test::data_shards_tar_sample {

using frugal::DataError;
using frugal::TarSample;

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

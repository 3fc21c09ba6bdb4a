// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/checkpoint/manifest.hpp>

#include "support/checkpoints.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::store_manifest {

using frugal::FormatError;
using frugal::Manifest;

Manifest sample() {
  Manifest manifest;
  manifest.step = 500;
  manifest.serial = 7;
  manifest.saved_at = 1'700'000'000;
  manifest.metrics = {{"loss", 0.1}, {"accuracy", 0.912}};
  manifest.files = {{"model.safetensors", 123, 0xfedcba9876543210},
                    {"state.json", 0, 0x0000000000000001}};
  return manifest;
}

/// A manifest with this JSON text, sealed with a correct hash so that the fault lies behind it.
std::string sealed(std::string const& fields) {
  std::string const body = "{\n  " + fields;
  return body + ",\n  \"xxh3\": \"" + frugal::hex_of(frugal::Hash::of(support::bytes_of(body))) +
         "\"\n}\n";
}

std::string why(std::string const& text) {
  try {
    frugal::parse_manifest(text, "here/manifest.json");
  } catch (FormatError const& error) {
    CHECK(error.fault().where.starts_with("here/manifest.json"));
    return error.fault().why;
  }
  return "nothing was thrown";
}

TEST_CASE("a manifest reads back unchanged") {
  Manifest const in = sample();
  Manifest const out = frugal::parse_manifest(in.text(), "x");
  CHECK(out.step == 500);
  CHECK(out.serial == 7);
  CHECK(out.saved_at == 1'700'000'000);
  CHECK(out.metrics == in.metrics);
  CHECK(out.files == in.files);
  CHECK(out.text() == in.text());
}

TEST_CASE("a manifest is JSON that others can read") {
  auto const json = nlohmann::json::parse(sample().text());
  CHECK(json["format"] == "frugal checkpoint");
  CHECK(json["version"] == 1);
  CHECK(json["files"][0]["name"] == "model.safetensors");
  CHECK(json["files"][0]["xxh3"] == "fedcba9876543210");
}

TEST_CASE("a metric that is not finite is null in the manifest and NaN when it is read") {
  Manifest manifest = sample();
  manifest.metrics = {{"loss", std::numeric_limits<double>::infinity()}, {"nan", std::nan("")}};
  CHECK(nlohmann::json::parse(manifest.text())["metrics"]["loss"].is_null());
  Manifest const out = frugal::parse_manifest(manifest.text(), "x");
  CHECK(std::isnan(out.metrics.at("loss")));
  CHECK(std::isnan(out.metrics.at("nan")));
}

TEST_CASE("a metric whose name is not UTF-8 does not hinder a save") {
  Manifest manifest = sample();
  manifest.metrics = {{"l\xff", 1.0}};
  CHECK(frugal::parse_manifest(manifest.text(), "x").metrics.size() == 1);
}

TEST_CASE("a truncated manifest is damaged") {
  std::string const text = sample().text();
  for (std::size_t size = 0; size < text.size(); ++size) {
    CAPTURE(size);
    CHECK_THROWS_AS(frugal::parse_manifest(text.substr(0, size), "x"), FormatError);
  }
}

TEST_CASE("a manifest with any flipped bit is damaged") {
  std::string const text = sample().text();
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    CAPTURE(bit);
    CHECK_THROWS_AS(frugal::parse_manifest(flipped, "x"), FormatError);
  }
}

TEST_CASE("a manifest with bytes after its end is damaged") {
  CHECK_THROWS_AS(frugal::parse_manifest(sample().text() + "\n", "x"), FormatError);
}

TEST_CASE("a manifest of a newer version is refused as such, whatever else is in it") {
  auto const parse = [] {
    frugal::parse_manifest(
        sealed(R"("format": "frugal checkpoint", "version": 2, "step": "changed")"), "x");
  };
  CHECK_THROWS_AS(parse(), frugal::NewerFormatError);
}

TEST_CASE("a manifest with a correct hash and wrong fields says which") {
  std::string const head = R"("format": "frugal checkpoint", "version": 1, )";
  std::string const numbers = R"("step": 1, "serial": 1, "saved_at": 0, )";
  auto const file = [&](std::string const& entry) {
    return head + numbers + R"("metrics": {}, "files": [)" + entry + "]";
  };
  std::vector<std::pair<std::string, std::string>> const faults = {
      {R"("format": "other")", "\"format\" does not say \"frugal checkpoint\""},
      {R"("format": 3)", "\"format\" does not say \"frugal checkpoint\""},
      {R"("format": "frugal checkpoint")", "\"version\" is missing"},
      {R"("format": "frugal checkpoint", "version": 0)", "there was never a version 0"},
      {head + R"("step": 1, "color": "red")", "\"color\" is not known"},
      {head + numbers + R"("step": 2)", "\"step\" is there twice"},
      {head + numbers + R"("metrics": {"loss": 1, "loss": 2})", "\"loss\" is there twice"},
      {head + R"("step": 1, "serial": 4611686018427387905)",
       "\"serial\" leaves no number for the next save"},
      {R"("format" "frugal checkpoint")", "it is not a JSON object"},
      {head + R"("step": -1)", "\"step\" is not a number from 0 to 2^63 - 1"},
      {head + R"("step": 1.5)", "\"step\" is not a number from 0 to 2^63 - 1"},
      {head + R"("step": 9223372036854775808)", "\"step\" is not a number from 0 to 2^63 - 1"},
      {head + R"("step": 1e999)", "it is not a JSON object"},
      {head + R"("step": 1)", "\"serial\" is missing"},
      {head + numbers + R"("metrics": [])", "\"metrics\" is not an object"},
      {head + numbers + R"("metrics": {"loss": "low"})", "the metric \"loss\" is not a number"},
      {head + numbers + R"("metrics": {})", "\"files\" is missing"},
      {head + numbers + R"("metrics": {}, "files": {})", "\"files\" is not an array"},
      {file("3"), "an object is missing where \"name\" goes"},
      {file(R"({"name": "../a", "size": 1, "xxh3": "0000000000000000"})"),
       "a file has an invalid name"},
      {file(R"({"name": "/etc/passwd", "size": 1, "xxh3": "0000000000000000"})"),
       "a file has an invalid name"},
      {file(R"({"name": "..", "size": 1, "xxh3": "0000000000000000"})"),
       "a file has an invalid name"},
      {file(R"({"name": "", "size": 1, "xxh3": "0000000000000000"})"),
       "a file has an invalid name"},
      {file(R"({"name": "a\u0000b", "size": 1, "xxh3": "0000000000000000"})"),
       "a file has an invalid name"},
      {file(R"({"name": "manifest.json", "size": 1, "xxh3": "0000000000000000"})"),
       "a file has an invalid name"},
      {file(R"({"name": "a", "size": 1, "size": 2, "xxh3": "0000000000000000"})"),
       "\"size\" is there twice"},
      {file(R"({"name": "a", "size": 1, "xxh3": "0000000000000000", "mode": 7})"),
       "\"mode\" is not known"},
      {file(R"({"name": "a", "size": 1, "xxh3": "00000000000000"})"),
       "a hash does not have 16 digits"},
      {file(R"({"name": "a", "size": 1, "xxh3": "000000000000000G"})"),
       "a hash has an invalid digit"},
      {file(R"({"name": "a", "size": 1, "xxh3": 7})"), "a hash does not have 16 digits"},
      {file(R"({"name": "a", "size": "1", "xxh3": ""})"),
       "\"size\" is not a number from 0 to 2^63 - 1"},
      {file(R"({"name": "a", "size": 1, "xxh3": "0000000000000000"},)"
            R"({"name": "a", "size": 1, "xxh3": "0000000000000000"})"),
       "\"a\" is listed twice"},
  };
  for (auto const& [fields, expected] : faults) {
    CAPTURE(fields);
    CHECK(why(sealed(fields)) == expected);
  }
}

TEST_CASE("an error in a manifest names its byte offset") {
  std::string const text = sealed(R"("format": "frugal checkpoint", "version": 1, "step": 5, )"
                                  R"("serial": 1, "saved_at": 0, "metrics": {"a\"b": "low"})");
  std::string where;
  try {
    frugal::parse_manifest(text, "m");
  } catch (FormatError const& error) {
    where = error.fault().where;
  }
  CHECK(where == "m, byte " + std::to_string(text.find("\"low\"")));
}

TEST_CASE("a manifest of a hundred thousand brackets is damaged and no more") {
  CHECK(why(sealed("\"a\": " + std::string(100'000, '['))) == "it is not a JSON object");
}

}  // namespace frugal_test::store_manifest

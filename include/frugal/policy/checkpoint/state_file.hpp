// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include <frugal/state/memory.hpp>
#include <frugal/store/hash.hpp>
#include <frugal/store/json_fields.hpp>
#include <frugal/store/json_text.hpp>
#include <frugal/store/manifest.hpp>

namespace frugal::detail {

/// state.json of a checkpoint: what the run was, and every persisted value that is no tensor, by
/// path. Numbers keep their bits: doubles are written with as many digits as they need, and those
/// that JSON has no word for as {"bits": "7ff8000000000000"}.
struct StateFile {
  static constexpr char const* file_name = "state.json";
  static constexpr std::uint64_t newest_version = 1;

  std::uint64_t seed = 0;
  double seconds = 0;                         ///< of training so far
  std::map<std::string, std::string> recipe;  ///< what fills each slot
  std::string weights;                        ///< type that they are stored in; empty: their own
  std::map<std::string, Memory::Value> values;

  std::string text() const {
    std::string out = "{\n \"format\": \"frugal state\",\n \"version\": ";
    out += std::to_string(newest_version) + ",\n \"seed\": " + std::to_string(seed);
    out += ",\n \"seconds\": ";
    append(out, seconds);
    out += ",\n \"weights\": ";
    append(out, weights);
    out += ",\n \"recipe\": ";
    append_members(out, recipe, [&](std::string const& name) { append(out, name); });
    out += ",\n \"values\": ";
    append_members(out, values, [&](Memory::Value const& value) {
      std::visit([&](auto const& each) { append(out, each); }, value);
    });
    return out += "\n}\n";
  }

  /// FormatError naming the file for what is not so, NewerFormatError for a newer version.
  static StateFile parse(std::string_view text, std::filesystem::path const& where) {
    JsonFields const fields({.what = "the state of a checkpoint cannot be read",
                             .where = where.string(),
                             .why = "",
                             .mend = "Use another checkpoint, or set Checkpoint::resume to "
                                     "Resume::Weights."});
    auto const all = fields.parse(text, "frugal state");
    if (std::uint64_t const version = fields.number(all, "version"); version > newest_version) {
      throw NewerFormatError({.what = "the state of the checkpoint is of a newer format",
                              .where = where.string(),
                              .why = "its version is " + std::to_string(version) +
                                     ", and this library knows up to " +
                                     std::to_string(newest_version),
                              .mend = "Update frugal, or set Checkpoint::resume to "
                                      "Resume::Weights."});
    }
    StateFile out;
    // Any 64 bits, unlike what JsonFields::number counts.
    auto const seed = fields.member(all, "seed").as_unsigned();
    if (!seed) fields.fail("\"seed\" is no whole number");
    out.seed = *seed;
    auto const seconds = fields.member(all, "seconds").as_double();
    if (!seconds) fields.fail("\"seconds\" is no number");
    out.seconds = *seconds;
    out.weights = fields.text(all, "weights");
    for (Json const& name : fields.object(all, "recipe")) {
      if (!name.is(Json::Kind::text)) {
        fields.fail("the recipe's \"" + name.name() + "\" is no text");
      }
      out.recipe.emplace(name.name(), name.text());
    }
    for (Json const& value : fields.object(all, "values")) {
      out.values.emplace(value.name(), value_of(fields, value));
    }
    return out;
  }

 private:
  template <class Map, class Append>
  static void append_members(std::string& out, Map const& members, Append&& append_value) {
    out += '{';
    char const* before = "\n  ";
    for (auto const& [name, value] : members) {
      out += before;
      append_json(out, name);
      out += ": ";
      append_value(value);
      before = ",\n  ";
    }
    out += members.empty() ? "}" : "\n }";
  }

  static void append(std::string& out, std::monostate) { out += "null"; }
  static void append(std::string& out, bool value) { out += value ? "true" : "false"; }
  static void append(std::string& out, std::int64_t value) { out += std::to_string(value); }
  static void append(std::string& out, std::uint64_t value) { out += std::to_string(value); }
  static void append(std::string& out, double value) {
    if (!std::isfinite(value)) {
      out += "{\"bits\": \"" + hex_of(std::bit_cast<std::uint64_t>(value)) + "\"}";
      return;
    }
    std::size_t const begin = out.size();
    append_json(out, value);
    // Without a point it would be read as a whole number.
    if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
  }
  /// A policy's text may be any bytes.
  static void append(std::string& out, std::string const& text) {
    if (is_plain(text)) {
      append_json(out, text);
      return;
    }
    out += "{\"bytes\": \"";
    for (char const c : text) out += hex_of(static_cast<unsigned char>(c)).substr(14);
    out += "\"}";
  }

  static Memory::Value value_of(JsonFields const& fields, Json const& value) {
    switch (value.kind()) {
      case Json::Kind::null:
        return std::monostate{};
      case Json::Kind::boolean:
        return value.truth();
      case Json::Kind::text:
        return value.text();
      case Json::Kind::number:
        if (auto const number = value.as_unsigned()) return *number;
        if (auto const number = value.as_signed()) return *number;
        if (auto const number = value.as_double()) return *number;
        break;
      case Json::Kind::object:
        if (value.find("bytes") != nullptr) return bytes_of(fields, fields.text(value, "bytes"));
        return std::bit_cast<double>(number_of(fields, fields.text(value, "bits")));
      case Json::Kind::array:
        break;
    }
    fields.fail("the value of \"" + value.name() + "\" is none");
  }

  static bool is_plain(std::string const& text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  }
  static std::string bytes_of(JsonFields const& fields, std::string const& digits) {
    std::string out;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
      out += static_cast<char>(number_of(fields, digits.substr(i, 2)));
    }
    return out;
  }
  static std::uint64_t number_of(JsonFields const& fields, std::string const& digits) {
    std::uint64_t bits = 0;
    auto const end = digits.data() + digits.size();
    auto const [stop, error] = std::from_chars(digits.data(), end, bits, 16);
    if (error != std::errc() || stop != end || digits.empty()) fields.fail("a number is none");
    return bits;
  }
};

}  // namespace frugal::detail

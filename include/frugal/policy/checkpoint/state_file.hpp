// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <frugal/error.hpp>
#include <frugal/loop/memory.hpp>
#include <frugal/store/hash.hpp>
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
    nlohmann::ordered_json all{
        {"format", "frugal state"}, {"version", newest_version}, {"seed", seed},
        {"seconds", seconds},       {"weights", weights},        {"recipe", recipe}};
    all["values"] = nlohmann::ordered_json::object();
    for (auto const& [path, value] : values) {
      all["values"][path] = std::visit([](auto const& each) { return to_json(each); }, value);
    }
    return all.dump(1) + "\n";
  }

  /// FormatError naming the file for what is not so, NewerFormatError for a newer version.
  static StateFile parse(std::string_view text, std::filesystem::path const& where) {
    auto const all = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
    StateFile out;
    try {
      if (all.at("format") != "frugal state") fail(where, "its format is another");
      if (std::uint64_t const version = all.at("version"); version > newest_version) {
        throw NewerFormatError({.what = "the state of the checkpoint is of a newer format",
                                .where = where.string(),
                                .why = "its version is " + std::to_string(version) +
                                       ", and this library knows up to " +
                                       std::to_string(newest_version),
                                .mend = "Update frugal, or set Checkpoint::resume to "
                                        "Resume::Weights."});
      }
      out.seed = all.at("seed");
      out.seconds = all.at("seconds");
      out.weights = all.at("weights");
      out.recipe = all.at("recipe");
      for (auto const& [path, value] : all.at("values").items()) {
        out.values.emplace(path, from_json(value, where));
      }
    } catch (nlohmann::json::exception const&) {
      fail(where, "a field is missing or of another type");
    }
    return out;
  }

 private:
  template <class T>
  static nlohmann::ordered_json to_json(T const& value) {
    if constexpr (std::is_same_v<T, std::monostate>) {
      return nullptr;
    } else if constexpr (std::is_same_v<T, double>) {
      if (std::isfinite(value)) return value;
      return {{"bits", hex_of(std::bit_cast<std::uint64_t>(value))}};
    } else if constexpr (std::is_same_v<T, std::string>) {
      // A policy's text may be any bytes.
      return bytes_as_text(value);
    } else {
      return value;
    }
  }

  static Memory::Value from_json(nlohmann::json const& value, std::filesystem::path const& where) {
    if (value.is_null()) return std::monostate{};
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number_unsigned()) return value.get<std::uint64_t>();
    if (value.is_number_integer()) return value.get<std::int64_t>();
    if (value.is_number_float()) return value.get<double>();
    if (value.is_string()) return value.get<std::string>();
    if (value.contains("bytes")) return text_as_bytes(value.at("bytes").get<std::string>(), where);
    return std::bit_cast<double>(number_of(value.at("bits").get<std::string>(), where));
  }

  static bool is_plain(std::string const& text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  }
  static nlohmann::ordered_json bytes_as_text(std::string const& text) {
    if (is_plain(text)) return text;
    std::string digits;
    for (char const c : text) digits += hex_of(static_cast<unsigned char>(c)).substr(14);
    return {{"bytes", digits}};
  }
  static std::string text_as_bytes(std::string const& digits, std::filesystem::path const& where) {
    std::string out;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
      out += static_cast<char>(number_of(digits.substr(i, 2), where));
    }
    return out;
  }
  static std::uint64_t number_of(std::string const& digits, std::filesystem::path const& where) {
    std::uint64_t bits = 0;
    auto const end = digits.data() + digits.size();
    auto const [stop, error] = std::from_chars(digits.data(), end, bits, 16);
    if (error != std::errc() || stop != end || digits.empty()) fail(where, "a number is none");
    return bits;
  }

  [[noreturn]] static void fail(std::filesystem::path const& where, std::string why) {
    throw FormatError({.what = "the state of a checkpoint cannot be read",
                       .where = where.string(),
                       .why = std::move(why),
                       .mend = "Use another checkpoint, or set Checkpoint::resume to "
                               "Resume::Weights."});
  }
};

}  // namespace frugal::detail

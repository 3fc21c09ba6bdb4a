// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/core/state/state_dict.hpp>

namespace frugal::detail {

/// state.json of a checkpoint: what the run was, and every persisted value that is no tensor, by
/// path. Numbers keep their bits: doubles are written with as many digits as they need, and those
/// that JSON has no word for as {"bits": "7ff8000000000000"}. A list of numbers is an array.
struct StateFile {
  static constexpr char const* file_name = "state.json";
  /// The only version that is read: no release has written another one.
  static constexpr std::uint64_t newest_version = 3;

  std::uint64_t seed = 0;
  double seconds = 0;                         ///< of training so far
  std::map<std::string, std::string> recipe;  ///< what fills each slot
  std::string weights;                        ///< type that they are stored in; empty: their own
  std::map<std::string, std::uint64_t> environment{};  ///< see snapshot.hpp
  std::map<std::string, std::string> data{};           ///< see DataIdentity
  std::map<std::string, StateDict::Value> values;

  std::string text() const;

  /// FormatError naming the file for what is not so and for an older version, NewerFormatError for
  /// a newer one.
  static StateFile parse(std::string_view text, std::filesystem::path const& where);

 private:
  static constexpr std::size_t width = 100;  ///< of a line with an array

  void add(JsonFields const& fields, Json const& value);

  static bool is_number(StateDict::Value const& value);

  /// Is there a list of numbers under this path, and nothing below its items?
  bool is_list(std::string const& path, std::uint64_t size) const;

  void put_values(JsonWriter& out) const;

  void put_array(JsonWriter& out, std::string const& path, std::uint64_t size,
                 std::set<std::string>& listed) const;

  template <class Members>
  static void put_members(JsonWriter& out, Members const& members) {
    out.object();
    for (auto const& [name, value] : members) put(out.key(name), value);
    out.end();
  }

  static void put(JsonWriter& out, std::monostate) { out.raw("null"); }
  static void put(JsonWriter& out, std::integral auto value) { out.value(value); }
  static void put(JsonWriter& out, double value);
  /// A policy's text may be any bytes.
  static void put(JsonWriter& out, std::string const& text);

  static StateDict::Value value_of(JsonFields const& fields, Json const& value);

  static bool is_plain(std::string const& text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  }
  static std::string bytes_of(JsonFields const& fields, Json const& value,
                              std::string const& digits);
  static std::uint64_t number_of(JsonFields const& fields, Json const& value,
                                 std::string const& digits);
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/state_file.ipp>
#endif

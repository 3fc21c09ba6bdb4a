// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/state_file.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/core/state/archive_path.hpp>
#include <frugal/inline.hpp>

#include <bit>
#include <charconv>
#include <cmath>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::string StateFile::text() const {
  JsonWriter out("", 1);
  out.object(JsonLayout::lines).add("format", "frugal state").add("version", newest_version);
  out.add("seed", seed);
  put(out.key("seconds"), seconds);
  put(out.key("weights"), weights);
  put_members(out.key("environment"), environment);
  put_members(out.key("data"), data);
  put_members(out.key("recipe"), recipe);
  put_values(out.key("values"));
  return out.str("\n");
}

FRUGAL_INLINE StateFile StateFile::parse(std::string_view text,
                                         std::filesystem::path const& where) {
  JsonFields const fields({.what = "the state of a checkpoint cannot be read",
                           .where = where.string(),
                           .why = "",
                           .fix = "Use another checkpoint, or set Checkpoint::resume to "
                                  "Resume::Weights."});
  auto const all = fields.parse(text, "frugal state");
  std::uint64_t const written = fields.version(all);
  if (written > newest_version) {
    throw NewerFormatError({.what = "the state of the checkpoint has a newer format",
                            .where = where.string(),
                            .why = "its version is " + std::to_string(written) +
                                   ", and this library reads version " +
                                   std::to_string(newest_version),
                            .fix = "Update frugal, or set Checkpoint::resume to "
                                   "Resume::Weights."});
  }
  if (written < newest_version) {
    throw FormatError({.what = "the state of the checkpoint has an older format",
                       .where = where.string(),
                       .why = "its version is " + std::to_string(written) +
                              ", written by an unreleased version of frugal, and this library "
                              "reads version " +
                              std::to_string(newest_version),
                       .fix = "Use another checkpoint, or set Checkpoint::resume to "
                              "Resume::Weights."});
  }
  fields.only(all, {"format", "version", "seed", "seconds", "weights", "recipe", "environment",
                    "data", "values"});
  StateFile out;
  // Any 64 bits, unlike what JsonFields::number counts.
  Json const& seed = fields.member(all, "seed");
  if (!seed.as_unsigned()) fields.fail(seed, "\"seed\" is not a whole number");
  out.seed = *seed.as_unsigned();
  Json const& seconds = fields.member(all, "seconds");
  if (!seconds.as_double()) fields.fail(seconds, "\"seconds\" is not a number");
  out.seconds = *seconds.as_double();
  out.weights = fields.text(all, "weights");
  for (Json const& each : fields.object(all, "environment")) {
    auto const value = each.as_unsigned();
    if (!value) fields.fail("\"" + std::string(each.name()) + "\" is not a whole number");
    out.environment.emplace(each.name(), *value);
  }
  for (Json const& each : fields.object(all, "data")) {
    StateDict::Value value = value_of(fields, each);  // a text, perhaps with bytes that are none
    auto* const words = std::get_if<std::string>(&value);
    if (words == nullptr) {
      fields.fail(each, "the data's \"" + each.name() + "\" is not a string");
    }
    out.data.emplace(each.name(), std::move(*words));
  }
  for (Json const& name : fields.object(all, "recipe")) {
    if (!name.is(Json::Kind::text)) {
      fields.fail(name, "the recipe's \"" + name.name() + "\" is not a string");
    }
    out.recipe.emplace(name.name(), name.text());
  }
  for (Json const& value : fields.object(all, "values")) out.add(fields, value);
  return out;
}

FRUGAL_INLINE void StateFile::add(JsonFields const& fields, Json const& value) {
  auto const put = [&](std::string path, StateDict::Value item) {
    if (!values.emplace(std::move(path), std::move(item)).second) {
      fields.fail(value, "\"" + value.name() + "\" is there twice");
    }
  };
  if (!value.is(Json::Kind::array) || value.items().empty()) {
    return put(value.name(), value_of(fields, value));
  }
  put(value.name(), std::uint64_t{value.items().size()});
  std::size_t index = 0;
  for (Json const& item : value.items()) {
    StateDict::Value number = value_of(fields, item);
    if (!is_number(number)) fields.fail(item, "an array of numbers has another value");
    put(item_path(value.name(), index++), std::move(number));
  }
}

FRUGAL_INLINE bool StateFile::is_number(StateDict::Value const& value) {
  return std::holds_alternative<std::int64_t>(value) ||
         std::holds_alternative<std::uint64_t>(value) || std::holds_alternative<double>(value);
}

FRUGAL_INLINE bool StateFile::is_list(std::string const& path, std::uint64_t size) const {
  if (size == 0 || size > values.size()) return false;
  for (std::size_t i = 0; i < size; ++i) {
    std::string const item = item_path(path, i);
    auto const found = values.find(item);
    if (found == values.end() || !is_number(found->second)) return false;
    if (values.contains(item_path(item, 0))) return false;
  }
  return true;
}

FRUGAL_INLINE void StateFile::put_values(JsonWriter& out) const {
  std::set<std::string> listed;  // items of the arrays so far
  out.object();
  for (auto const& [path, value] : values) {
    if (listed.contains(path)) continue;
    out.key(path);
    auto const* const size = std::get_if<std::uint64_t>(&value);
    if (size != nullptr && is_list(path, *size)) {
      put_array(out, path, *size, listed);
    } else {
      std::visit([&](auto const& each) { put(out, each); }, value);
    }
  }
  out.end();
}

FRUGAL_INLINE void StateFile::put_array(JsonWriter& out, std::string const& path,
                                        std::uint64_t size, std::set<std::string>& listed) const {
  out.array(JsonLayout::spaced);
  std::size_t used = out.text().size() - out.text().rfind('\n') - 1;  // bytes of the line
  for (std::size_t i = 0; i < size; ++i) {
    std::string item = item_path(path, i);
    JsonWriter number;
    std::visit([&](auto const& each) { put(number, each); }, values.at(item));
    listed.insert(std::move(item));
    std::string const digits = number.str();
    std::size_t const taken = digits.size() + (i + 1 < size ? 1 : 0);  // with its comma
    bool blank = i != 0;
    if (used + taken >= width) {
      out.on_line(4);
      used = 4;
      blank = true;
    }
    out.raw(digits);
    used += taken + (blank ? 1 : 0);
  }
  out.end();
}

FRUGAL_INLINE void StateFile::put(JsonWriter& out, double value) {
  if (!std::isfinite(value)) {
    out.object(JsonLayout::spaced).add("bits", hex_of(std::bit_cast<std::uint64_t>(value))).end();
    return;
  }
  std::string digits;
  append_json(digits, value);
  // Without a point it would be read as a whole number.
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  out.raw(digits);
}

FRUGAL_INLINE void StateFile::put(JsonWriter& out, std::string const& text) {
  if (is_plain(text)) {
    out.value(text);
    return;
  }
  std::string bytes;
  for (char const c : text) bytes += hex_of(static_cast<unsigned char>(c)).substr(14);
  out.object(JsonLayout::spaced).add("bytes", bytes).end();
}

FRUGAL_INLINE StateDict::Value StateFile::value_of(JsonFields const& fields, Json const& value) {
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
      if (value.find("bytes") != nullptr) {
        fields.only(value, {"bytes"});
        return bytes_of(fields, value, fields.text(value, "bytes"));
      }
      fields.only(value, {"bits"});
      return std::bit_cast<double>(number_of(fields, value, fields.text(value, "bits")));
    case Json::Kind::array:
      break;
  }
  fields.fail(value, "the value of \"" + value.name() + "\" is none");
}

FRUGAL_INLINE std::string StateFile::bytes_of(JsonFields const& fields, Json const& value,
                                              std::string const& digits) {
  if (digits.size() % 2 != 0) fields.fail(value, "a text ends within a byte");
  std::string out;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    out += static_cast<char>(number_of(fields, value, digits.substr(i, 2)));
  }
  return out;
}

FRUGAL_INLINE std::uint64_t StateFile::number_of(JsonFields const& fields, Json const& value,
                                                 std::string const& digits) {
  std::uint64_t bits = 0;
  auto const end = digits.data() + digits.size();
  auto const [stop, error] = std::from_chars(digits.data(), end, bits, 16);
  if (error != std::errc() || stop != end || digits.empty()) {
    fields.fail(value, "a number is none");
  }
  return bits;
}

}  // namespace frugal::detail

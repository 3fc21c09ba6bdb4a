// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/tensor_index.hpp>

#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/base/whole_file.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cstdio>
#include <optional>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::string shard_name(std::string_view one, std::size_t i, std::size_t count) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "-%05zu-of-%05zu", i + 1, count);
  std::size_t const dot = one.rfind('.');
  return std::string(one.substr(0, dot)) + numbers + std::string(one.substr(dot));
}

FRUGAL_INLINE void TensorIndex::refuse(std::string why) const {
  throw FormatError({.what = "the index of the weights is damaged, or does not fit its files",
                     .where = path.string(),
                     .why = std::move(why),
                     .fix = "Copy the folder again from where the model came from, with all of "
                            "its files."});
}

FRUGAL_INLINE TensorIndex TensorIndex::read(std::filesystem::path const& path) {
  TensorIndex index{.path = path};
  JsonError error;
  std::optional<Json> const all = Json::parse(read_whole_file(path), &error);
  if (!all || !all->is(Json::Kind::object)) {
    index.refuse("it is not a JSON object" +
                 (all ? std::string() : ": byte " + std::to_string(error.at)));
  }
  Json const* const metadata = all->find("metadata");
  if (metadata == nullptr || !metadata->is(Json::Kind::object)) {
    index.refuse("it has no \"metadata\"");
  }
  Json const* const size = metadata->find("total_size");
  if (size == nullptr || !size->as_double()) {
    index.refuse("its \"metadata\" has no number \"total_size\"");
  }
  Json const* const map = all->find("weight_map");
  if (map == nullptr || !map->is(Json::Kind::object)) index.refuse("it has no \"weight_map\"");
  for (Json const& item : map->items()) {
    if (!item.is(Json::Kind::text) || !is_within(item.text())) {
      index.refuse("'" + item.name() + "' is in \"" + item.text() +
                   "\", which is no file of the folder");
    }
    if (!index.weight_map.emplace(item.name(), item.text()).second) {
      index.refuse("'" + item.name() + "' is there twice");
    }
  }
  return index;
}

FRUGAL_INLINE std::string TensorIndex::text() const {
  JsonWriter out;
  out.object(JsonLayout::lines);
  out.key("metadata").object().add("total_size", total_size).end();
  out.key("weight_map").object();
  for (auto const& [name, file] : weight_map) out.add(name, file);
  return out.str("\n");
}

FRUGAL_INLINE bool TensorIndex::is_within(std::filesystem::path const& file) {
  return !file.empty() && file.is_relative() && file.has_filename() &&
         std::none_of(file.begin(), file.end(),
                      [](std::filesystem::path const& part) { return part == ".."; });
}

}  // namespace frugal::detail

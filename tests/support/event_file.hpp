// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include "support/files.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::support {

/// What event files have, as TensorBoard's EventAccumulator takes it; tests/interop asks that one.
struct EventsFound {
  struct Point {
    std::string tag;
    std::int64_t step = 0;
    std::string value;  ///< of a scalar its digits, else the bytes of the message
  };

  std::size_t events = 0;
  std::vector<std::int64_t> restarts;
  std::vector<std::string> tags;  ///< "tag@step" of everything that was written
  std::vector<Point> alive;       ///< without what a restart has voided

  bool has(std::string const& tag) const {
    return std::find(tags.begin(), tags.end(), tag) != tags.end();
  }
  /// The steps at which a tag is alive, in order of the file.
  std::vector<std::int64_t> steps_of(std::string const& tag) const {
    std::vector<std::int64_t> steps;
    for (Point const& each : alive) {
      if (each.tag == tag) steps.push_back(each.step);
    }
    return steps;
  }

  /// Adds the events of another file; every record must be whole.
  void read(std::filesystem::path const& path) {
    std::string const bytes = text_of(path);
    for (std::size_t at = 0; at < bytes.size();) {
      std::uint64_t size = 0;
      REQUIRE(at + 12 <= bytes.size());
      std::memcpy(&size, bytes.data() + at, 8);
      REQUIRE(at + 16 + size <= bytes.size());
      add(protozero::pbf_reader(bytes.data() + at + 12, size));
      at += 16 + size;
    }
  }

 private:
  void add(protozero::pbf_reader event) {
    ++events;
    std::int64_t step = 0;
    while (event.next()) {
      if (event.tag() == 2) {
        step = event.get_int64();
      } else if (event.tag() == 7) {
        event.skip();
        restarts.push_back(step);
        std::erase_if(alive, [&](Point const& each) { return each.step >= step; });
      } else if (event.tag() == 5) {
        protozero::pbf_reader summary = event.get_message();
        while (summary.next(1)) add_value(summary.get_message(), step);
      } else {
        event.skip();
      }
    }
  }
  void add_value(protozero::pbf_reader value, std::int64_t step) {
    Point point{.tag = {}, .step = step, .value = {}};
    while (value.next()) {
      if (value.tag() == 1) {
        point.tag = value.get_string();
      } else if (value.tag() == 2) {
        point.value = std::to_string(value.get_float());
      } else {
        point.value += value.get_bytes();
      }
    }
    tags.push_back(point.tag + "@" + std::to_string(step));
    alive.push_back(std::move(point));
  }
};

inline EventsFound events_in(std::filesystem::path const& file) {
  EventsFound found;
  found.read(file);
  return found;
}

inline std::vector<std::filesystem::path> files_in(std::filesystem::path const& folder) {
  std::vector<std::filesystem::path> all;
  for (auto const& each : std::filesystem::directory_iterator(folder)) all.push_back(each.path());
  std::sort(all.begin(), all.end());
  return all;
}

/// All files of a folder, in the order of their names, as TensorBoard reads them.
inline EventsFound events_of_folder(std::filesystem::path const& folder) {
  EventsFound found;
  for (auto const& each : files_in(folder)) found.read(each);
  return found;
}

}  // namespace frugal_test::support

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/profile/hot_spots_file.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>

namespace frugal::detail {

FRUGAL_INLINE std::string json_of(WindowProfile const& window) {
  JsonWriter out;
  auto const spots = [&](std::string_view name, std::vector<watch::HotSpot> const& all) {
    out.key(name).array();
    for (watch::HotSpot const& spot : all) {
      out.object().add("name", spot.name).add("share", spot.share);
      out.add("calls", spot.calls).add("microseconds", spot.microseconds).end();
    }
    out.end();
  };
  out.object().add("step", window.step).add("steps", window.steps);
  out.add("seconds", window.seconds).add("step_seconds", window.step_seconds);
  out.add("device_idle", window.device_idle).add("bound", watch::name_of(window.bound));
  out.add("advice", window.advice).add("overhead_seconds", window.overhead_seconds);
  out.add("trace", window.trace);
  spots("hot_spots", window.hot_spots);
  spots("ranges", window.ranges);
  out.add("peak_bytes", window.peak.bytes).add("peak_seconds", window.peak.seconds);
  out.key("memory").array();
  for (watch::MemoryPoint const& point : window.memory) {
    out.object().add("seconds", point.seconds).add("bytes", point.bytes).end();
  }
  return out.str();
}

FRUGAL_INLINE void HotSpotsFile::resume_at(std::uint64_t step) {
  windows_.clear();
  std::ifstream in(path_);
  std::string const text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  auto const file = Json::parse(text);
  Json const* const windows = file ? file->find("windows") : nullptr;
  if (windows == nullptr || !windows->is(Json::Kind::array)) return;
  std::vector<Json> const& items = windows->items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    Json const* const at = items[i].find("step");
    auto const made_at = at == nullptr ? std::nullopt : at->as_unsigned();
    if (!made_at || *made_at > step) continue;
    // Kept as written. The last one ends before the array does.
    std::size_t const end = i + 1 < items.size() ? items[i + 1].at() : text.rfind(']');
    std::string window = text.substr(items[i].at(), end - items[i].at());
    window.resize(window.find_last_of('}') + 1);
    if (Json::parse(window)) windows_.push_back(std::move(window));
  }
  keep(most_windows);
}

FRUGAL_INLINE bool HotSpotsFile::write() const {
  std::error_code ignored;  // what fails here fails below too
  // Only a trace that is kept has made the folder.
  std::filesystem::create_directories(path_.parent_path(), ignored);
  JsonWriter file;
  file.object().add("version", 1).key("windows").array();
  for (std::string const& each : windows_) file.on_line(0).raw(each);
  try {
    write_whole_file(path_, file.on_line(0).str("\n"), Durable::no);
    return true;
  } catch (StoreError const&) {
    return false;
  }
}

FRUGAL_INLINE void HotSpotsFile::keep(std::size_t most) {
  std::size_t const more = windows_.size() - std::min(windows_.size(), most);
  windows_.erase(windows_.begin(), windows_.begin() + static_cast<std::ptrdiff_t>(more));
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/energy/meter.hpp>

#include <frugal/inline.hpp>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

namespace frugal::energy {

FRUGAL_INLINE double Rapl::joules() {
  for (std::size_t i = 0; i < zones_.size();) {
    Zone& zone = zones_[i];
    auto const now = number_in(zone.counter);
    if (!now) {
      failure_ = report(zone.counter, errno);
      zones_.erase(zones_.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    // The counter wraps to 0 at the end of its range.
    std::uint64_t const more =
        *now >= zone.last ? *now - zone.last
                          : (zone.range >= zone.last ? zone.range - zone.last + *now : *now);
    joules_ += static_cast<double>(more) * 1e-6;
    zone.last = *now;
    ++i;
  }
  return joules_;
}

FRUGAL_INLINE void Rapl::add(std::filesystem::path const& folder) {
  std::string const name = text_of(folder / "name").value_or("");
  if (!name.starts_with("package") && name != "dram") return;
  std::filesystem::path const counter = folder / "energy_uj";
  auto const now = number_in(counter);
  if (!now) {
    report(counter, errno);
    return;
  }
  zones_.push_back({counter, number_in(folder / "max_energy_range_uj").value_or(0), *now});
}

FRUGAL_INLINE std::string Rapl::report(std::filesystem::path const& counter, int reason) {
  std::string text = "the RAPL counter " + counter.string() + " cannot be read: " +
                     (reason == 0 ? "it has no number" : std::generic_category().message(reason));
  bool const denied = reason == EACCES || reason == EPERM;
  if (denied) {
    text += "; since Linux 5.10 only root may read it: chmod a+r the file, or run as root";
  }
  if (problem_.empty()) {
    problem_ = text;
    denied_ = denied;
  }
  return text;
}

FRUGAL_INLINE std::optional<std::string> Rapl::text_of(std::filesystem::path const& path) {
  errno = 0;
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return {};
  char text[64] = {};
  errno = 0;
  std::size_t const size = std::fread(text, 1, sizeof text - 1, file);
  int const reason = std::ferror(file) != 0 ? errno : 0;
  std::fclose(file);
  errno = reason;
  if (reason != 0) return {};
  std::string_view const line(text, size);
  return std::string(line.substr(0, line.find('\n')));
}

FRUGAL_INLINE std::optional<std::uint64_t> Rapl::number_in(std::filesystem::path const& path) {
  auto const text = text_of(path);
  if (!text) return {};
  std::uint64_t number = 0;
  auto const [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  errno = 0;
  if (error != std::errc() || end != text->data() + text->size()) return {};
  return number;
}

FRUGAL_INLINE std::vector<std::string> EnergyMeter::problems() const {
  std::vector<std::string> texts;
  if (rapl_ && !rapl_->problem().empty()) texts.push_back(rapl_->problem());
  if (nvml_ && !nvml_->problem().empty()) texts.push_back(nvml_->problem());
  return texts;
}

FRUGAL_INLINE std::vector<std::string> EnergyMeter::failures() const {
  std::vector<std::string> texts;
  if (rapl_ && !rapl_->failure().empty()) texts.push_back(rapl_->failure());
  if (nvml_ && !nvml_->failure().empty()) texts.push_back(nvml_->failure());
  return texts;
}

FRUGAL_INLINE std::vector<std::string> EnergySampler::stop() {
  if (!thread_) return {};
  thread_.reset();
  sample();
  return meter_.failures();
}

FRUGAL_INLINE void EnergySampler::sample() {
  joules_ = meter_.joules();
  if (!meter_.failures().empty()) failing_ = true;
}

}  // namespace frugal::energy

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/energy/meter.hpp>

#include <frugal/inline.hpp>

namespace frugal::energy {

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

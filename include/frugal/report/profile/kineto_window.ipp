// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/profile/kineto_window.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::unique_ptr<KinetoWindow> KinetoWindow::open(c10::Device device, bool memory) {
  namespace kineto = torch::autograd::profiler;
  if (taken().exchange(true)) return nullptr;
  std::unique_ptr<KinetoWindow> window(new KinetoWindow(device));
  if (kineto::profilerEnabled() || kineto::isProfilerEnabledInMainThread()) return nullptr;
  std::set<kineto::ActivityType> activities{kineto::ActivityType::CPU};
  if (device.is_cuda()) activities.insert(kineto::ActivityType::CUDA);
  if (device.is_xpu()) activities.insert(kineto::ActivityType::XPU);
  kineto::ProfilerConfig const config(kineto::ProfilerState::KINETO,
                                      /*report_input_shapes=*/false, memory);
  window->drain();
  kineto::prepareProfiler(config, activities);
  kineto::enableProfiler(config, activities);
  window->recording_ = true;
  return window;
}

FRUGAL_INLINE void KinetoWindow::drain() const {
  if (device_.is_cpu()) return;
  c10::impl::VirtualGuardImpl const guard(device_.type());
  guard.getStream(device_).synchronize();
}

FRUGAL_INLINE watch::Trace KinetoWindow::close() {
  recording_ = false;
  result_ = torch::autograd::profiler::disableProfiler();
  watch::Trace trace{.span = {std::numeric_limits<std::uint64_t>::max(), 0}};
  for (torch::autograd::profiler::KinetoEvent const& each : result_->events()) add(each, trace);
  if (trace.span.end == 0) trace.span = {};
  for (watch::TracedEvent const& each : trace.events) {
    if (each.where == watch::TracedEvent::Where::device) trace.on_accelerator = true;
  }
  return trace;
}

FRUGAL_INLINE c10::Device KinetoWindow::with_index(c10::Device device) {
  if (device.is_cpu() || device.has_index()) return device;
  return c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

FRUGAL_INLINE void KinetoWindow::add(torch::autograd::profiler::KinetoEvent const& event,
                                     watch::Trace& trace) const {
  using Where = watch::TracedEvent::Where;
  // Values of libkineto's ActivityType: ranges as the host saw them, and as the device did.
  constexpr std::uint8_t annotation = 1;
  constexpr std::uint8_t gpu_annotation = 2;
  std::string name = event.name();
  if (name == "[memory]") {
    if (is_of_run(device_, event.deviceType(), event.deviceIndex())) {
      trace.memory.push_back({event.startNs(), event.nBytes()});
    }
    return;
  }
  std::uint8_t const activity = event.activityType();
  bool const on_host = event.deviceType() == c10::DeviceType::CPU;
  if (activity == gpu_annotation || (!on_host && event.durationNs() == 0)) return;
  // Kineto records all devices of the process: another run may use the next one.
  if (!on_host && !is_of_run(device_, event.deviceType(), event.deviceIndex())) return;
  watch::TracedEvent found{.name = std::move(name),
                           .span = {event.startNs(), event.endNs()},
                           .thread = event.startThreadId(),
                           .id = event.correlationId(),
                           .launched_by = event.linkedCorrelationId()};
  if (!on_host) {
    found.where = Where::device;
  } else if (activity == annotation ||
             event.scope() == static_cast<std::uint8_t>(at::RecordScope::USER_SCOPE)) {
    found.where = Where::range;
    if (found.name.starts_with("frugal::")) {
      trace.span.begin = std::min(trace.span.begin, found.span.begin);
      trace.span.end = std::max(trace.span.end, found.span.end);
    }
  } else if (activity != cpu_op) {
    return;  // the driver's and the runtime's own calls: the operator around them has their time
  }
  trace.events.push_back(std::move(found));
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/profile/windows.hpp>

#include <frugal/core/run/run_state.hpp>
#include <frugal/inline.hpp>
#include <frugal/report/profile/trace.hpp>

#include <cstdlib>
#include <exception>
#include <fstream>
#include <limits>
#include <set>
#include <system_error>
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

FRUGAL_INLINE void StepRanges::begin(bool nvtx, std::string_view part) {
  nvtx_ = nvtx && has_nvtx();
  enter(part, /*first=*/true);
}

FRUGAL_INLINE void StepRanges::enter(std::string_view part, bool first) {
  if (!first && !range_) return;
  leave();
  range_.emplace(at::RecordScope::USER_SCOPE);
  if (range_->isActive()) range_->before(part.data());
  if (nvtx_) torch::profiler::impl::cudaStubs()->rangePush(part.data());
}

FRUGAL_INLINE void StepRanges::leave() {
  if (!range_) return;
  if (nvtx_) torch::profiler::impl::cudaStubs()->rangePop();
  range_.reset();
}

FRUGAL_INLINE void ProfileWindows::begin(RunState& run) {
  // Kineto does so only if it is told to. Setting the variable would race with other threads.
  if (plan_.graph && run.device.is_cuda() && tears_cupti_down()) {
    give_up(run,
            "TEARDOWN_CUPTI is 1. After CUPTI has been torn down, setting it up again fails next "
            "to CUDA graphs. Unset it, or remove CudaGraph or Profile.");
  }
  if (run.settings.run_dir.empty()) return;
  folder_ = run.settings.run_dir / "profile";
  remove_parts(folder_);
  file_.emplace(folder_ / "hot_spots.json");
  if (run.counters().step != 0) file_->resume_at(run.counters().step);
}

FRUGAL_INLINE void ProfileWindows::start(RunState& run, double step_seconds,
                                         std::optional<double> waited) {
  auto const before = Clock::now();
  try {
    window_ = KinetoWindow::open(run.device, plan_.memory);
  } catch (std::exception const& error) {
    return give_up(run, std::string("LibTorch's profiler does not start: ") + error.what());
  }
  if (!window_) {
    return give_up(run,
                   "another profiler is active in this process, and Kineto records one at a "
                   "time. Remove the other one, or Profile.");
  }
  if (plan_.nvtx && !StepRanges::has_nvtx()) {
    run.warn(
        "Profile<Nvtx>: this program has no LibTorch with CUDA, so there are no NVTX "
        "ranges; the trace has the same ranges");
  }
  step_seconds_ = step_seconds;
  waited_ = waited.value_or(0);
  steps_ = 0;
  ranges_.begin(plan_.nvtx, watch::range::policies);
  began_ = Clock::now();
  opening_ = began_ - before;
}

FRUGAL_INLINE bool ProfileWindows::is_full() {
  ++steps_;
  return steps_ >= plan_.steps || Clock::now() - began_ >= plan_.length;
}

FRUGAL_INLINE WindowProfile const* ProfileWindows::finish(RunState& run,
                                                          std::optional<double> waited) {
  auto const before = Clock::now();
  try {
    window_->drain();
    ranges_.leave();
    watch::Trace trace = window_->close();
    if (plan_.graph && waited) trace.waited_seconds = std::max(0.0, *waited - waited_);
    if (!run.device.is_cpu() && !trace.on_accelerator) {
      give_up(run, "the profiler recorded no work of " + run.device.str() +
                       ". CUPTI may be missing or in use by another tool, such as Nsight.");
      return nullptr;
    }
    std::uint64_t const began = trace.span.begin;
    std::vector<watch::MemoryPoint> const memory = watch::memory_line(trace);
    WindowProfile found = watch::analyse(std::move(trace));
    found.step = run.counters().step;
    found.steps = steps_;
    found.step_seconds =
        training_seconds(found) / static_cast<double>(std::max<std::uint64_t>(steps_, 1));
    keep_trace(run, found, memory, began);
    window_.reset();
    double const slower =
        step_seconds_ > 0 ? (found.step_seconds - step_seconds_) * static_cast<double>(steps_) : 0;
    auto const overhead = [&] {
      std::chrono::duration<double> const around = opening_ + (Clock::now() - before);
      return around.count() + std::max(0.0, slower);
    };
    if (file_) {
      if (!file_->add(found, overhead)) advise_of_folder(run);
    } else {
      found.overhead_seconds = overhead();
    }
    if (found_.size() == HotSpotsFile::most_windows) found_.erase(found_.begin());
    found_.push_back(std::move(found));
    return &found_.back();
  } catch (std::exception const& error) {
    give_up(run, std::string("a window could not be read: ") + error.what());
    return nullptr;
  }
}

FRUGAL_INLINE void ProfileWindows::discard() {
  ranges_.leave();
  window_.reset();
}

FRUGAL_INLINE bool ProfileWindows::tears_cupti_down() {
  char const* const value = std::getenv("TEARDOWN_CUPTI");
  return value != nullptr && std::string_view(value) == "1";
}

FRUGAL_INLINE double ProfileWindows::range_seconds(WindowProfile const& found,
                                                   std::string_view name) {
  for (watch::HotSpot const& each : found.ranges) {
    if (each.name == name) return each.microseconds / 1e6;
  }
  return 0;
}

FRUGAL_INLINE double ProfileWindows::training_seconds(WindowProfile const& found) {
  return std::max(0.0, found.seconds - range_seconds(found, watch::range::validation) -
                           range_seconds(found, watch::range::checkpoint));
}

FRUGAL_INLINE void ProfileWindows::keep_trace(RunState& run, WindowProfile& found,
                                              std::vector<watch::MemoryPoint> const& memory,
                                              std::uint64_t began) {
  if (folder_.empty() || kept_ >= plan_.traces) return;
  std::string const name = "step-" + std::to_string(found.step) + ".trace.json";
  std::filesystem::path const raw = folder_ / (name + ".kineto.part");
  std::error_code failure;
  std::filesystem::create_directories(folder_, failure);
  // Kineto reports a file that it cannot write on the terminal only.
  bool const writable = !failure && std::ofstream(raw).is_open();
  if (writable) window_->save(raw);
  bool const whole = writable && copy_with_counter(raw, folder_ / name,
                                                   watch::thinned(memory, most_counters), began);
  if (writable) std::filesystem::remove(raw, failure);
  if (!whole) return advise_of_folder(run);
  ++kept_;
  found.trace = "profile/" + name;
}

FRUGAL_INLINE void ProfileWindows::advise_of_folder(RunState& run) const {
  run.warn("Profile: " + folder_.string() +
           " cannot be written. The windows are analysed, and their files are missing. Check "
           "its permissions and the free space.");
}

FRUGAL_INLINE void ProfileWindows::give_up(RunState& run, std::string const& why) {
  // LibTorch's errors carry a stack trace from the second line on.
  run.warn("Profile: " + why.substr(0, why.find('\n')) + " There are no further windows.");
  over_ = true;
  discard();
}

}  // namespace frugal::detail

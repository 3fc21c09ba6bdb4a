// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/inline.hpp>

namespace frugal::energy {

/// Devices that this process sees, as NVML names them: "0", or "GPU-..." for a UUID.
/// `listed` is CUDA_VISIBLE_DEVICES; null: nothing, which stands for every device.
/// An invalid entry hides the ones after it, as in CUDA.
FRUGAL_INLINE std::optional<std::vector<std::string>> visible_devices(char const* listed) {
  if (listed == nullptr) return {};
  std::vector<std::string> devices;
  std::string_view rest = listed;
  while (!rest.empty()) {
    std::size_t const comma = rest.find(',');
    std::string_view const one = rest.substr(0, comma);
    bool const number = one.find_first_not_of("0123456789") == std::string_view::npos;
    bool const uuid = one.starts_with("GPU-") || one.starts_with("MIG-");
    if (one.empty() || !(number || uuid)) break;
    devices.emplace_back(one);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return devices;
}

/// The 16 bytes of a device's UUID, as CUDA has them, as NVML names the device:
/// "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6".
FRUGAL_INLINE std::string name_of_uuid(std::array<unsigned char, 16> const& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string name = "GPU";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) name += '-';
    name += digits[bytes[i] >> 4U];
    name += digits[bytes[i] & 15U];
  }
  return name;
}

inline std::string const nvml_library = "libnvidia-ml.so.1";

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Energy of NVIDIA devices, by NVML. The driver installs the library, which is loaded when it is
/// there, so that neither a header nor a link to CUDA is needed.
///
/// Devices of the Volta generation and later have a counter of energy. From others, power is read
/// and integrated between two calls of joules() (trapezoidal rule).
///
/// Errors  none thrown: `problem()` says why a device is not read.
/// Source  NVIDIA, NVML API reference, nvmlDeviceGetTotalEnergyConsumption (millijoules) and
///         nvmlDeviceGetPowerUsage (milliwatts)
class Nvml {
 public:
  using Clock = double (*)();  ///< seconds

  /// `devices` as in visible_devices; nothing: all of the machine.
  explicit Nvml(std::optional<std::vector<std::string>> const& devices = {},
                std::string const& library = nvml_library, Clock clock = &steady_seconds)
      : clock_(clock), library_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) {
      char const* const why = ::dlerror();
      problem_ = "NVML cannot be loaded: " + std::string(why != nullptr ? why : library);
      return;
    }
    if (!load()) {
      problem_ = library + " lacks functions of NVML";
      return;
    }
    if (int const failure = init_(); failure != 0) {
      problem_ = "NVML does not start: " + said(failure);
      return;
    }
    begun_ = true;
    if (devices) {
      for (std::string const& each : *devices) add(each);
    } else {
      unsigned count = 0;
      if (int const failure = count_(&count); failure != 0) report("the list", failure);
      for (unsigned i = 0; i < count; ++i) add(std::to_string(i));
    }
    if (devices_.empty() && problem_.empty()) problem_ = "NVML shows no device";
  }
  Nvml(Nvml const&) = delete;
  Nvml& operator=(Nvml const&) = delete;
  ~Nvml() {
    if (begun_) shutdown_();
  }

  bool reads() const { return !devices_.empty(); }
  std::string const& problem() const { return problem_; }
  /// Why a device that was read is not read any more; empty if each still is.
  std::string const& failure() const { return failure_; }
  std::size_t devices() const { return devices_.size(); }

  /// Joules of all devices since this object was made.
  FRUGAL_INLINE double joules() {
    for (std::size_t i = 0; i < devices_.size();) {
      if (measure(devices_[i])) {
        ++i;
      } else {
        devices_.erase(devices_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    return joules_;
  }

 private:
  using Handle = void*;  // nvmlDevice_t, a pointer to an incomplete type

  struct Device {
    std::string name;
    Handle handle;
    bool counts;                     ///< energy; otherwise power is sampled
    unsigned long long millijoules;  ///< at the last call
    double watts;                    ///< at the last call
    double at;                       ///< seconds, of the last call
  };
  struct Close {
    void operator()(void* library) const { ::dlclose(library); }
  };

  template <class Function>
  bool find(Function& function, char const* name) {
    function = reinterpret_cast<Function>(::dlsym(library_.get(), name));
    return function != nullptr;
  }

  FRUGAL_INLINE bool load() {
    find(text_, "nvmlErrorString");
    find(energy_, "nvmlDeviceGetTotalEnergyConsumption");  // not in old drivers
    return find(init_, "nvmlInit_v2") && find(shutdown_, "nvmlShutdown") &&
           find(count_, "nvmlDeviceGetCount_v2") &&
           find(by_index_, "nvmlDeviceGetHandleByIndex_v2") &&
           find(by_uuid_, "nvmlDeviceGetHandleByUUID") && find(power_, "nvmlDeviceGetPowerUsage");
  }

  std::string said(int failure) const {
    return text_ != nullptr ? text_(failure) : "error " + std::to_string(failure);
  }
  FRUGAL_INLINE void report(std::string const& device, int failure, bool later = false) {
    std::string const text = "NVML does not read device " + device + ": " + said(failure);
    if (problem_.empty()) problem_ = text;
    if (later && failure_.empty()) failure_ = text;
  }

  FRUGAL_INLINE void add(std::string const& name) {
    Device device{name, nullptr, false, 0, 0, clock_()};
    bool const number = name.find_first_not_of("0123456789") == std::string::npos;
    int failure = number && name.size() < 6
                      ? by_index_(static_cast<unsigned>(std::strtoul(name.c_str(), nullptr, 10)),
                                  &device.handle)
                      : by_uuid_(name.c_str(), &device.handle);
    if (failure == 0) {
      device.counts = energy_ != nullptr && energy_(device.handle, &device.millijoules) == 0;
      if (!device.counts) failure = read_power(device);
    }
    if (failure != 0) {
      report(name, failure);
    } else {
      devices_.push_back(std::move(device));
    }
  }

  FRUGAL_INLINE int read_power(Device& device) const {
    unsigned milliwatts = 0;
    int const failure = power_(device.handle, &milliwatts);
    device.watts = milliwatts * 1e-3;
    return failure;
  }

  FRUGAL_INLINE bool measure(Device& device) {
    if (device.counts) {
      unsigned long long now = 0;
      if (int const failure = energy_(device.handle, &now); failure != 0) {
        report(device.name, failure, true);
        return false;
      }
      // A reloaded driver begins at 0.
      joules_ +=
          static_cast<double>(now >= device.millijoules ? now - device.millijoules : now) * 1e-3;
      device.millijoules = now;
      return true;
    }
    double const before = device.watts;
    if (int const failure = read_power(device); failure != 0) {
      report(device.name, failure, true);
      return false;
    }
    double const now = clock_();
    joules_ += (before + device.watts) / 2 * (now - device.at);
    device.at = now;
    return true;
  }

  Clock clock_;
  std::unique_ptr<void, Close> library_;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*by_index_)(unsigned, Handle*) = nullptr;
  int (*by_uuid_)(char const*, Handle*) = nullptr;
  int (*energy_)(Handle, unsigned long long*) = nullptr;
  int (*power_)(Handle, unsigned*) = nullptr;
  char const* (*text_)(int) = nullptr;
  bool begun_ = false;
  std::vector<Device> devices_;
  std::string problem_;
  std::string failure_;
  double joules_ = 0;
};

}  // namespace frugal::energy

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace frugal::energy {

/// Devices that this process sees, as NVML names them: "0", or "GPU-..." for a UUID.
/// `listed` is CUDA_VISIBLE_DEVICES; null: nothing, which stands for every device.
/// An invalid entry hides the ones after it, as in CUDA.
std::optional<std::vector<std::string>> visible_devices(char const* listed);

/// The 16 bytes of a device's UUID, as CUDA has them, as NVML names the device:
/// "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6".
std::string name_of_uuid(std::array<unsigned char, 16> const& bytes);

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
  double joules();

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

  bool load();

  std::string said(int failure) const {
    return text_ != nullptr ? text_(failure) : "error " + std::to_string(failure);
  }
  void report(std::string const& device, int failure, bool later = false);

  void add(std::string const& name);

  int read_power(Device& device) const;

  bool measure(Device& device);

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

#ifndef FRUGAL_COMPILED
#include <frugal/report/energy/nvml.ipp>
#endif

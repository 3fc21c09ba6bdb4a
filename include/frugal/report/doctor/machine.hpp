// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/doctor/disk.hpp>
#include <frugal/report/doctor/limits.hpp>

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal::doctor {

/// A GPU of NVIDIA.
struct Gpu {
  std::string model = {};
  std::uint64_t memory = 0;  ///< bytes
  int major = 0;             ///< of the compute capability
  int minor = 0;

  bool at_least(int wanted_major, int wanted_minor) const {
    return major > wanted_major || (major == wanted_major && minor >= wanted_minor);
  }
  // The first compute capabilities whose matrix units multiply these (CUDA C++ Programming Guide,
  // "Compute capabilities"; NVIDIA's data sheets of Volta, Turing, Ampere and Ada).
  bool fp16() const { return at_least(7, 0); }
  bool int8() const { return at_least(7, 2); }
  bool bf16() const { return at_least(8, 0); }
  bool tf32() const { return at_least(8, 0); }
  bool fp8() const { return at_least(8, 9); }
};

/// The GPUs of this machine, and what is wrong if they cannot be used.
struct Gpus {
  std::vector<Gpu> all = {};
  std::string driver = {};  ///< version of the kernel's driver, such as "550.54.14"
  std::string cuda = {};    ///< newest CUDA that the driver supports, such as "12.4"
  std::string fault = {};   ///< empty if all is well, also without any GPU
};

/// The calls of CUDA's driver API that are used here; tests have their own.
struct CudaDriver {
  int (*init)(unsigned) = nullptr;
  int (*driver_version)(int*) = nullptr;
  int (*count)(int*) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*memory)(std::size_t*, int) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;

  bool complete() const {
    return init != nullptr && driver_version != nullptr && count != nullptr && device != nullptr &&
           name != nullptr && memory != nullptr && attribute != nullptr;
  }
};

namespace detail {

/// The driver's library, loaded at run time so that programs need no CUDA. It stays loaded: CUDA
/// does not support being unloaded.
inline CudaDriver loaded_cuda(char const* library = "libcuda.so.1") {
  CudaDriver calls;
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return calls;
  auto const find = [handle]<class Call>(Call& call, char const* symbol) {
    call = reinterpret_cast<Call>(::dlsym(handle, symbol));
  };
  find(calls.init, "cuInit");
  find(calls.driver_version, "cuDriverGetVersion");
  find(calls.count, "cuDeviceGetCount");
  find(calls.device, "cuDeviceGet");
  find(calls.name, "cuDeviceGetName");
  find(calls.memory, "cuDeviceTotalMem_v2");
  find(calls.attribute, "cuDeviceGetAttribute");
  return calls;
}

/// The first word of "NVRM version: ..." that is a version.
inline std::string driver_version(std::string_view text) {
  std::istringstream words{std::string(text.substr(0, text.find('\n')))};
  for (std::string word; words >> word;) {
    bool const is_version = word.find('.') != std::string::npos &&
                            word.find_first_not_of("0123456789.") == std::string::npos;
    if (is_version) return word;
  }
  return {};
}

inline std::size_t entries_in(std::filesystem::path const& folder) {
  std::size_t count = 0;
  std::error_code failure;
  std::filesystem::directory_iterator each(folder, failure);
  for (; !failure && each != std::filesystem::directory_iterator(); each.increment(failure)) {
    ++count;
  }
  return count;
}

inline Gpu gpu_of(CudaDriver const& calls, int index) {
  // CUdevice_attribute of cuda.h
  constexpr int capability_major = 75;
  constexpr int capability_minor = 76;
  Gpu gpu;
  int device = 0;
  if (calls.device(&device, index) != 0) return gpu;
  char name[128] = {};
  std::size_t bytes = 0;
  if (calls.name(name, sizeof name - 1, device) == 0) gpu.model = name;
  if (calls.memory(&bytes, device) == 0) gpu.memory = bytes;
  calls.attribute(&gpu.major, capability_major, device);
  calls.attribute(&gpu.minor, capability_minor, device);
  return gpu;
}

inline std::string cuda_fault(int code) {
  constexpr int no_device = 100;
  if (code == no_device) {
    return "CUDA sees no GPU: look at CUDA_VISIBLE_DEVICES and at the container's devices";
  }
  return "CUDA's driver does not start (error " + std::to_string(code) +
         "): run nvidia-smi, and look at the kernel's log";
}

}  // namespace detail

/// Asks the driver. No context is made, so no memory of a GPU is used. `root` stands for / in
/// tests.
inline Gpus read_gpus(CudaDriver const& calls, std::filesystem::path const& root = "/") {
  Gpus gpus;
  std::filesystem::path const driver = root / "proc/driver/nvidia";
  gpus.driver = detail::driver_version(detail::kernel_text(driver / "version").value_or(""));
  std::size_t const listed = detail::entries_in(driver / "gpus");
  if (!calls.complete()) {
    if (listed == 0) return gpus;
    gpus.fault = "the driver lists " + std::to_string(listed) +
                 " GPUs, but libcuda.so.1 cannot be loaded: start the container with NVIDIA's "
                 "runtime";
    return gpus;
  }
  int code = calls.init(0);
  int count = 0;
  if (code == 0) code = calls.count(&count);
  if (code != 0) {
    // libcuda without a GPU is a common state of images, and no fault of the machine.
    if (listed != 0 || !gpus.driver.empty()) gpus.fault = detail::cuda_fault(code);
    return gpus;
  }
  int number = 0;
  if (calls.driver_version(&number) == 0) {
    gpus.cuda = std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
  }
  for (int i = 0; i < count; ++i) gpus.all.push_back(detail::gpu_of(calls, i));
  return gpus;
}

inline Gpus read_gpus() { return read_gpus(detail::loaded_cuda()); }

/// Speeds of one matrix product on the fastest device, in operations per second.
struct Matmul {
  std::string device = {};  ///< "cpu" or "cuda"
  int size = 0;             ///< rows and columns of each matrix
  double fp32 = 0;
  double bf16 = 0;  ///< 0: not measured

  double ratio() const { return fp32 > 0 ? bf16 / fp32 : 0; }
};

/// The kernels that LibTorch takes for attention in a format, by their usual names.
struct AttentionKernel {
  std::string format = {};  ///< "FP32", "BF16"
  std::string causal = {};
  std::string masked = {};  ///< with a mask of padded tokens
};

/// A sentence of a policy about this machine, as explain() prints it.
struct Caution {
  std::string policy = {};
  std::string text = {};
  std::string page = {};
};

/// All that the doctor found; parts that were not looked at are empty.
struct Machine {
  Cpu cpu = {};
  Limits limits = {};
  Gpus gpus = {};
  std::optional<Disk> disk{};
  std::optional<Matmul> matmul{};
  std::vector<AttentionKernel> attention = {};
  std::string cloud = {};       ///< "aws", "gcp", "azure", or empty
  std::string cloud_text = {};  ///< one sentence about the metadata service
  bool torch_has_cuda = false;  ///< whether LibTorch can use a GPU
  int torch_threads = 0;        ///< 0: LibTorch was not asked
  std::vector<std::pair<std::string, std::string>> versions = {};  ///< name, version
  std::vector<std::string> components = {};                        ///< compiled in
  std::vector<std::string> missing_components = {};                ///< not compiled in
  std::vector<Caution> cautions = {};                              ///< of policies
};

/// The cloud by the vendor in the machine's firmware tables (SMBIOS), at no cost: "aws", "gcp",
/// "azure", or empty. A container on the cloud's machine sees them as well.
inline std::string cloud_of_firmware(std::filesystem::path const& root = "/") {
  std::filesystem::path const tables = root / "sys/class/dmi/id";
  std::string const vendor = detail::kernel_text(tables / "sys_vendor").value_or("");
  if (vendor.starts_with("Amazon EC2")) return "aws";
  if (vendor.starts_with("Google")) return "gcp";
  // Hyper-V has the same vendor; this tag is Azure's alone.
  std::string const tag = detail::kernel_text(tables / "chassis_asset_tag").value_or("");
  if (detail::trimmed(tag) == "7783-7084-3265-9085-8269-3286-77") return "azure";
  return {};
}

/// What can be read without LibTorch, without a network and without writing.
inline Machine read_machine(std::filesystem::path const& root = "/") {
  Machine machine;
  machine.cpu = read_cpu(root);
  machine.limits = read_limits(root);
  machine.gpus = read_gpus(detail::loaded_cuda(), root);
  machine.cloud = cloud_of_firmware(root);
  return machine;
}

}  // namespace frugal::doctor

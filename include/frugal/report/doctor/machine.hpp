// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/doctor/cpu.hpp>
#include <frugal/report/doctor/disk.hpp>
#include <frugal/report/doctor/gpus.hpp>
#include <frugal/report/doctor/limits.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::doctor {

/// Speeds of one matrix product on the fastest device, in operations per second.
struct Matmul {
  std::string device = {};  ///< "cpu" or "cuda"
  int size = 0;             ///< rows and columns of each matrix
  double fp32 = 0;
  double bf16 = 0;  ///< 0: not measured

  double ratio() const { return fp32 > 0 ? bf16 / fp32 : 0; }
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

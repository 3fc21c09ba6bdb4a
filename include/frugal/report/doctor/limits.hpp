// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

/// What a machine offers to training, found without tensors.
namespace frugal::doctor {

namespace detail {

/// The text of a small file of the kernel; nothing if it cannot be read.
inline std::optional<std::string> kernel_text(std::filesystem::path const& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  // Reading a folder, or a file of a controller that is off, fails here and not before.
  if (file.bad() || text.fail()) return std::nullopt;
  return text.str();
}

inline std::string_view trimmed(std::string_view text) {
  std::size_t const begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace detail

/// One CPU model with its instructions, as Linux names both.
struct Cpu {
  std::string model;               ///< empty if the kernel gives none, as on Arm
  std::size_t processors = 0;      ///< logical processors of the machine; 0: unknown
  std::vector<std::string> flags;  ///< "flags" on x86-64, "Features" on Arm
  std::string architecture = {};   ///< "x86-64", "arm64", or empty

  bool has(std::string_view flag) const {
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
  }
  bool has_any(std::initializer_list<std::string_view> some) const {
    return std::any_of(some.begin(), some.end(), [this](std::string_view f) { return has(f); });
  }

  // The names are those of Linux: arch/x86/include/asm/cpufeatures.h and
  // Documentation/arch/arm64/elf_hwcaps.rst.
  bool bf16() const { return has_any({"avx512_bf16", "amx_bf16", "bf16"}); }
  bool fp16() const { return has_any({"avx512_fp16", "amx_fp16", "asimdhp"}); }
  bool int8() const { return has_any({"avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm"}); }

  /// The widest vector extensions, widest first: "AMX", "AVX-512", "AVX2", "SVE", "NEON".
  std::vector<std::string> vectors() const {
    struct Named {
      std::string_view flag, name;
    };
    static constexpr std::array known{Named{"amx_tile", "AMX"},  Named{"avx512f", "AVX-512"},
                                      Named{"avx2", "AVX2"},     Named{"avx", "AVX"},
                                      Named{"sse4_2", "SSE4.2"}, Named{"sve2", "SVE2"},
                                      Named{"sve", "SVE"},       Named{"asimd", "NEON"}};
    std::vector<std::string> names;
    for (Named const& each : known) {
      if (has(each.flag) && names.size() < 3) names.emplace_back(each.name);
    }
    return names;
  }
};

/// Reads the text of /proc/cpuinfo. Unknown lines are ignored; an empty text gives an empty Cpu.
inline Cpu cpu_of(std::string_view text) {
  Cpu cpu;
  while (!text.empty()) {
    std::size_t const end = std::min(text.find('\n'), text.size());
    std::string_view const line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::size_t const colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view const key = detail::trimmed(line.substr(0, colon));
    std::string_view const value = detail::trimmed(line.substr(colon + 1));
    if (key == "processor") ++cpu.processors;
    if (key == "model name" && cpu.model.empty()) cpu.model = value;
    if ((key == "flags" || key == "Features") && cpu.flags.empty()) {
      cpu.architecture = key == "flags" ? "x86-64" : "arm64";
      std::istringstream words{std::string(value)};
      for (std::string word; words >> word;) cpu.flags.push_back(word);
    }
  }
  return cpu;
}

/// The CPU of this machine; `root` stands for / in tests. An empty Cpu without /proc.
inline Cpu read_cpu(std::filesystem::path const& root = "/") {
  return cpu_of(detail::kernel_text(root / "proc/cpuinfo").value_or(""));
}

/// What the kernel lets this process use, which in a container is less than the machine has.
struct Limits {
  std::optional<std::size_t> affinity{};            ///< processors of the affinity mask
  std::optional<double> quota{};                    ///< processors of the cgroup's quota
  std::optional<std::uint64_t> memory_limit{};      ///< bytes, of the cgroup
  std::optional<std::uint64_t> memory{};            ///< bytes, of the machine
  std::optional<std::uint64_t> memory_available{};  ///< bytes that the machine has free
  int cgroup = 0;                                   ///< version 1 or 2; 0: none found

  /// Threads that can run at a time: quotas are rounded down, since a thread beyond the quota is
  /// throttled with all others. 0 if nothing is known.
  std::size_t threads() const {
    std::size_t const mask = affinity.value_or(0);
    if (!quota) return mask;
    auto const whole = static_cast<std::size_t>(std::max(1.0, *quota));
    return mask == 0 ? whole : std::min(mask, whole);
  }
  /// Bytes that the process may use at most.
  std::optional<std::uint64_t> usable_memory() const {
    if (!memory_limit || !memory) return memory_limit ? memory_limit : memory;
    return std::min(*memory_limit, *memory);
  }
};

namespace detail {

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  text = trimmed(text);
  Number value{};
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
void lower(std::optional<T>& limit, std::optional<T> other) {
  if (other && (!limit || *other < *limit)) limit = other;
}

/// The folders of a cgroup and of all above it, up to the mount. A path of the host that this
/// container does not see gives the mount alone.
inline std::vector<std::filesystem::path> upward(std::filesystem::path const& mount,
                                                 std::string_view cgroup) {
  std::vector<std::filesystem::path> folders{mount};
  std::filesystem::path at = mount;
  for (auto const& part : std::filesystem::path(cgroup).relative_path()) {
    // A process in a namespace of its own may see "/../x".
    if (part == "..") break;
    at /= part;
    folders.push_back(at);
  }
  return folders;
}

/// "max 100000" or "150000 100000": processors of a quota.
inline std::optional<double> quota_of(std::string_view text) {
  std::size_t const space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  auto const quota = number_of<std::int64_t>(text.substr(0, space));
  auto const period = number_of<std::int64_t>(text.substr(space));
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

inline void apply_version_2(Limits& limits, std::filesystem::path const& mount,
                            std::string_view cgroup) {
  for (auto const& folder : upward(mount, cgroup)) {
    if (auto const text = kernel_text(folder / "cpu.max")) {
      limits.cgroup = 2;
      lower(limits.quota, quota_of(*text));
    }
    if (auto const text = kernel_text(folder / "memory.max")) {
      limits.cgroup = 2;
      lower(limits.memory_limit, number_of<std::uint64_t>(*text));
    }
  }
}

inline void apply_version_1(Limits& limits, std::filesystem::path const& mount,
                            std::string_view controller, std::string_view cgroup) {
  for (auto const& folder : upward(mount, cgroup)) {
    if (controller == "cpu") {
      auto const quota = kernel_text(folder / "cpu.cfs_quota_us");
      auto const period = kernel_text(folder / "cpu.cfs_period_us");
      if (!quota || !period) continue;
      limits.cgroup = std::max(limits.cgroup, 1);
      lower(limits.quota, quota_of(std::string(trimmed(*quota)) + " " + *period));
    } else if (auto const text = kernel_text(folder / "memory.limit_in_bytes")) {
      limits.cgroup = std::max(limits.cgroup, 1);
      // Without a limit the kernel gives the largest number of whole pages.
      auto const bytes = number_of<std::uint64_t>(*text);
      if (bytes && *bytes < (std::uint64_t{1} << 62)) lower(limits.memory_limit, bytes);
    }
  }
}

/// "MemTotal:       16314476 kB"
inline std::optional<std::uint64_t> meminfo(std::string_view text, std::string_view key) {
  std::size_t const at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view line = text.substr(at + key.size());
  line = trimmed(line.substr(0, line.find('\n')));
  auto const kib = number_of<std::uint64_t>(line.substr(0, line.find(' ')));
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

}  // namespace detail

/// The processors of this process's affinity mask, which cpusets lower as well.
inline std::optional<std::size_t> affinity_of_process() {
  for (std::size_t size = 1024; size <= (1U << 16U); size *= 4) {
    cpu_set_t* const mask = CPU_ALLOC(size);
    if (mask == nullptr) return std::nullopt;
    std::size_t const bytes = CPU_ALLOC_SIZE(size);
    int const failed = ::sched_getaffinity(0, bytes, mask);
    int const count = failed == 0 ? CPU_COUNT_S(bytes, mask) : 0;
    CPU_FREE(mask);
    if (count > 0) return static_cast<std::size_t>(count);
  }
  return std::nullopt;
}

/// The limits of this process, from cgroups of version 1, version 2, or both; a limit of a cgroup
/// above counts as well. `root` stands for / in tests. Unreadable files set no limit.
/// Source: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/ of the Linux kernel.
inline Limits read_limits(std::filesystem::path const& root = "/") {
  Limits limits;
  limits.affinity = affinity_of_process();
  std::string const memory = detail::kernel_text(root / "proc/meminfo").value_or("");
  limits.memory = detail::meminfo(memory, "MemTotal:");
  limits.memory_available = detail::meminfo(memory, "MemAvailable:");
  std::filesystem::path const mount = root / "sys/fs/cgroup";
  std::string const text = detail::kernel_text(root / "proc/self/cgroup").value_or("");
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view const line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    std::size_t const first = line.find(':');
    std::size_t const second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    std::string controllers = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    std::string_view const cgroup = line.substr(second + 1);
    if (controllers == ",,") {
      detail::apply_version_2(limits, mount, cgroup);
      // If both versions are mounted, version 2 has a folder of its own.
      detail::apply_version_2(limits, mount / "unified", cgroup);
    }
    for (std::string const controller : {"cpu", "memory"}) {
      if (controllers.find("," + controller + ",") == controllers.npos) continue;
      detail::apply_version_1(limits, mount / controller, controller, cgroup);
    }
  }
  return limits;
}

}  // namespace frugal::doctor

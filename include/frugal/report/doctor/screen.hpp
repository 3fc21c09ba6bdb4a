// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/number_texts.hpp>
#include <frugal/base/text_width.hpp>
#include <frugal/report/doctor/levers.hpp>
#include <frugal/report/doctor/machine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace frugal::doctor {

inline constexpr std::size_t screen_lines = 24;
inline constexpr std::size_t screen_columns = 100;

namespace detail {

inline std::string joined(std::vector<std::string> const& words) {
  std::string text;
  for (std::string const& word : words) text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "none" : text;
}

inline std::string bytes(std::optional<std::uint64_t> count) {
  return count ? frugal::detail::bytes_text(static_cast<double>(*count)) : "unknown";
}

inline std::string cpu_line(Machine const& machine) {
  Cpu const& cpu = machine.cpu;
  if (cpu.flags.empty() && cpu.model.empty()) return "unknown: /proc/cpuinfo cannot be read";
  return (cpu.model.empty() ? cpu.architecture : cpu.model) + ", " + joined(cpu.vectors());
}

inline std::string threads_line(Machine const& machine) {
  Limits const& limits = machine.limits;
  std::string text = std::to_string(limits.threads()) +
                     " may run: " + std::to_string(machine.cpu.processors) + " processors";
  if (limits.affinity) text += ", " + std::to_string(*limits.affinity) + " by affinity";
  if (limits.quota) text += ", " + one_digit(*limits.quota) + " by the cgroup";
  if (machine.torch_threads != 0) {
    text += "; LibTorch starts " + std::to_string(machine.torch_threads);
  }
  return text;
}

inline std::string memory_line(Limits const& limits) {
  return bytes(limits.memory) + ", " + bytes(limits.memory_available) +
         " available; limit of the cgroup: " +
         (limits.memory_limit ? bytes(limits.memory_limit) : "none");
}

inline std::string gpu_line(Gpus const& gpus) {
  if (gpus.all.empty()) return gpus.fault.empty() ? "none" : "none usable: " + gpus.fault;
  Gpu const& first = gpus.all.front();
  std::string text = std::to_string(gpus.all.size()) + " x " + first.model + ", " +
                     bytes(first.memory) + ", compute capability " + std::to_string(first.major) +
                     "." + std::to_string(first.minor);
  for (Gpu const& gpu : gpus.all) {
    if (gpu.model == first.model) continue;
    text += "; and others (--json)";
    break;
  }
  if (!gpus.driver.empty()) text += ", driver " + gpus.driver;
  return gpus.cuda.empty() ? text : text + ", CUDA " + gpus.cuda;
}

/// Formats with instructions or matrix units of their own.
inline std::vector<std::string> formats(Machine const& machine) {
  std::vector<std::string> names;
  auto const add = [&names](bool has, char const* name) {
    if (has) names.emplace_back(name);
  };
  if (!machine.gpus.all.empty()) {
    Gpu const& gpu = machine.gpus.all.front();
    add(gpu.tf32(), "TF32");
    add(gpu.bf16(), "BF16");
    add(gpu.fp16(), "FP16");
    add(gpu.fp8(), "FP8");
    add(gpu.int8(), "INT8");
    return names;
  }
  add(machine.cpu.bf16(), "BF16");
  add(machine.cpu.fp16(), "FP16");
  add(machine.cpu.int8(), "INT8");
  return names;
}

inline std::string dtypes_line(Machine const& machine) {
  std::string text = joined(formats(machine));
  if (machine.gpus.all.empty()) {
    text += " (CPU)";
  } else {
    text += machine.torch_has_cuda ? " (GPU)" : " (GPU, which this LibTorch cannot use)";
  }
  if (!machine.matmul) return text;
  Matmul const& matmul = *machine.matmul;
  text += "; product of " + std::to_string(matmul.size) + " on " + matmul.device + ": FP32 " +
          one_digit(matmul.fp32 / 1e9) + " GFLOP/s";
  if (matmul.bf16 > 0) text += ", BF16 " + one_digit(matmul.ratio()) + " x";
  return text;
}

/// "FP32 flash, with a mask math; BF16 flash".
inline std::string attention_line(std::vector<AttentionKernel> const& kernels) {
  std::string text;
  for (AttentionKernel const& each : kernels) {
    text += (text.empty() ? "" : "; ") + each.format + ' ' + each.causal;
    if (each.masked != each.causal) text += ", with a mask " + each.masked;
  }
  return text;
}

inline std::string disk_line(Machine const& machine) {
  if (!machine.disk) return "not measured";
  Disk const& disk = *machine.disk;
  if (!disk.why_not.empty()) return disk.folder + " not measured: " + disk.why_not;
  return disk.folder + " (" + disk.file_system + "): write and fsync " +
         one_digit(disk.write_rate() / 1e6) + " MB/s, read " + one_digit(disk.read_rate() / 1e6) +
         " MB/s" + (disk.read_past_cache ? "" : " (perhaps from memory)") + ", " +
         bytes(disk.free) + " free";
}

inline std::string cloud_line(Machine const& machine) {
  if (!machine.cloud_text.empty()) return machine.cloud_text;
  if (machine.cloud.empty()) return "none by the firmware; not asked (--cloud asks)";
  return machine.cloud + " by the firmware; not asked (--cloud asks)";
}

inline std::string versions_line(Machine const& machine) {
  std::string text;
  for (auto const& [name, version] : machine.versions) {
    text += (text.empty() ? "" : ", ") + name + " " + version;
  }
  return text.empty() ? "not given" : text;
}

/// "disk         /data (ext4): ...": one line, cut if it is too long, so that a name of any length
/// does not push the recommendations from the screen.
inline std::string fact(std::string label, std::string value) {
  label.resize(13, ' ');
  value = watch::printable(value);
  std::size_t const room = screen_columns - label.size();
  if (watch::text_width(value) > room) {
    value = std::string(watch::truncated(value, room - 3)) + "...";
  }
  return label + value + '\n';
}

}  // namespace detail

/// The machine and its levers on one screen: at most 24 lines of 100 columns. Recommendations that
/// do not fit are counted in the last line.
inline std::string screen(Machine const& machine) {
  std::vector<std::pair<std::string, std::string>> facts{
      {"versions", detail::versions_line(machine)},
      {"components", detail::joined(machine.components) +
                         (machine.missing_components.empty()
                              ? ""
                              : "; without " + detail::joined(machine.missing_components))},
      {"cpu", detail::cpu_line(machine)},
      {"threads", detail::threads_line(machine)},
      {"memory", detail::memory_line(machine.limits)},
      {"gpus", detail::gpu_line(machine.gpus)},
      {"fast dtypes", detail::dtypes_line(machine)},
      {"attention", detail::attention_line(machine.attention)},
      {"disk", detail::disk_line(machine)},
      {"cloud", detail::cloud_line(machine)}};
  std::erase_if(facts, [](auto const& fact) { return fact.second.empty(); });
  std::string text;
  for (auto const& [label, value] : facts) text += detail::fact(label, value);
  text += '\n';
  std::vector<Recommendation> const all = levers_for(machine);
  std::vector<std::vector<std::string>> rows{{"use", "lever", "why", "docs/"}};
  std::string table;
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto longer = rows;
    longer.push_back({all[i].use ? "yes" : "no", all[i].lever, all[i].why, all[i].page});
    std::string drawn = watch::columns(longer, {3, 27, 43, 21});
    auto const lines = static_cast<std::size_t>(std::count(drawn.begin(), drawn.end(), '\n'));
    // One line stays for what does not fit.
    if (lines > screen_lines - facts.size() - 2) {
      table += std::to_string(all.size() - i) + " more with --json\n";
      break;
    }
    rows = std::move(longer);
    table = std::move(drawn);
  }
  return text + table;
}

}  // namespace frugal::doctor

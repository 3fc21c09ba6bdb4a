// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
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

}  // namespace frugal::doctor

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/doctor/cpu.hpp>

#include "support/files.hpp"

#include <string>
#include <vector>

namespace frugal_test::doctor_cpu {

using frugal::doctor::Cpu;
using frugal::doctor::cpu_of;
using frugal::doctor::read_cpu;
using frugal_test::support::TemporaryFolder;

TEST_CASE("an x86-64 CPU has its model, processors, vectors and formats") {
  // The lines that matter of a Sapphire Rapids.
  Cpu const cpu = cpu_of(
      "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8488C\n"
      "flags\t\t: fpu sse4_2 avx avx2 avx512f avx512_bf16 avx512_vnni amx_bf16 avx512_fp16 "
      "amx_tile\n"
      "\nprocessor\t: 1\nmodel name\t: Intel(R) Xeon(R) Platinum 8488C\nflags\t\t: fpu\n");
  CHECK(cpu.model == "Intel(R) Xeon(R) Platinum 8488C");
  CHECK(cpu.processors == 2);
  CHECK(cpu.architecture == "x86-64");
  CHECK(cpu.vectors() == std::vector<std::string>{"AMX", "AVX-512", "AVX2"});
  CHECK((cpu.bf16() && cpu.fp16() && cpu.int8()));
}

TEST_CASE("an old CPU has none of the fast formats, and a flag is a whole word") {
  Cpu const cpu = cpu_of("processor : 0\nflags : fpu sse4_2 avx xavx512_bf16 avx512_bf16y\n");
  CHECK(cpu.vectors() == std::vector<std::string>{"AVX", "SSE4.2"});
  CHECK_FALSE((cpu.bf16() || cpu.fp16() || cpu.int8()));
}

TEST_CASE("an Arm CPU has features and no model") {
  // The lines that matter of a Graviton 3.
  Cpu const cpu = cpu_of(
      "processor\t: 0\nBogoMIPS\t: 2100.00\n"
      "Features\t: fp asimd asimdhp asimddp sve i8mm bf16\nCPU implementer\t: 0x41\n");
  CHECK(cpu.model.empty());
  CHECK(cpu.architecture == "arm64");
  CHECK(cpu.vectors() == std::vector<std::string>{"SVE", "NEON"});
  CHECK((cpu.bf16() && cpu.fp16() && cpu.int8()));
}

TEST_CASE("without /proc nothing is known, and nothing throws") {
  TemporaryFolder const root;
  CHECK(read_cpu(root.path()).flags.empty());
  CHECK(read_cpu(root.path()).processors == 0);
  CHECK(cpu_of("no colon\n:\n\n: :").flags.empty());
}

}  // namespace frugal_test::doctor_cpu

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/report/doctor/limits.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
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

namespace frugal_test::doctor_limits {

using frugal::doctor::Limits;
using frugal::doctor::read_limits;
using frugal_test::support::TemporaryFolder;

struct Root : TemporaryFolder {
  void put(std::string const& name, std::string const& text) const {
    std::filesystem::create_directories((*this / name).parent_path());
    std::ofstream(*this / name) << text;
  }
  Limits limits() const { return read_limits(path()); }
};

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

TEST_CASE("version 2: the lowest limit of the cgroup and of those above it counts") {
  Root const root;
  root.put("proc/self/cgroup", "0::/a/b\n");
  root.put("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  root.put("sys/fs/cgroup/a/memory.max", "4294967296\n");
  root.put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  root.put("sys/fs/cgroup/a/b/memory.max", "max\n");
  root.put("proc/meminfo", "MemTotal:       16777216 kB\nMemAvailable:   8388608 kB\n");
  Limits const limits = root.limits();
  CHECK(limits.cgroup == 2);
  CHECK(limits.quota == 1.5);
  CHECK(limits.memory_limit == 4 * gib);
  CHECK(limits.memory == 16 * gib);
  CHECK(limits.memory_available == 8 * gib);
  CHECK(limits.usable_memory() == 4 * gib);
  CHECK(limits.threads() == 1);
}

TEST_CASE("version 2 in a container: a path of the host that is not visible gives the mount") {
  Root const root;
  root.put("proc/self/cgroup", "0::/../../docker/1234\n");
  root.put("sys/fs/cgroup/cpu.max", "400000 100000\n");
  root.put("sys/fs/cgroup/memory.max", "1073741824\n");
  CHECK(root.limits().quota == 4.0);
  CHECK(root.limits().memory_limit == gib);
}

TEST_CASE("version 1: quota over period, and the largest number is no limit") {
  Root const root;
  root.put("proc/self/cgroup", "9:name=systemd:/x\n4:memory:/docker/1\n2:cpuacct,cpu:/docker/1\n");
  root.put("sys/fs/cgroup/cpu/docker/1/cpu.cfs_quota_us", "250000\n");
  root.put("sys/fs/cgroup/cpu/docker/1/cpu.cfs_period_us", "100000\n");
  root.put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(root.limits().cgroup == 1);
  CHECK(root.limits().quota == 2.5);
  CHECK_FALSE(root.limits().memory_limit);
  root.put("sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "2147483648\n");
  CHECK(root.limits().memory_limit == 2 * gib);
}

TEST_CASE("without cgroups there are no limits, and the affinity is that of the process") {
  Root const root;
  Limits const limits = root.limits();
  CHECK(limits.cgroup == 0);
  CHECK_FALSE(limits.quota);
  CHECK_FALSE(limits.memory);
  CHECK_FALSE(limits.usable_memory());
  CHECK(limits.affinity == std::thread::hardware_concurrency());
  CHECK(limits.threads() == limits.affinity);
}

TEST_CASE("files that make no sense set no limit") {
  Root const root;
  root.put("proc/self/cgroup", "nonsense\n0::/\n:\n");
  root.put("proc/meminfo", "MemTotal: many kB\n");
  for (std::string const text : {"", "max", "0 0", "-5 100000", "a b", "1e999 1", "100000 0"}) {
    root.put("sys/fs/cgroup/cpu.max", text);
    root.put("sys/fs/cgroup/memory.max", text);
    CHECK_FALSE(root.limits().quota);
    CHECK_FALSE(root.limits().memory_limit);
    CHECK_FALSE(root.limits().memory);
  }
}

TEST_CASE("a quota below one processor allows one thread") {
  Limits const limits{.affinity = 8, .quota = 0.5};
  CHECK(limits.threads() == 1);
  CHECK(Limits{.quota = 3.9}.threads() == 3);
  CHECK(Limits{.affinity = 2, .quota = 16.0}.threads() == 2);
  CHECK(Limits{}.threads() == 0);
}

}  // namespace frugal_test::doctor_limits

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/doctor/limits.hpp>

#include "support/files.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

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

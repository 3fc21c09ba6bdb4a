// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/energy/rapl.hpp>

#include "support/files.hpp"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace frugal_test::energy_rapl {

using frugal::energy::Rapl;
using support::TemporaryFolder;

/// A zone as Linux shows it below /sys/class/powercap.
struct Zone {
  Zone(TemporaryFolder const& root, std::string const& folder, std::string const& name,
       std::uint64_t range = 262143328850)
      : path(root / folder) {
    std::filesystem::create_directories(path);
    std::ofstream(path / "name") << name << '\n';
    std::ofstream(path / "max_energy_range_uj") << range << '\n';
    set(0);
  }
  void set(std::uint64_t microjoules) const {
    std::ofstream(path / "energy_uj") << microjoules << '\n';
  }
  std::filesystem::path path;
};

TEST_CASE("packages and memory count, and zones that are parts of others do not") {
  TemporaryFolder const root;
  Zone const package(root, "intel-rapl:0", "package-0");
  Zone const core(root, "intel-rapl:0:0", "core");
  Zone const memory(root, "intel-rapl:0:1", "dram");
  Zone const second(root, "intel-rapl:1", "package-1");
  Zone const platform(root, "intel-rapl:2", "psys");
  Zone const again(root, "intel-rapl-mmio:0", "package-0");
  package.set(5'000'000);
  Rapl rapl(root.path());
  CHECK(rapl.zones() == 3);
  CHECK(rapl.problem().empty());
  CHECK(rapl.joules() == 0);
  package.set(7'000'000);
  second.set(10'000'000);
  memory.set(500'000);
  core.set(90'000'000);
  platform.set(90'000'000);
  again.set(90'000'000);
  CHECK(rapl.joules() == doctest::Approx(12.5));
}

TEST_CASE("a counter that wraps goes on from its range") {
  TemporaryFolder const root;
  Zone const package(root, "intel-rapl:0", "package-0", 1'000'000);
  package.set(900'000);
  Rapl rapl(root.path());
  package.set(100'000);
  CHECK(rapl.joules() == doctest::Approx(0.2));
  package.set(50'000);
  CHECK(rapl.joules() == doctest::Approx(0.2 + 0.95));
}

TEST_CASE("a machine without counters says so") {
  TemporaryFolder const root;
  Rapl rapl(root.path());
  CHECK_FALSE(rapl.reads());
  CHECK(rapl.joules() == 0);
  CHECK(rapl.problem() == "this machine shows no RAPL counters in " + root.path().string());
  CHECK_FALSE(Rapl(root / "absent").reads());
}

TEST_CASE("a counter that this user may not read is named, with what to do") {
  TemporaryFolder const root;
  Zone const package(root, "intel-rapl:0", "package-0");
  std::filesystem::permissions(package.path / "energy_uj", std::filesystem::perms::none);
  Rapl const rapl(root.path());
  if (::geteuid() == 0) return;  // root may read every file
  CHECK_FALSE(rapl.reads());
  CHECK(rapl.problem().find("Permission denied") != std::string::npos);
  CHECK(rapl.problem().find("chmod a+r") != std::string::npos);
}

TEST_CASE("a counter that is damaged, or vanishes, is left out, and the others count on") {
  TemporaryFolder const root;
  Zone const package(root, "intel-rapl:0", "package-0");
  Zone const second(root, "intel-rapl:1", "package-1");
  Zone const third(root, "intel-rapl:2", "package-2");
  std::ofstream(third.path / "energy_uj") << "12x\n";
  Rapl rapl(root.path());
  CHECK(rapl.zones() == 2);
  CHECK(rapl.problem().find("it has no number") != std::string::npos);
  package.set(1'000'000);
  CHECK(rapl.joules() == doctest::Approx(1));
  std::filesystem::remove(package.path / "energy_uj");
  second.set(2'000'000);
  CHECK(rapl.joules() == doctest::Approx(3));
  CHECK(rapl.zones() == 1);
}

}  // namespace frugal_test::energy_rapl

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/report/energy/meter.hpp>

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

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

namespace frugal_test::energy_meter {

using frugal::energy::EnergySampler;
using frugal::energy::EnergySettings;
using support::TemporaryFolder;

EnergySettings settings_of(TemporaryFolder const& root) {
  return {.powercap = root.path(), .nvml = "libfrugal-no-such-nvml.so.1", .interval_seconds = 1e5};
}

TEST_CASE("the last reading is made when the sampler stops") {
  TemporaryFolder const root;
  std::filesystem::create_directories(root / "intel-rapl:0");
  std::ofstream(root / "intel-rapl:0/name") << "package-0\n";
  std::ofstream(root / "intel-rapl:0/energy_uj") << "1000000\n";
  EnergySampler sampler(settings_of(root));
  CHECK(sampler.reads());
  REQUIRE(sampler.problems().size() == 1);
  CHECK(sampler.problems()[0].starts_with("NVML cannot be loaded: "));
  CHECK(sampler.joules() == 0);
  std::ofstream(root / "intel-rapl:0/energy_uj") << "4000000\n";
  CHECK(sampler.stop().empty());  // that NVML is not there was known before
  CHECK(sampler.joules() == doctest::Approx(3));
  CHECK(sampler.stop().empty());
}

TEST_CASE("a counter that vanishes meanwhile is told at the end, and any interval is one") {
  TemporaryFolder const root;
  std::filesystem::create_directories(root / "intel-rapl:0");
  std::ofstream(root / "intel-rapl:0/name") << "package-0\n";
  std::ofstream(root / "intel-rapl:0/energy_uj") << "1000000\n";
  EnergySettings settings = settings_of(root);
  settings.interval_seconds = 1e300;
  EnergySampler sampler(settings);
  std::filesystem::remove(root / "intel-rapl:0/energy_uj");
  auto const since = sampler.stop();
  REQUIRE(since.size() == 1);
  CHECK(since[0].find("energy_uj cannot be read") != std::string::npos);
  settings.interval_seconds = 0;
  CHECK_FALSE(EnergySampler(settings).reads());
}

TEST_CASE("the thread reads a counter that wraps in between, and tells one that vanishes") {
  TemporaryFolder const root;
  // Replaced as a whole, as the kernel's files are read: the thread never sees an empty one.
  auto const set = [&](char const* file, char const* text) {
    std::ofstream(root / "new") << text << '\n';
    std::filesystem::rename(root / "new", root / "intel-rapl:0" / file);
  };
  std::filesystem::create_directories(root / "intel-rapl:0");
  set("name", "package-0");
  set("max_energy_range_uj", "10000000");
  set("energy_uj", "1000000");
  EnergySettings settings = settings_of(root);
  settings.interval_seconds = 0.01;
  EnergySampler sampler(settings);
  // Wraps twice; a reading at the end alone would see once.
  set("energy_uj", "9000000");
  while (sampler.joules() < 7.9) std::this_thread::yield();
  set("energy_uj", "8000000");
  while (sampler.joules() < 16.9) std::this_thread::yield();
  CHECK(sampler.joules() == doctest::Approx(17));
  CHECK_FALSE(sampler.failing());
  std::filesystem::remove(root / "intel-rapl:0/energy_uj");
  while (!sampler.failing()) std::this_thread::yield();
  CHECK(sampler.stop().size() == 1);
}

TEST_CASE("a counter that vanishes is told, also if another was never read") {
  TemporaryFolder const root;
  for (char const* zone : {"intel-rapl:0", "intel-rapl:1"}) {
    std::filesystem::create_directories(root / zone);
    std::ofstream(root / (std::string(zone) + "/name")) << "package-0\n";
  }
  std::ofstream(root / "intel-rapl:1/energy_uj") << "1000000\n";
  EnergySampler sampler(settings_of(root));
  CHECK(sampler.reads());
  CHECK(sampler.problems().size() == 2);  // of the first zone, and of NVML
  std::filesystem::remove(root / "intel-rapl:1/energy_uj");
  auto const since = sampler.stop();
  CHECK(sampler.failing());
  REQUIRE(since.size() == 1);
  CHECK(since[0].find("intel-rapl:1") != std::string::npos);
}

TEST_CASE("without a counter there is no thread, and every reason is given") {
  TemporaryFolder const root;
  EnergySampler sampler(settings_of(root));
  CHECK_FALSE(sampler.reads());
  CHECK(sampler.problems().size() == 2);
  EnergySettings off = settings_of(root);
  off.processors = off.gpus = false;
  CHECK(EnergySampler(off).problems().empty());
}

}  // namespace frugal_test::energy_meter

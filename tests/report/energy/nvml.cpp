// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/energy/nvml.hpp>

#include <dlfcn.h>

#include <memory>
#include <string>
#include <vector>

namespace frugal_test::energy_nvml {

using frugal::energy::Nvml;
using frugal::energy::visible_devices;
using Names = std::vector<std::string>;

/// The functions by which this test moves the fake devices; the library stays loaded meanwhile.
struct Fake {
  Fake() : library(::dlopen(FRUGAL_FAKE_NVML, RTLD_NOW)) {
    REQUIRE(library != nullptr);
    function<void()>("fake_reset")();
  }
  ~Fake() { ::dlclose(library); }
  Fake(Fake const&) = delete;
  Fake& operator=(Fake const&) = delete;

  template <class Signature>
  Signature* function(char const* name) const {
    return reinterpret_cast<Signature*>(::dlsym(library, name));
  }
  void set(unsigned index, unsigned long long millijoules, unsigned milliwatts) const {
    function<void(unsigned, unsigned long long, unsigned)>("fake_set")(index, millijoules,
                                                                       milliwatts);
  }
  void fail(unsigned index, int energy, int power) const {
    function<void(unsigned, int, int)>("fake_fail")(index, energy, power);
  }

  void* library;
};

double now = 0;
double clock_of_test() { return now; }

Nvml opened(Names const& devices) { return Nvml(devices, FRUGAL_FAKE_NVML, &clock_of_test); }

TEST_CASE("a device with a counter of energy is read by differences, in millijoules") {
  Fake const fake;
  Nvml nvml = opened({"0"});
  CHECK(nvml.reads());
  CHECK(nvml.problem().empty());
  CHECK(nvml.joules() == 0);
  fake.set(0, 1'250'000, 100'000);
  CHECK(nvml.joules() == doctest::Approx(250));
  fake.set(0, 40'000, 100'000);  // the driver was reloaded, and counts from 0
  CHECK(nvml.joules() == doctest::Approx(290));
}

TEST_CASE("a device without one is integrated from its power, by trapezoids") {
  Fake const fake;
  now = 100;
  Nvml nvml = opened({"GPU-1"});
  CHECK(nvml.reads());
  now = 110;
  fake.set(1, 0, 150'000);
  CHECK(nvml.joules() == doctest::Approx(10 * (50 + 150) / 2.0));
  now = 112;
  CHECK(nvml.joules() == doctest::Approx(1000 + 2 * 150));
}

TEST_CASE("without a list every device is read, and an empty list is none") {
  Fake const fake;
  CHECK(Nvml({}, FRUGAL_FAKE_NVML).devices() == 2);
  Nvml const none = opened({});
  CHECK_FALSE(none.reads());
  CHECK(none.problem() == "NVML shows no device");
}

TEST_CASE("NVML is shut down as often as it is started") {
  Fake const fake;
  auto const starts = fake.function<int()>("fake_starts");
  {
    Nvml const nvml = opened({"0"});
    CHECK(starts() == 1);
  }
  CHECK(starts() == 0);
}

TEST_CASE("a device that is lost is left out and named, and the others count on") {
  Fake const fake;
  now = 0;
  Nvml nvml = opened({"0", "1"});
  fake.fail(0, 15, 15);
  fake.set(0, 9'000'000, 0);
  now = 10;
  CHECK(nvml.joules() == doctest::Approx(500));
  CHECK(nvml.devices() == 1);
  CHECK(nvml.problem() == "NVML does not read device 0: GPU is lost");
}

TEST_CASE("no library, no driver and an unknown device are problems with a reason") {
  Fake const fake;
  Nvml const absent({}, "libfrugal-no-such-nvml.so.1");
  CHECK_FALSE(absent.reads());
  CHECK(absent.problem().find("libfrugal-no-such-nvml.so.1") != std::string::npos);
  Nvml const other({}, "libm.so.6");
  CHECK_FALSE(other.reads());
  CHECK(other.problem() == "libm.so.6 lacks functions of NVML");
  Nvml const unknown = opened({"7", "0"});
  CHECK(unknown.devices() == 1);
  CHECK(unknown.problem() == "NVML does not read device 7: Invalid Argument");
  CHECK(opened({"GPU-9"}).problem() == "NVML does not read device GPU-9: Not Found");
  fake.function<void(int)>("fake_fail_init")(9);
  CHECK(opened({"0"}).problem() == "NVML does not start: Driver Not Loaded");
}

TEST_CASE("a UUID is named as nvidia-smi -L prints it") {
  CHECK(frugal::energy::name_of_uuid({0x89, 0x32, 0xf9, 0x37, 0xd7, 0x2c, 0x41, 0x06, 0xc1, 0x2f,
                                      0x20, 0xbd, 0x9f, 0xae, 0xd9, 0xf6}) ==
        "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6");
  CHECK(frugal::energy::name_of_uuid({}) == "GPU-00000000-0000-0000-0000-000000000000");
}

TEST_CASE("CUDA_VISIBLE_DEVICES is read as CUDA reads it: up to the first invalid entry") {
  CHECK_FALSE(visible_devices(nullptr));
  CHECK(visible_devices("") == Names{});
  CHECK(visible_devices("2,0") == Names{"2", "0"});
  CHECK(visible_devices("GPU-8932f937,MIG-3") == Names{"GPU-8932f937", "MIG-3"});
  CHECK(visible_devices("1,-1,0") == Names{"1"});
  CHECK(visible_devices("none") == Names{});
}

}  // namespace frugal_test::energy_nvml

// SPDX-License-Identifier: Apache-2.0
// A stand-in for libnvidia-ml.so.1 with two devices, for tests/report/energy/nvml.cpp. Device 0 counts
// energy, device 1 shows its power alone.
#include <cstdio>
#include <cstring>

namespace {

struct FakeDevice {
  unsigned long long millijoules;
  unsigned milliwatts;
  int energy_fails;
  int power_fails;
};

FakeDevice devices[2];
int starts = 0;
int init_fails = 0;

constexpr int invalid_argument = 2;
constexpr int not_supported = 3;
constexpr int not_found = 6;

}  // namespace

extern "C" {

// For the test.
void fake_reset() {
  devices[0] = {1'000'000, 100'000, 0, 0};
  devices[1] = {0, 50'000, not_supported, 0};
  init_fails = 0;
}
void fake_set(unsigned index, unsigned long long millijoules, unsigned milliwatts) {
  devices[index].millijoules = millijoules;
  devices[index].milliwatts = milliwatts;
}
void fake_fail(unsigned index, int energy, int power) {
  devices[index].energy_fails = energy;
  devices[index].power_fails = power;
}
void fake_fail_init(int failure) { init_fails = failure; }
int fake_starts() { return starts; }

// As in nvml.h.
int nvmlInit_v2() {
  if (init_fails != 0) return init_fails;
  ++starts;
  return 0;
}
int nvmlShutdown() {
  --starts;
  return 0;
}
char const* nvmlErrorString(int failure) {
  if (failure == not_supported) return "Not Supported";
  if (failure == not_found) return "Not Found";
  if (failure == 9) return "Driver Not Loaded";
  if (failure == 15) return "GPU is lost";
  return "Invalid Argument";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** handle) {
  if (index > 1) return invalid_argument;
  *handle = &devices[index];
  return 0;
}
int nvmlDeviceGetHandleByUUID(char const* uuid, void** handle) {
  if (std::strcmp(uuid, "GPU-1") != 0) return not_found;
  *handle = &devices[1];
  return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void* handle, unsigned long long* millijoules) {
  FakeDevice const& device = *static_cast<FakeDevice*>(handle);
  *millijoules = device.millijoules;
  return device.energy_fails;
}
int nvmlDeviceGetPowerUsage(void* handle, unsigned* milliwatts) {
  FakeDevice const& device = *static_cast<FakeDevice*>(handle);
  *milliwatts = device.milliwatts;
  return device.power_fails;
}

}  // extern "C"

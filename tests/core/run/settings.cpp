// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/nn/module.h>

#include <frugal/base/io_error.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/error.hpp>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>

#include "support/files.hpp"

namespace frugal_test::run_device_spec {

using frugal::DeviceError;
using frugal::DeviceSpec;
using frugal::Settings;

c10::Device const first_gpu(c10::kCUDA, 0);

TEST_CASE("a device is written as PyTorch's users write it") {
  CHECK(Settings{.device = "cuda:0"}.device == first_gpu);
  CHECK(Settings{.device = std::string("cuda:0")}.device == first_gpu);
  CHECK(Settings{.device = first_gpu}.device == first_gpu);
  CHECK(Settings{.device = at::kCUDA}.device == c10::Device(c10::kCUDA));
  CHECK(Settings{.device = false ? "cuda" : "cpu"}.device.is_cpu());
  Settings settings;
  settings.device = "cuda:3";
  CHECK(settings.device.str() == "cuda:3");
  CHECK(settings.device.index() == 3);
  settings.device = at::kCPU;
  CHECK(settings.device.is_cpu());
}

TEST_CASE("a name that names no device is refused where it is written") {
  CHECK_THROWS_WITH_AS(static_cast<void>(Settings{.device = "gpu:0"}),
                       doctest::Contains("'gpu:0' names no device (Settings::device)"),
                       DeviceError);
  CHECK_THROWS_AS(DeviceSpec(""), DeviceError);
}

TEST_CASE("left out, no device is given") {
  CHECK(!Settings{}.device.is_given());
  CHECK(Settings{.device = "cpu"}.device.is_given());
  CHECK(Settings{}.device != DeviceSpec("cpu"));
}

TEST_CASE("it goes wherever a device goes") {
  Settings const settings{.device = "cpu"};
  c10::Device const device = settings.device;
  CHECK(device.is_cpu());
  CHECK(device == settings.device);
  CHECK(at::ones({2}, at::TensorOptions().device(settings.device)).is_cpu());
  CHECK(at::ones({2}).to(settings.device).is_cpu());
}

/// A module with a parameter on each of some devices.
struct On : torch::nn::Module {
  explicit On(std::initializer_list<c10::Device> devices) {
    for (c10::Device const& each : devices) {
      register_parameter("p" + std::to_string(parameters().size()), at::ones({2}, each));
    }
  }
};
c10::Device const cpu(c10::kCPU);
c10::Device const meta(c10::kMeta);

TEST_CASE("a run is on the device that is asked for, or where its module is") {
  using frugal::detail::device_of_run;
  CHECK(device_of_run({}, On{cpu, cpu}) == cpu);
  CHECK(device_of_run({}, On{meta, meta}) == meta);
  CHECK(device_of_run({}, On{}) == cpu);
  CHECK(device_of_run(first_gpu, On{cpu}) == first_gpu);
  CHECK(device_of_run("cpu", On{cpu, meta}) == cpu);
}

TEST_CASE("a module on several devices, and no word where to be, is an error that names two") {
  CHECK_THROWS_WITH_AS(frugal::detail::device_of_run({}, On{cpu, meta}),
                       doctest::Contains("the module's parameters are on cpu and on meta"),
                       DeviceError);
}

TEST_CASE("a module stays as it is where it is, and where the device is not there") {
  On module{cpu};
  void const* const data = module.parameters()[0].data_ptr();
  CHECK_THROWS_AS(frugal::detail::put_on(c10::Device(c10::kCUDA, 99), module), DeviceError);
  frugal::detail::put_on(cpu, module);
  CHECK(module.parameters()[0].is_cpu());
  CHECK(module.parameters()[0].data_ptr() == data);
}

TEST_CASE("fresh() makes the first folder whose number is free") {
  frugal_test::support::TemporaryFolder const folder;
  std::filesystem::path const name = folder.path() / "runs" / "x";
  CHECK(frugal::fresh(name) == folder.path() / "runs" / "x-1");
  CHECK(frugal::fresh(name) == folder.path() / "runs" / "x-2");
  std::ofstream(folder.path() / "runs" / "x-3") << "a file";
  CHECK(frugal::fresh(name) == folder.path() / "runs" / "x-4");
  std::filesystem::remove(folder.path() / "runs" / "x-1");
  CHECK(frugal::fresh(name) == folder.path() / "runs" / "x-1");
  CHECK(std::filesystem::is_directory(folder.path() / "runs" / "x-1"));
  CHECK(frugal::fresh(name / "") == folder.path() / "runs" / "x-5");
  CHECK_THROWS_AS(frugal::fresh(folder.path() / "runs" / "x-3" / "y"), frugal::IoError);
  CHECK_THROWS_AS(frugal::fresh(""), frugal::SettingsError);
}

}  // namespace frugal_test::run_device_spec

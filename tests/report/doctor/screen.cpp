// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/json.hpp>
#include <frugal/base/text_width.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/report/doctor/json.hpp>
#include <frugal/report/doctor/screen.hpp>

#include "support/files.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::doctor_screen {

using frugal::doctor::Gpu;
using frugal::doctor::levers_for;
using frugal::doctor::Machine;
using frugal::doctor::Matmul;
using frugal::doctor::Recommendation;
using frugal::doctor::screen;
using frugal_test::support::lines_of;
using frugal_test::support::TemporaryFolder;

/// Whether a lever is recommended; fails if it is not mentioned at all.
bool uses(Machine const& machine, std::string_view lever) {
  for (Recommendation const& each : levers_for(machine)) {
    if (each.lever == lever) return each.use;
  }
  FAIL(lever << " is not mentioned");
  return false;
}
bool mentions(Machine const& machine, std::string_view lever) {
  auto const all = levers_for(machine);
  return std::any_of(all.begin(), all.end(), [&](auto const& each) { return each.lever == lever; });
}

Machine with_gpu(int major, int minor, std::uint64_t gib = 80) {
  Machine machine;
  machine.gpus.all = {{.model = "a GPU", .memory = gib << 30U, .major = major, .minor = minor}};
  machine.torch_has_cuda = true;
  return machine;
}

/// The most that a machine can have to say.
Machine talkative() {
  Machine machine = with_gpu(7, 5, 16);
  machine.torch_has_cuda = false;
  machine.gpus.fault = std::string(300, 'f');
  machine.cpu.model = "A CPU\n" + std::string(200, 'x');
  machine.limits = {.affinity = 4, .quota = 1.5, .memory_limit = std::uint64_t{1} << 30};
  machine.torch_threads = 64;
  machine.disk = {.folder = std::string(150, '/'),
                  .file_system = "tmpfs",
                  .free = 1,
                  .bytes = 1000,
                  .write_seconds = 1,
                  .read_seconds = 1};
  machine.matmul = Matmul{.device = "cpu", .size = 768, .fp32 = 1e9, .bf16 = 5e8};
  machine.cautions.resize(
      30, {.policy = "Precision<FP16>", .text = std::string(90, 'w') + " and more"});
  for (int i = 0; i < 30; ++i)
    machine.cautions.push_back({std::to_string(i), "a reason", "a page"});
  machine.attention.resize(9, {"FP32", "memory-efficient", "the device's own"});
  machine.components.resize(40, "component");
  return machine;
}

TEST_CASE("whatever there is to say, it is one screen of 24 lines and 100 columns") {
  for (Machine const& machine : {Machine(), with_gpu(9, 0), talkative()}) {
    auto const lines = lines_of(screen(machine));
    CHECK(lines.size() <= 24);
    for (std::string const& line : lines) CHECK_MESSAGE(line.size() <= 100, line);
  }
  CHECK(screen(talkative()).find("more with --json") != std::string::npos);
}

TEST_CASE("a long value is cut between characters, at 100 columns") {
  Machine machine;
  std::string model;
  for (int i = 0; i < 100; ++i) model += "\u00e9";  // two bytes each
  machine.cpu.model = "x" + model;
  std::string const text = screen(machine);
  CHECK(frugal::detail::is_utf8(text));
  std::string line;
  for (std::string const& each : lines_of(text)) {
    if (each.rfind("cpu", 0) == 0) line = each;
  }
  CHECK(frugal::watch::text_width(line) == 100);
  CHECK(line.ends_with("\u00e9..."));
  machine.cpu.model = "bad \xff byte";
  CHECK(screen(machine).find("bad ? byte") != std::string::npos);
}

TEST_CASE("each page that is named exists") {
  std::filesystem::path const docs = std::filesystem::path(FRUGAL_TEST_DIR).parent_path() / "docs";
  Machine aws = with_gpu(8, 0, 16);
  aws.cloud = "aws";
  Machine talks = talkative();
  talks.cautions.clear();
  for (Machine const& machine : {Machine(), with_gpu(7, 0), aws, talks}) {
    for (Recommendation const& each : levers_for(machine)) {
      CHECK_MESSAGE(std::filesystem::exists(docs / each.page), each.page);
    }
  }
}

TEST_CASE("a GPU gets the format that its matrix units have") {
  CHECK(uses(with_gpu(9, 0), "Precision<BF16>"));
  CHECK(uses(with_gpu(7, 5), "Precision<FP16>"));
  CHECK_FALSE(uses(with_gpu(7, 5), "Precision<BF16>"));
  CHECK_FALSE(uses(with_gpu(6, 0), "Precision<BF16>"));
  CHECK_FALSE(mentions(with_gpu(6, 0), "Precision<FP16>"));
}

TEST_CASE("a measurement wins over the CPU's flags") {
  Machine machine;
  machine.cpu.flags = {"avx512_bf16"};
  CHECK(uses(machine, "Precision<BF16>"));
  machine.matmul = Matmul{.device = "cpu", .size = 768, .fp32 = 100, .bf16 = 110};
  CHECK_FALSE(uses(machine, "Precision<BF16>"));
  machine.matmul->bf16 = 200;
  CHECK(uses(machine, "Precision<BF16>"));
}

TEST_CASE("the kernels of attention are one line, which names a mask's where it is another") {
  Machine machine;
  CHECK(screen(machine).find("attention") == std::string::npos);
  machine.attention = {{"FP32", "flash", "math"}, {"BF16", "flash", "flash"}};
  CHECK(screen(machine).find("attention    FP32 flash, with a mask math; BF16 flash\n") !=
        std::string::npos);
}

TEST_CASE("INT8 is advised on a CPU with its instructions, and on no GPU") {
  Machine machine;
  CHECK_FALSE(mentions(machine, "Precision<INT8>"));
  machine.cpu.flags = {"avx512_vnni"};
  CHECK(uses(machine, "Precision<INT8>"));
  Machine gpu = with_gpu(9, 0);
  gpu.cpu.flags = {"avx512_vnni"};
  CHECK_FALSE(mentions(gpu, "Precision<INT8>"));
  gpu.cautions = {{"Precision<INT8>", "the words of the policy", "policy/precision.md"}};
  CHECK_FALSE(uses(gpu, "Precision<INT8>"));
}

TEST_CASE("a policy's caution is given in its own words, and never twice") {
  Machine machine;
  machine.cautions = {{"Precision<BF16>", "the words of the policy", "policy/precision.md"}};
  CHECK_FALSE(uses(machine, "Precision<BF16>"));
  CHECK(screen(machine).find("the words of the policy") != std::string::npos);
  machine.matmul = Matmul{.device = "cpu", .size = 768, .fp32 = 100, .bf16 = 50};
  CHECK(screen(machine).find("the words of the policy") == std::string::npos);
}

TEST_CASE("more threads than may run are named with the variable that lowers them") {
  Machine machine;
  machine.torch_threads = 64;
  machine.limits.affinity = 64;
  CHECK_FALSE(mentions(machine, "OMP_NUM_THREADS=2"));
  machine.limits.quota = 2.5;
  CHECK(uses(machine, "OMP_NUM_THREADS=2"));
}

TEST_CASE("a GPU that LibTorch cannot use comes first") {
  Machine machine = with_gpu(9, 0);
  machine.torch_has_cuda = false;
  CHECK(levers_for(machine).at(0).lever == "a LibTorch with CUDA");
  CHECK(screen(machine).find("(GPU, which this LibTorch cannot use)") != std::string::npos);
  CHECK_FALSE(uses(machine, "DevicePrefetch<>, CudaGraph"));
}

TEST_CASE("a slow disk gets shards and an asynchronous save, a fast one neither") {
  Machine machine;
  machine.disk = {.bytes = 100'000'000, .write_seconds = 1, .read_seconds = 1};
  CHECK(uses(machine, "TarSet, RecordSet"));
  CHECK(uses(machine, "Checkpoint<..., Async>"));
  machine.disk->write_seconds = machine.disk->read_seconds = 0.05;
  CHECK_FALSE(mentions(machine, "TarSet, RecordSet"));
  CHECK_FALSE(mentions(machine, "Checkpoint<..., Async>"));
}

TEST_CASE("one thread does not read ahead") {
  Machine machine;
  machine.limits.affinity = 1;
  CHECK_FALSE(uses(machine, "loader with workers"));
  machine.limits.affinity = 4;
  CHECK(uses(machine, "loader(set)"));
}

TEST_CASE("the cloud is known by its firmware") {
  TemporaryFolder const root;
  auto const tables = root / "sys/class/dmi/id";
  std::filesystem::create_directories(tables);
  using frugal::doctor::cloud_of_firmware;
  CHECK(cloud_of_firmware(root.path()) == "");
  std::ofstream(tables / "sys_vendor") << "Amazon EC2\n";
  CHECK(cloud_of_firmware(root.path()) == "aws");
  std::ofstream(tables / "sys_vendor") << "Microsoft Corporation\n";
  CHECK(cloud_of_firmware(root.path()) == "");
  std::ofstream(tables / "chassis_asset_tag") << "7783-7084-3265-9085-8269-3286-77\n";
  CHECK(cloud_of_firmware(root.path()) == "azure");
  std::ofstream(tables / "sys_vendor") << "Google\n";
  CHECK(cloud_of_firmware(root.path()) == "gcp");
}

TEST_CASE("the JSON has every part, whatever bytes the kernel gave") {
  using frugal::detail::Json;
  Machine machine = talkative();
  machine.cpu.model = "bad \xff byte \"quoted\"";
  auto const parsed = Json::parse(frugal::doctor::json(machine));
  REQUIRE(parsed);
  for (char const* part : {"versions", "components", "cpu", "threads", "memory_bytes", "gpus",
                           "matmul", "attention", "disk", "cloud", "levers"}) {
    CHECK_MESSAGE(parsed->find(part) != nullptr, part);
  }
  CHECK(parsed->find("cpu")->find("model")->text() == "bad \xef\xbf\xbd byte \"quoted\"");
  CHECK(parsed->find("threads")->find("usable")->as_unsigned() == 1);
  CHECK(parsed->find("levers")->items().size() == levers_for(machine).size());
  CHECK(Json::parse(frugal::doctor::json(Machine())));
}

}  // namespace frugal_test::doctor_screen

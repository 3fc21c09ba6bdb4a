// SPDX-License-Identifier: Apache-2.0
// takes: archive arrow avro images notices prometheus text
// Prints on one screen what this machine offers to training, and which levers to use on it.
//
//   frugal_doctor                        measures matrix products, and the disk of this folder
//   frugal_doctor --folder /data/runs    the disk below another folder
//   frugal_doctor --cloud                asks the cloud's metadata service as well
//   frugal_doctor --json                 all of it, for programs
//
// What cannot be found out is a line of its own and no error. Exit code 1: it cannot be
// written. 2: wrong arguments.
#include <frugal/frugal.hpp>
#include <frugal/report/doctor/attention.hpp>
#include <frugal/report/doctor/json.hpp>
#include <frugal/report/doctor/levers.hpp>
#include <frugal/report/doctor/matmul.hpp>
#include <frugal/report/doctor/screen.hpp>
#include <frugal/version.hpp>

#ifdef FRUGAL_HAS_NOTICES
#include <frugal/report/doctor/cloud.hpp>
#endif

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

#ifdef FRUGAL_CUDA
#include <cuda_runtime_api.h>
#endif

namespace fr = frugal;
namespace doctor = frugal::doctor;

namespace {

std::string compiler() {
#if defined(__clang__)
  return "clang " + std::to_string(__clang_major__) + '.' + std::to_string(__clang_minor__);
#else
  return "g++ " + std::to_string(__GNUC__) + '.' + std::to_string(__GNUC_MINOR__);
#endif
}

void add_versions(doctor::Machine& machine) {
  machine.versions = {
      {"frugal", std::string(fr::version)}, {"LibTorch", TORCH_VERSION}, {"compiler", compiler()}};
#ifdef FRUGAL_CUDA
  machine.versions.emplace_back("CUDA", std::to_string(CUDART_VERSION / 1000) + '.' +
                                            std::to_string(CUDART_VERSION % 1000 / 10));
#else
  machine.versions.emplace_back("CUDA", "not compiled in");
#endif
}

void add_components(doctor::Machine& machine) {
  auto const add = [&machine](char const* name, bool there) {
    (there ? machine.components : machine.missing_components).emplace_back(name);
  };
  bool archive = false, arrow = false, avro = false, images = false, notices = false;
  bool prometheus = false, text = false;
#ifdef FRUGAL_HAS_ARCHIVE
  archive = true;
#endif
#ifdef FRUGAL_HAS_ARROW
  arrow = true;
#endif
#ifdef FRUGAL_HAS_AVRO
  avro = true;
#endif
#ifdef FRUGAL_HAS_IMAGES
  images = true;
#endif
#ifdef FRUGAL_HAS_NOTICES
  notices = true;
#endif
#ifdef FRUGAL_HAS_PROMETHEUS
  prometheus = true;
#endif
#ifdef FRUGAL_HAS_TEXT
  text = true;
#endif
  add("archive", archive);
  add("arrow", arrow);
  add("avro", avro);
  add("images", images);
  add("notices", notices);
  add("prometheus", prometheus);
  add("text", text);
}

void ask_cloud(doctor::Machine& machine) {
#ifdef FRUGAL_HAS_NOTICES
  doctor::Cloud const cloud = doctor::ask_cloud();
  if (!cloud.name.empty()) machine.cloud = cloud.name;
  machine.cloud_text = cloud.text;
#else
  machine.cloud_text = "not asked: built without libcurl (FRUGAL_NOTICES=ON)";
#endif
}

at::Device device_of(doctor::Machine const& machine) {
  return machine.torch_has_cuda ? at::kCUDA : at::kCPU;
}

void measure_matmul(doctor::Machine& machine) {
  try {
    machine.matmul = doctor::measure_matmul(device_of(machine));
  } catch (std::exception const& error) {
    std::cerr << "the matrix products failed: " << error.what() << '\n';
  }
}

void ask_attention(doctor::Machine& machine) {
  try {
    machine.attention = doctor::attention_kernels(device_of(machine));
  } catch (std::exception const& error) {
    std::cerr << "the attention kernel is not known: " << error.what() << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = ".";
  std::uint64_t mib = 64;
  bool cloud = false, as_json = false, quick = false;
  CLI::App app("Prints what this machine offers to training, and which levers to use on it.");
  app.add_option("--folder", folder, "whose disk is measured")->capture_default_str();
  app.add_option("--mib", mib, "size of the file that is written there and read; 0: none")
      ->check(CLI::Range(0, 16384))
      ->capture_default_str();
  app.add_flag("--cloud", cloud, "ask the cloud's metadata service, for 2 s at most");
  app.add_flag("--quick", quick, "measure nothing");
  app.add_flag("--json", as_json, "print JSON");
  try {
    app.parse(argc, argv);
  } catch (CLI::ParseError const& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }

  doctor::Machine machine = doctor::read_machine();
  machine.torch_has_cuda = torch::cuda::is_available();
  machine.torch_threads = at::get_num_threads();
  machine.cautions =
      doctor::cautions<fr::Precision<fr::BF16>, fr::Precision<fr::FP16>, fr::Precision<fr::INT8>,
                       fr::Precision<fr::FP8>>(machine.torch_has_cuda);
  add_versions(machine);
  add_components(machine);
  if (cloud) ask_cloud(machine);
  // Each takes memory of a GPU.
  if (!quick) ask_attention(machine);
  if (!quick) measure_matmul(machine);
  if (!quick && mib != 0) machine.disk = doctor::probe_disk(folder, {.bytes = mib << 20U});
  std::cout << (as_json ? doctor::json(machine) : doctor::screen(machine));
  return std::cout.flush() ? EXIT_SUCCESS : EXIT_FAILURE;
}

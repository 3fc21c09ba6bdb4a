// SPDX-License-Identifier: Apache-2.0
#include <frugal/core/run/surprises.hpp>

#include <doctest/doctest.h>

#include <ATen/Parallel.h>

#include <string>

namespace frugal_test::run_surprises {

using frugal::detail::CudaHere;
using frugal::detail::ProcessorUse;
using frugal::detail::stalled_threads;
using frugal::detail::StallWatch;
using frugal::detail::unused_gpu;

bool has(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a run on the CPU beside a GPU says so, unless the program asked for the CPU") {
  c10::Device const cpu(c10::kCPU);
  c10::Device const cuda(c10::kCUDA, 0);
  CudaHere const none{};
  CudaHere const usable{.devices = 1, .has_driver = true};
  CudaHere const unlinked{.devices = 0, .has_driver = true};
  CHECK(unused_gpu(false, cpu, none).empty());
  CHECK(unused_gpu(true, cpu, usable).empty());
  CHECK(unused_gpu(true, cpu, unlinked).empty());
  CHECK(unused_gpu(false, cuda, usable).empty());
  CHECK(has(unused_gpu(false, cpu, usable), "set Settings::device to \"cuda\""));
  CHECK(has(unused_gpu(false, cpu, unlinked), "FRUGAL_CUDA=ON"));
  CHECK(has(unused_gpu(false, cpu, {.has_driver = true, .is_linked = true}), "finds no GPU"));
  CHECK(unused_gpu(false, cpu, {.has_driver = true, .is_hidden = true}).empty());
}

// Measured on two processors, with two compilers beside the run: 0.49 processors, 130 losses a second.
TEST_CASE(
    "threads that others keep from working are told from threads that work, or wait for data") {
  ProcessorUse const stalled{
      .threads = 2, .seconds = 1, .cpu_seconds = 0.49, .losses = 130, .steps = 75};
  CHECK(has(stalled_threads(stalled), "OMP_NUM_THREADS=1"));
  CHECK(has(stalled_threads(stalled), "a step took 13.3 ms"));

  ProcessorUse one = stalled;
  one.threads = 1;
  CHECK(stalled_threads(one).empty());
  ProcessorUse busy = stalled;
  busy.cpu_seconds = 1.9;
  CHECK(stalled_threads(busy).empty());
  ProcessorUse waits_for_data = stalled;
  waits_for_data.losses = 3;
  CHECK(stalled_threads(waits_for_data).empty());
  CHECK(stalled_threads({}).empty());
}

TEST_CASE("the processors are looked at once, after a second of steps, and never with one thread") {
  int const threads = at::get_num_threads();
  at::set_num_threads(2);
  StallWatch watch;
  watch.begin(c10::kCPU, 10);
  CHECK(watch.next() == 11);
  CHECK(watch.look(11).empty());
  std::uint64_t const first = watch.next();
  CHECK(first == 19);
  CHECK(watch.look(first).empty());  // microseconds later
  CHECK(watch.next() == 27);

  StallWatch on_device;
  on_device.begin(c10::Device(c10::kCUDA, 0), 0);
  CHECK(on_device.next() == ~std::uint64_t{0});
  at::set_num_threads(1);
  StallWatch alone;
  alone.begin(c10::kCPU, 0);
  CHECK(alone.next() == ~std::uint64_t{0});
  at::set_num_threads(threads);
}

}  // namespace frugal_test::run_surprises

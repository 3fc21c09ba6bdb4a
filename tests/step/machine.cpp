// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>
#include <frugal/step/machine.hpp>

#include <string>
#include <vector>

namespace frugal_test::step_machine {

namespace fr = frugal;
using fr::detail::StepMachine;

TEST_CASE("instructions are the flags of /proc/cpuinfo") {
  CHECK(fr::detail::StepMachine::instructions_in(
            "processor\t: 0\nflags\t\t: sse2 avx fma\nbugs\t: x\n") ==
        std::vector<std::string>{"avx", "fma", "sse2"});
  CHECK(fr::detail::StepMachine::instructions_in("").empty());
}

TEST_CASE("what another machine, processor or LibTorch has made is refused with both names") {
  StepMachine const here{
      .torch = "2.11.1", .architecture = "x86_64", .instructions = {"avx", "avx2", "fma"}};
  fr::StepManifest made;
  made.torch = "2.11.0";
  made.architecture = "x86_64";
  made.instructions = {"avx2", "fma"};
  CHECK_NOTHROW(fr::detail::require_machine(made, here, "package"));
  auto const refused = [&](auto&& change) {
    fr::StepManifest other = made;
    change(other);
    try {
      fr::detail::require_machine(other, here, "package");
    } catch (fr::DeviceError const& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  CHECK(refused([](auto& all) {
          all.torch = "2.12.0";
        }).find("exported with 2.12.0, and this program has 2.11.1") != std::string::npos);
  CHECK(refused([](auto& all) { all.torch = "2"; }).find("exported with 2, and") !=
        std::string::npos);
  CHECK(refused([](auto& all) { all.architecture = "aarch64"; }).find("aarch64") !=
        std::string::npos);
  CHECK(refused([](auto& all) {
          all.instructions = {"avx512f", "fma", "vaes"};
        }).find("it needs avx512f, vaes") != std::string::npos);
}

TEST_CASE("this machine is one") {
  StepMachine const here = StepMachine::here("2.11.0");
  CHECK_FALSE(here.architecture.empty());
  CHECK_FALSE(here.instructions.empty());
}

}  // namespace frugal_test::step_machine

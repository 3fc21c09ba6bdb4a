// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/report/doctor/attention.hpp>

#include <torch/csrc/autograd/variable.h>

#include <optional>
#include <string>

namespace frugal_test::doctor_attention {

/// What autograd recorded: the kernel that has run.
std::string recorded(at::ScalarType type, bool masked) {
  at::Tensor const heads = at::ones({2, 8, 512, 64}, type).requires_grad_();
  auto const mask = masked ? std::optional(at::ones({2, 1, 1, 512}, at::kBool)) : std::nullopt;
  return at::scaled_dot_product_attention(heads, heads, heads, mask, 0.0, !masked)
      .grad_fn()
      ->name();
}

TEST_CASE("the doctor names the kernels that attention takes in training") {
  auto const kernels = frugal::doctor::attention_kernels(at::kCPU);
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].format == "FP32");
  CHECK(kernels[1].format == "BF16");
  for (bool const masked : {false, true}) {
    for (auto const& [each, type] :
         {std::pair(kernels[0], at::kFloat), std::pair(kernels[1], at::kBFloat16)}) {
      bool const is_flash = recorded(type, masked).find("Flash") != std::string::npos;
      CHECK((masked ? each.masked : each.causal) == (is_flash ? "flash" : "math"));
    }
  }
  CHECK(kernels[0].causal == "flash");
}

}  // namespace frugal_test::doctor_attention

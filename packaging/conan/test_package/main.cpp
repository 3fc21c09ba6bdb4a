// SPDX-License-Identifier: Apache-2.0
#include <frugal/frugal.hpp>

#include <ATen/ATen.h>

#include <iostream>

int main() {
  auto const sum = at::ones({3, 2}).sum().item<double>();
  std::cout << "frugal " << frugal::version << ", " << sum << " ones\n";
  return sum == 6.0 ? 0 : 1;
}

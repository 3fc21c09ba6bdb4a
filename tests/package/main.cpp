// SPDX-License-Identifier: Apache-2.0
#include <frugal/frugal.hpp>

#include <ATen/ATen.h>

#include <iostream>

double second();

int main() {
  frugal::Batch batch{at::ones({3, 2}), at::zeros({3})};
  bool const three = frugal::batch_traits<frugal::Batch>::samples(batch) == 3;
  std::cout << "frugal " << frugal::version << ", batch of 3: " << three << '\n';
  return three && second() == 6.0 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
#include <frugal/core/source/source.hpp>
#include <frugal/error.hpp>
#include <frugal/version.hpp>

int main() {
  frugal::Error const error({.what = "a", .where = "b", .why = "c", .fix = "D."});
  return std::string(error.what()) == "frugal: a (b): c. D." ? 0 : 1;
}

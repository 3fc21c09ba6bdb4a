// SPDX-License-Identifier: Apache-2.0
// Two translation units that include everything: a non-inline function would be defined twice, and
// a non-inline variable would have two addresses.
#include <frugal/frugal.hpp>
#if __has_include(<gloo/context.h>)
#include <frugal/cluster.hpp>
#endif

std::string_view version_in_one();
void const* address_in_one();

int main() {
  bool const agree = version_in_one() == frugal::version && address_in_one() == &frugal::version;
  return agree ? 0 : 1;
}

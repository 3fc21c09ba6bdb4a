// SPDX-License-Identifier: Apache-2.0
// Two translation units that include everything: a non-inline function would be defined twice, and
// a non-inline variable would have two addresses. This one includes it in the reverse order of one.cpp:
// a name of one header must not hide that of another.
// clang-format off
#if __has_include(<gloo/context.h>)
#include <frugal/cluster.hpp>
#endif
#include <frugal/recipes.hpp>
#include <frugal/compare.hpp>
#include <frugal/search.hpp>
#include <frugal/report/plan_ranks.hpp>
#include <frugal/report.hpp>
#include <frugal/step.hpp>
#include <frugal/models.hpp>
#include <frugal/model.hpp>
#include <frugal/losses.hpp>
#include <frugal/metrics.hpp>
#include <frugal/data.hpp>
#include <frugal/core.hpp>
#include <frugal/frugal.hpp>
// clang-format on

std::string_view version_in_one();
void const* address_in_one();

int main() {
  bool const agree = version_in_one() == frugal::version && address_in_one() == &frugal::version;
  return agree ? 0 : 1;
}

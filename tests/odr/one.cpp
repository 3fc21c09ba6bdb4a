// SPDX-License-Identifier: Apache-2.0
// clang-format off
#include <frugal/frugal.hpp>
#include <frugal/core.hpp>
#include <frugal/data.hpp>
#include <frugal/metrics.hpp>
#include <frugal/losses.hpp>
#include <frugal/model.hpp>
#include <frugal/models.hpp>
#include <frugal/step.hpp>
#include <frugal/report.hpp>
#include <frugal/report/plan_ranks.hpp>
#include <frugal/search.hpp>
#include <frugal/compare.hpp>
#include <frugal/recipes.hpp>
#if __has_include(<gloo/context.h>)
#include <frugal/cluster.hpp>
#endif
// clang-format on

std::string_view version_in_one() { return frugal::version; }
void const* address_in_one() { return &frugal::version; }

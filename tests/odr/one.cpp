// SPDX-License-Identifier: Apache-2.0
#include <frugal/frugal.hpp>
#if __has_include(<gloo/context.h>)
#include <frugal/cluster.hpp>
#endif

std::string_view version_in_one() { return frugal::version; }
void const* address_in_one() { return &frugal::version; }

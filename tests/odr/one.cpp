// SPDX-License-Identifier: Apache-2.0
#include <frugal/frugal.hpp>

std::string_view version_in_one() { return frugal::version; }
void const* address_in_one() { return &frugal::version; }

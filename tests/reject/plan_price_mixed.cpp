// SPDX-License-Identifier: Apache-2.0
// expect: frugal: a price or time per device is mixed with one per node. Convert first: per_device(price, devices) or per_node(price, devices).
#include <frugal/report/plan/money.hpp>

using namespace frugal::plan;

auto cost = PricePerNode(32.0) * NodeHours(72);
#ifdef FRUGAL_REJECT
auto wrong = PricePerNode(32.0) * DeviceHours(72);
#endif

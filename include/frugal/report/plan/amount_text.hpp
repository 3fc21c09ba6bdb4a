// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace frugal::plan {

/// An amount of money, whatever the locale: cents from 1 on, and six digits below, because a short
/// run costs less than a cent.
std::string amount_text(double amount);

/// "$37,748.00", "-$0.25"
std::string dollars_text(double amount);

}  // namespace frugal::plan

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/amount_text.ipp>
#endif

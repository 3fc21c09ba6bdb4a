// SPDX-License-Identifier: Apache-2.0
// needs: torch
// expect: frugal: HtmlReport<> has no options. Set HtmlReport::path for another file.
#include <frugal/policy/options.hpp>
#include <frugal/report/html_report.hpp>

using namespace frugal;

auto good = HtmlReport<>{};
#ifdef FRUGAL_REJECT
HtmlReport<Every<100>> bad;
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/page.hpp>
#include <frugal/report/html/run_folder.hpp>

#include <cmath>

namespace frugal::html {

/// What was planned, and what happened.
void write_plan(Page& page, RunLog const& log);

void write_interruptions(Page& page, RunLog const& log);

void write_profile(Page& page, RunFolder const& run);

void write_duplicates(Page& page, RunFolder const& run);

/// All events but those that have a section, with what they say.
void write_events(Page& page, RunLog const& log);

/// What the run is: from its "begin", "recipe" and "price" lines.
void write_facts(Page& page, RunFolder const& run);

}  // namespace frugal::html

#ifndef FRUGAL_COMPILED
#include <frugal/report/html/run_sections.ipp>
#endif

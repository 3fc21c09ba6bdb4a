// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <frugal/search/forecast.hpp>
#include <frugal/search/schedule/schedule.hpp>
#include <frugal/search/trials/finalists.hpp>

namespace frugal::detail {

/// The text of explain(). `measured`: an objective or the budget is in time or money.
std::string forecast_text(SearchForecast const& all, SearchSchedule const& schedule, RungUnit unit,
                          std::string const& sampler, bool learns, bool measured,
                          Finalists const& finalists);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/search/forecast_text.ipp>
#endif

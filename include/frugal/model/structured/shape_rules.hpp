// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/structured/axis_values.hpp>

/// What operators do with axes that arrange elements: views, parts, joins.
namespace frugal::detail::axis_rules {

void by_size(AxisValues& values, OperatorCall const& call);

void reshape(AxisValues& values, OperatorCall const& call);

void permute(AxisValues& values, OperatorCall const& call);

void expand(AxisValues& values, OperatorCall const& call);

void part(AxisValues& values, OperatorCall const& call);

void parts(AxisValues& values, OperatorCall const& call);

void join(AxisValues& values, OperatorCall const& call);

}  // namespace frugal::detail::axis_rules

#ifndef FRUGAL_COMPILED
#include <frugal/model/structured/shape_rules.ipp>
#endif

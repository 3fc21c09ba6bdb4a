// SPDX-License-Identifier: Apache-2.0
// Shapes: of a convolution the input [B, C, ...] and the weight [C', C / groups, ...]; of attention
// [..., H, T, D], with H heads, T positions, D width of a head.
#pragma once

#include <frugal/model/structured/axis_values.hpp>

/// What operators of layers do with axes: products, norms, attention.
namespace frugal::detail::axis_rules {

void pointwise(AxisValues& values, OperatorCall const& call);

void linear(AxisValues& values, OperatorCall const& call);

void product(AxisValues& values, OperatorCall const& call);

void convolution(AxisValues& values, OperatorCall const& call);

void channelwise(AxisValues& values, OperatorCall const& call);

void layer_norm(AxisValues& values, OperatorCall const& call);

void group_norm(AxisValues& values, OperatorCall const& call);

void embedding(AxisValues& values, OperatorCall const& call);

void attention(AxisValues& values, OperatorCall const& call);

void softmax(AxisValues& values, OperatorCall const& call);

void reduction(AxisValues& values, OperatorCall const& call);

}  // namespace frugal::detail::axis_rules

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
#include <frugal/model/structured/layer_rules.ipp>
#endif

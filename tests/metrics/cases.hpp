// SPDX-License-Identifier: Apache-2.0
// Sets of tests/reference/metrics.json, and how metrics go through them.
#pragma once

#include <ATen/ATen.h>

#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/error.hpp>

#include "support/reference.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace frugal_test::metrics {

using namespace frugal;
using namespace frugal_test::support;

/// Outputs and targets of a whole set.
struct Set {
  at::Tensor output;
  at::Tensor target;
};

inline Set set_in(Json const& which, at::ScalarType of_target) {
  return {tensor_in(which.at("output"), shape_in(which.at("shape"))),
          tensor_in(which.at("target"), shape_in(which.at("target_shape")), of_target)};
}

template <class M>
void add(M& metric, at::Tensor const& output, at::Tensor const& target) {
  metric.add(Loss{.value = at::zeros({}), .weight = 1, .output = output},
             Batch{.data = {}, .target = target});
}

/// Goes through the samples from `begin` on in batches of 5, 2, 5, 2, ..., the last ragged.
template <class M>
M over(Set const& set, std::int64_t begin, std::int64_t end, M metric = {}) {
  bool large = true;
  for (std::int64_t at = begin; at < end; large = !large) {
    std::int64_t const size = std::min<std::int64_t>(large ? 5 : 2, end - at);
    add(metric, set.output.narrow(0, at, size), set.target.narrow(0, at, size));
    at += size;
  }
  return metric;
}
template <class M>
M over(Set const& set, M const& metric = {}) {
  return over<M>(set, 0, set.output.size(0), metric);
}

/// What two processes come to that have these metrics: each sum is of both before the next is
/// asked for.
template <class M>
M together(M const& one, M const& other) {
  using Value = std::variant<double, at::Tensor>;
  struct Asked {};
  std::vector<Value> sums;
  for (;;) {
    std::optional<Value> asked;
    auto const run = [&](M metric) {
      std::size_t at = 0;
      metric.reduce([&]<class T>(T const& value) -> T {
        if (at < sums.size()) return std::get<T>(sums[at++]);
        if (asked) {
          asked = std::get<T>(*asked) + value;
        } else {
          asked = Value(value);
        }
        throw Asked{};
      });
      return metric;
    };
    try {
      return run(one);
    } catch (Asked const&) {
    }
    try {
      run(other);
    } catch (Asked const&) {
    }
    sums.push_back(*asked);
  }
}

/// What a checkpoint gives back of a metric. `loaded` has seen nothing.
template <class M>
M resumed(M metric, M loaded = {}) {
  StateDict saved;
  StateWriter writer(saved);
  metric.persist(writer);
  writer.finish();
  StateReader reader(saved);
  loaded.persist(reader);
  return loaded;
}

/// The error of a metric that is given these.
template <class M>
std::string refusal(at::Tensor const& output, at::Tensor const& target, M metric = {}) {
  try {
    add(metric, output, target);
    static_cast<void>(metric.result());
  } catch (MetricError const& error) {
    return error.what();
  }
  return "none";
}

inline bool says(std::string const& text, std::string const& part) {
  return text.find(part) != std::string::npos;
}

/// A value of the set, from ragged batches, of two processes, and across a resume.
template <class M>
std::vector<double> every_way(Set const& set) {
  std::int64_t const count = set.output.size(0);
  std::int64_t const middle = count / 3;
  std::vector<double> found{over<M>(set).result()};
  M first = resumed(over<M>(set, 0, middle));
  M const copy = first;
  for (std::int64_t i = middle; i < count; ++i) {
    add(first, set.output.narrow(0, i, 1), set.target.narrow(0, i, 1));
  }
  found.push_back(first.result());
  if constexpr (requires(M& metric) { metric.reduce([](auto const& value) { return value; }); }) {
    found.push_back(together(copy, over<M>(set, middle, count)).result());
  }
  return found;
}

}  // namespace frugal_test::metrics

// SPDX-License-Identifier: Apache-2.0
// The job of tests/reference/parameter_groups.json: the parameters of a small encoder, under the
// names that an encoder has, and a table of gradients.
#pragma once

#include <frugal/report/on_metrics.hpp>

#include "policy/optimize/fixture.hpp"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::policy_optimize {

/// A tree of modules with parameters of these dotted names.
struct Tree : torch::nn::Module {
  explicit Tree(std::vector<std::pair<std::string, at::Tensor>> const& parts) {
    for (auto const& [name, start] : parts) add(*this, name, start);
  }

 private:
  static void add(torch::nn::Module& to, std::string const& name, at::Tensor const& start) {
    auto const dot = name.find('.');
    if (dot == std::string::npos) {
      to.register_parameter(name, start.clone());
      return;
    }
    std::string const child = name.substr(0, dot);
    auto const children = to.named_children();
    auto const known = children.contains(child)
                           ? std::dynamic_pointer_cast<Tree>(children[child])
                           : to.register_module(child, std::make_shared<Tree>(nothing()));
    add(*known, name.substr(dot + 1), start);
  }
  static std::vector<std::pair<std::string, at::Tensor>> nothing() { return {}; }
};

/// A tree of parameters with one element each, which is 1.
inline std::shared_ptr<Tree> tree_of(std::vector<std::string> const& names) {
  std::vector<std::pair<std::string, at::Tensor>> parts;
  for (std::string const& name : names) parts.emplace_back(name, at::ones({1}));
  return std::make_shared<Tree>(parts);
}

/// Gradients of 1 for a module with parameters of one element, over some steps.
inline std::vector<Table> gradients_of_one(std::size_t parameters, std::size_t steps) {
  return std::vector<Table>(steps, Table{std::vector<at::Tensor>(parameters, at::ones({1}))});
}

/// The learning rates that each step of a run logs, by group.
using Rates = std::vector<std::map<std::string, double>>;

using RecordCall = std::function<void(frugal::MetricRecord const&)>;
using EachStep = frugal::OnMetrics<RecordCall, frugal::Every<1>>;

inline EachStep logging(Rates& to) {
  return {.call = [&to](frugal::MetricRecord const& record) {
    if (record.kind != frugal::RecordKind::step) return;
    to.emplace_back();
    for (auto const& [name, value] : record.fields) {
      if (name.starts_with("lr/")) to.back()[name.substr(3)] = std::get<double>(value);
    }
  }};
}

struct NamedJob {
  Json file = reference("parameter_groups.json");
  std::vector<std::string> names;
  std::vector<std::vector<std::int64_t>> shapes;

  NamedJob() {
    for (Json const& each : file.at("parameters")) {
      names.push_back(each.at("name"));
      shapes.push_back(shape_in(each.at("shape")));
    }
  }

  std::shared_ptr<Tree> module() const {
    std::vector<std::pair<std::string, at::Tensor>> parts;
    for (std::uint32_t p = 0; p < names.size(); ++p) {
      parts.emplace_back(names[p], table(shapes[p], 0, p));
    }
    return std::make_shared<Tree>(parts);
  }

  std::vector<Table> tables() const {
    std::vector<Table> all;
    for (std::uint32_t step = 1; step <= 20; ++step) {
      Table table;
      for (std::uint32_t p = 0; p < shapes.size(); ++p) {
        at::Tensor gradient = at::empty(shapes[p], at::kFloat);
        for (std::int64_t i = 0; i < gradient.numel(); ++i) {
          gradient.mutable_data_ptr<float>()[i] = static_cast<float>(std::ldexp(
              number({1, step, p, static_cast<std::uint32_t>(i)}), -static_cast<int>(p)));
        }
        table.gradients.push_back(gradient);
      }
      all.push_back(table);
    }
    return all;
  }
};

inline NamedJob const& named_job() {
  static NamedJob const once;
  return once;
}

}  // namespace frugal_test::policy_optimize

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/run/phases.hpp>
#include <frugal/core/run/processes.hpp>
#include <frugal/core/run/services.hpp>

namespace frugal_test::support {

/// A policy whose processes train together, without the headers of LibTorch's process groups. It has the members
/// of service::reduce and of service::share, and `Provided` says which of them it provides.
template <class Provided, class Strategy>
struct Together {
  struct kind : frugal::optional_kind {
    static constexpr std::string_view name = "test.Together";
  };
  using listens = frugal::list<frugal::on::fit_begin>;
  using provides = Provided;
  using strategy = Strategy;
  frugal::MicroBatches own(int) const { return {}; }
  struct State {
    using transient = void;
    explicit State(Together const&) {}
    void on_fit_begin(frugal::FitBegin&) {}
    double reduce(frugal::Quantity, double value) { return value; }
    at::Tensor reduce(frugal::Quantity, at::Tensor value) { return value; }
    void join(frugal::SharedWindow&) {}
    bool is_first() const { return true; }
    std::string from_first(std::string const& text) { return text; }
    std::string first_of(std::string const& text) { return text; }
    std::vector<at::Tensor> norms(frugal::Parameters const&) { return {}; }
    void collect_parts() {}
    frugal::Processes processes() const { return {}; }
  };
};

using ReducesAlone = frugal::list<frugal::service::reduce>;
using Shares = frugal::list<frugal::service::reduce, frugal::service::share>;

}  // namespace frugal_test::support

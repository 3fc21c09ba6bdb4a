// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <string>
#include <string_view>
#include <tuple>

#include <frugal/compose/list.hpp>
#include <frugal/run/ledger.hpp>
#include <frugal/run/metrics.hpp>
#include <frugal/run/objective.hpp>
#include <frugal/run/services.hpp>

namespace frugal::detail {

/// What a metric adds up over processes: numbers as numbers, tensors where they are.
template <class Join>
struct AddedUp {
  Join& join;
  double operator()(double counted) const { return join(Quantity::metric, counted); }
  at::Tensor operator()(at::Tensor const& counted) const { return join(Quantity::metric, counted); }
};

/// The weighted mean loss of some batches, and the metrics; one wait at the end.
template <class... Ms>
class Measurement {
 public:
  template <class B>
  void add(Loss const& loss, B const& batch) {
    if (loss.value.is_cpu()) {
      // A number: no operator adds it up.
      on_host_ += host_scalar(loss.value) * *loss.weight;
    } else {
      // Not in place: of a double loss `to` gives the loss itself, which the metrics see next.
      at::Tensor const part = loss.value.detach().to(at::kDouble).mul(*loss.weight);
      sum_ = sum_.defined() ? sum_.to(part.device()).add(part) : part;
    }
    any_ = true;
    weight_ += *loss.weight;
    std::apply([&](auto&... metric) { (add_to(metric, loss, batch), ...); }, metrics_);
  }

  bool empty() const { return !any_; }

  /// Combines this process's sums with those of all. `join(quantity, x)` is x of all, a number or a
  /// tensor.
  template <class Join>
  void reduce(Join&& join) {
    on_host_ = join(Quantity::loss, sum());
    sum_ = at::Tensor();
    weight_ = join(Quantity::loss, weight_);
    [[maybe_unused]] AddedUp<Join> const add_up{join};
    std::apply([&](auto&... metric) { (reduce_one(metric, add_up), ...); }, metrics_);
  }

  Metrics result() const {
    Metrics found;
    found.set("loss", sum() / weight_);
    std::apply([&](auto const&... metric) { (put(found, metric), ...); }, metrics_);
    return found;
  }

  template <class Archive>
  void persist(Archive& archive) {
    double loss = Archive::loading ? 0 : sum();
    archive("any", any_);
    archive("loss", loss);
    archive("weight", weight_);
    if constexpr (Archive::loading) {
      on_host_ = loss;
      sum_ = at::Tensor();
    }
    std::apply(
        [&](auto&... metric) {
          (archive.scope(std::string(metric.name),
                         [&metric](auto& inner) { persist_one(metric, inner); }),
           ...);
        },
        metrics_);
  }

 private:
  double sum() const { return sum_.defined() ? on_host_ + sum_.item<double>() : on_host_; }

  template <class Metric, class B>
  static void add_to(Metric& metric, Loss const& loss, B const& batch) {
    static_assert(
        requires { metric.add(loss, batch); },
        "frugal: a metric's add cannot be called with the loss and the batch. Write `template "
        "<class B> void add(frugal::Loss const& loss, B const& batch)` in it; the module's output "
        "is loss.output.");
    if constexpr (requires { metric.add(loss, batch); }) metric.add(loss, batch);
  }

  template <class Metric>
  static void put(Metrics& found, Metric const& metric) {
    if constexpr (std::convertible_to<decltype(metric.result()), double>) {
      found.set(Metric::name, metric.result());
    } else {
      found.add(metric.result());
    }
  }

  template <class Metric, class Sum>
  static void reduce_one(Metric& metric, Sum const& sum) {
    if constexpr (requires { typename Metric::of_one_process; }) {
      Metric::of_one_process::template require<false, Metric>();
    } else {
      static_assert(
          requires { metric.reduce(sum); },
          "frugal: this recipe reduces over processes, and a metric of Validate cannot be summed "
          "over them. Write `template <class Sum> void reduce(Sum&& sum)` in it, with `counted = "
          "sum(counted)` for each number that it has counted.");
      if constexpr (requires { metric.reduce(sum); }) metric.reduce(sum);
    }
  }

  template <class Metric, class Archive>
  static void persist_one(Metric& metric, Archive& archive) {
    static_assert(
        requires { metric.persist(archive); },
        "frugal: TrainMetrics survives a resume, and a metric of it cannot be saved. Write "
        "`template <class Archive> void persist(Archive& archive)` in it, with `archive(\"name\", "
        "value)` for each number and tensor that it has counted.");
    if constexpr (requires { metric.persist(archive); }) metric.persist(archive);
  }

  double on_host_ = 0;
  at::Tensor sum_;
  double weight_ = 0;
  bool any_ = false;
  std::tuple<Ms...> metrics_;
};

template <class List>
struct measurement_of;
template <class... Ms>
struct measurement_of<list<Ms...>> {
  using type = Measurement<Ms...>;
};

}  // namespace frugal::detail

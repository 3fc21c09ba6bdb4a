// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <exception>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <frugal/core/compose/list.hpp>
#include <frugal/core/run/log_keys.hpp>
#include <frugal/core/run/loss_accumulator.hpp>
#include <frugal/core/run/metric.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/core/run/services.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// What a metric adds up over processes: numbers as numbers, tensors where they are.
template <class Join>
struct AddedUp {
  Join& join;
  double operator()(double counted) const { return join(Quantity::metric, counted); }
  at::Tensor operator()(at::Tensor const& counted) const { return join(Quantity::metric, counted); }
};

/// What becomes of an error that a metric throws.
enum class MetricErrors {
  thrown,  ///< it leaves the measurement
  noted,   ///< training goes on: the metric's numbers are NaN, and a warning has the error
};

/// The weighted mean loss of some batches, and the metrics; one wait at the end.
template <class... Ms>
class Measurement {
 public:
  /// What it begins with: metrics that have seen nothing.
  using Fresh = std::tuple<fresh_metric<Ms>...>;

  Measurement() = default;
  explicit Measurement(Fresh const& fresh) : fresh_(fresh), metrics_(fresh) {}
  Fresh const& fresh() const { return fresh_; }

  template <class B>
  void add(Loss const& loss, B const& batch, MetricErrors errors = MetricErrors::thrown) {
    any_ = true;
    // A loss of weight 0 is a mean over nothing, and may be NaN.
    if (*loss.weight != 0) add_loss(loss.value, *loss.weight);
    each([&](auto& metric, std::string& failure, auto) {
      if (failure.empty()) attempt(errors, failure, [&] { add_to(metric, loss, batch); });
    });
  }

  bool empty() const { return !any_; }

  // For those who put measurements together (MeasuredParts).
  /// Sum of the losses times their weights, and of the weights. May wait for a device.
  std::pair<double, double> loss() const { return {sum(), weight_}; }
  void set_loss(double sum, double weight) {
    any_ = true;
    on_host_ = sum;
    sum_ = at::Tensor();
    weight_ = weight;
  }
  template <std::size_t I>
  auto& metric() {
    return std::get<I>(metrics_);
  }
  template <std::size_t I>
  auto const& metric() const {
    return std::get<I>(metrics_);
  }

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

  /// `warn(text)` gets a sentence for each metric that is NaN, and for the loss if nothing
  /// counts.
  template <class Warn>
  Metrics result(Warn&& warn, MetricErrors errors = MetricErrors::thrown) {
    Metrics found;
    found.set("loss", sum() / weight_);
    if (weight_ == 0) warn("the loss is NaN: no label counts, the weight of each loss is 0");
    each([&]<class M>(M const& metric, std::string& failure, auto index) {
      Metrics own;
      if (failure.empty()) {
        attempt(errors, failure, [&] {
          own = result_of(metric);
          require_new(own, found, name_of(metric));
        });
      }
      if (!failure.empty()) own = all_nan<M>(std::get<index>(fresh_), found);
      std::string const name = name_of(metric);
      if (!failure.empty()) {
        warn(name + " is NaN, because of an error: " + failure);
      } else if (has_nan(own)) {
        warn(name + " is NaN: " + reason_of(metric));
      }
      found.add(own);
    });
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
    each([&](auto& metric, std::string& failure, auto) {
      std::string const name = name_of(metric);
      archive.scope(name, [&metric](auto& inner) { persist_one(metric, inner); });
      persist_failure(archive, "failure." + name, failure);
    });
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

  void add_loss(at::Tensor const& loss, double weight) {
    weight_ += weight;
    if (loss.is_cpu()) {
      // A number: no operator adds it up.
      on_host_ += host_scalar(loss) * weight;
      return;
    }
    // Not in place: of a double loss `to` gives the loss itself, which the metrics see next.
    at::Tensor const part = loss.detach().to(at::kDouble).mul(weight);
    sum_ = sum_.defined() ? sum_.to(part.device()).add(part) : part;
  }

  /// `f(metric, failure, index)`: `failure` is the text of the error that a metric has thrown, or nothing.
  template <class F>
  void each([[maybe_unused]] F&& f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (f(std::get<I>(metrics_), failures_[I], std::integral_constant<std::size_t, I>()), ...);
    }(std::index_sequence_for<Ms...>());
  }

  template <class Body>
  static void attempt(MetricErrors errors, std::string& failure, Body&& body) {
    if (errors == MetricErrors::thrown) return body();
    try {
      body();
    } catch (c10::Error const& error) {
      failure = error.what_without_backtrace();
    } catch (std::exception const& error) {
      failure = error.what();
    }
  }

  template <class Metric>
  static Metrics result_of(Metric const& metric) {
    if constexpr (std::convertible_to<decltype(metric.result()), double>) {
      Metrics found;
      found.set(name_of(metric), metric.result());
      return found;
    } else {
      return metric.result();
    }
  }
  /// A metric of several numbers names them when it runs.
  static void require_new(Metrics const& own, Metrics const& found, std::string_view metric) {
    for (auto const& [name, value] : own) {
      if (!is_log_key(name) && !found.has(name)) continue;
      throw MetricError(
          {.what = "the metric '" + std::string(metric) + "' has a number '" + name + "'",
           .where = "result()",
           .why = found.has(name) ? "another metric has a number of that name"
                                  : std::string(log_key_taken),
           .fix = "Give it another name."});
    }
  }
  /// The numbers of a metric that has failed. Which there are is known by one that has seen
  /// nothing.
  template <class Metric>
  static Metrics all_nan(Metric const& fresh, Metrics const& others) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    Metrics found;
    found.set(name_of(fresh), nan);
    if constexpr (!std::convertible_to<decltype(fresh.result()), double>) {
      try {
        Metrics const numbers = fresh.result();
        require_new(numbers, others, name_of(fresh));
        if (!numbers.empty()) found = Metrics();
        for (auto const& [name, value] : numbers) found.set(name, nan);
      } catch (std::exception const&) {
        return found;
      }
    }
    return found;
  }
  static bool has_nan(Metrics const& numbers) {
    return std::any_of(numbers.begin(), numbers.end(),
                       [](auto const& entry) { return std::isnan(entry.second); });
  }
  template <class Metric>
  static std::string reason_of(Metric const& metric) {
    if constexpr (requires { std::string(metric.warning()); }) {
      if (std::string text = metric.warning(); !text.empty()) return text;
    }
    return "an output or a target is NaN, or nothing was there to count";
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

  // Few fail, and nothing is saved of the others.
  template <class Archive>
  static void persist_failure(Archive& archive, std::string const& name, std::string& failure) {
    if constexpr (Archive::loading) {
      failure.clear();
      if (!archive.holds(name)) return;
    } else {
      if (failure.empty()) return;
    }
    archive(name, failure);
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
  [[no_unique_address]] Fresh fresh_;
  std::tuple<Ms...> metrics_;
  std::array<std::string, sizeof...(Ms)> failures_;
};

template <class List>
struct measurement_of;
template <class... Ms>
struct measurement_of<list<Ms...>> {
  using type = Measurement<Ms...>;
  using metrics = typename type::Fresh;
};

}  // namespace frugal::detail

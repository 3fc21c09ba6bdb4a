// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/measure/measurement.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/scalar_accumulator.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

// What metrics count, as numbers that travel between processes.

/// A number or a tensor that a part of a measurement has counted.
struct Counted {
  enum class Kind : std::uint8_t {
    number,  ///< added up
    tensor,  ///< added up
    rows,    ///< put together along the first dimension
  };
  Kind kind = Kind::number;
  double number = 0;
  at::Tensor tensor{};  ///< in host memory
};

/// Gets what a metric gives to `reduce`, or to `gather`, and gives it the totals that are known.
/// Copies write to the same list.
class CountedValues {
 public:
  /// `probe`: what it returns where no total is known: 0 the value itself, 1 another number.
  CountedValues(std::vector<Counted> const& totals, std::vector<Counted>& values, int probe = 0)
      : totals_(&totals), values_(&values), probe_(probe) {}

  double operator()(double counted) const {
    values_->push_back({.number = counted});
    if (Counted const* const total = of_last()) return total->number;
    return probe_ == 0 ? counted : 2 * counted + 1;
  }
  at::Tensor operator()(at::Tensor const& counted) const {
    return take(Counted::Kind::tensor, counted);
  }
  at::Tensor rows(at::Tensor const& counted) const { return take(Counted::Kind::rows, counted); }

 private:
  at::Tensor take(Counted::Kind kind, at::Tensor const& counted) const;
  Counted const* of_last() const {
    std::size_t const last = values_->size() - 1;
    return last < totals_->size() ? &(*totals_)[last] : nullptr;
  }

  std::vector<Counted> const* totals_;
  std::vector<Counted>* values_;
  int probe_;
};

/// As a metric's `gather` gets it: `rows(x)` is x of all parts, along the first dimension.
struct CountedRows {
  CountedValues values;
  at::Tensor operator()(at::Tensor const& counted) const { return values.rows(counted); }
};

/// Writes numbers and tensors to a text that is sent.
class CountedWriter {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void put(T const& value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    text_.append(bytes, sizeof(T));
  }
  void put_text(std::string const& text);
  void put(std::vector<Counted> const& values);
  void put(Metrics const& metrics);
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// Reads what CountedWriter has written.
class CountedReader {
 public:
  explicit CountedReader(std::string const& text) : at_(text.data()) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  T get() {
    T value;
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string text();
  std::vector<Counted> values();

  Metrics metrics();

 private:
  char const* at_;
};

/// `totals` and the values of the next part. MetricError if the parts have not counted alike.
void add_counted(std::vector<Counted>& totals, std::vector<Counted> values,
                 std::string const& metric);

// Measurements in parts.

/// Whether a metric keeps what it has seen, and gives rows of it.
template <class M>
inline constexpr bool gives_rows =
    requires(M& metric, CountedRows const& rows) { metric.gather(rows); };
/// Whether parts of what it has counted can be put together.
template <class M>
inline constexpr bool is_joinable =
    gives_rows<M> || requires(M& metric, CountedValues const& sum) { metric.reduce(sum); };
/// Whether its sums are whole numbers, which are exact in any order.
template <class M>
inline constexpr bool counts_whole_numbers = requires { requires bool(M::whole_numbers); };

/// A measurement in parts, each of one process, that are put together in the order of their keys:
/// the result has the same bits, whoever has measured which part.
template <class... Ms>
class MeasuredParts {
  static constexpr std::size_t metrics = sizeof...(Ms);

 public:
  using Whole = Measurement<Ms...>;

  MeasuredParts() = default;
  /// Each part begins with these, which have seen nothing.
  explicit MeasuredParts(typename Whole::Fresh const& fresh) : fresh_(fresh) {}

  static constexpr bool can_join = (true && ... && is_joinable<Ms>);
  /// Whether a metric keeps what it has seen.
  static constexpr bool any_gathers = (false || ... || gives_rows<Ms>);

  struct Part {
    std::uint64_t key = 0;
    Whole measured{};
    ScalarSpan scalars{};
    std::array<bool, metrics> is_elsewhere{};  ///< a later part has what the metric has counted
  };

  /// The next part of this process. Its address stays.
  Part& begin(std::uint64_t key) {
    Part& part = parts_.emplace_back();
    part.key = key;
    part.measured = Whole(fresh_);
    if (parts_.size() > 1) take_whole_numbers(parts_[parts_.size() - 2], part);
    return part;
  }
  /// Numbers the parts from 1 on: those of one number come process by process.
  void number() {
    std::uint64_t key = 0;
    for (Part& each : parts_) each.key = ++key;
  }
  /// Puts what has been measured before in front.
  void put_first(Whole before) {
    parts_.push_front({.key = 0, .measured = std::move(before), .scalars = {}, .is_elsewhere = {}});
  }
  Part& last() { return parts_.back(); }
  bool empty() const { return parts_.empty(); }
  void clear() { parts_.clear(); }

  /// Puts the parts of all processes together. `exchange(text)` gives the texts of all, in the order
  /// of the processes. `whole` becomes the result; where this process has no part of a metric's, the
  /// metric in `whole` has to have measured something, to know shapes. False if one does not.
  /// MetricError if the parts have not counted alike.
  template <class Exchange>
  bool join(Exchange&& exchange, Whole& whole, ScalarSpan& scalars) {
    Totals totals;
    std::string const own = written(totals, /*depends=*/false);
    bool const depends = own != written(totals, /*depends=*/false, /*probe=*/1);
    std::vector<std::string> texts = exchange(depends ? written(totals, true) : own);
    bool again = add_up(texts, totals);
    std::string sent = own;
    for (int round = 0; again; ++round) {
      // What a metric gives may depend on what it has got: until it does not change any more.
      std::string next = written(totals, false);
      bool const changed = next != sent;
      std::vector<std::string> const changes = exchange(changed ? next : std::string());
      if (changed) sent = std::move(next);
      again = false;
      for (std::size_t i = 0; i < changes.size(); ++i) {
        if (changes[i].empty()) continue;
        texts[i] = changes[i];
        again = true;
      }
      if (again) add_up(texts, totals);
      if (round == most_rounds) refuse_rounds();
    }
    if (written(totals, false) != sent) refuse_rounds();
    add_scalars(texts, scalars);
    return complete(totals, whole);
  }

 private:
  using Totals = std::array<std::vector<Counted>, 1 + metrics>;  // of the loss and each metric
  static constexpr int most_rounds = 64;

  template <class F, std::size_t... I>
  static void each([[maybe_unused]] F&& f, std::index_sequence<I...>) {
    (f.template operator()<I>(), ...);
  }
  template <class F>
  static void each(F&& f) {
    each(f, std::index_sequence_for<Ms...>());
  }

  /// Keeps one table of counts, and not one for each part.
  void take_whole_numbers(Part& from, Part& to) const {
    each([&]<std::size_t I>() {
      using M = std::tuple_element_t<I, std::tuple<Ms...>>;
      if constexpr (counts_whole_numbers<M>) {
        to.measured.template metric<I>() =
            std::exchange(from.measured.template metric<I>(), M(std::get<I>(fresh_)));
        from.is_elsewhere[I] = true;
      }
    });
  }

  template <class M>
  static std::vector<Counted> values_of(M metric, std::vector<Counted> const& totals, int probe) {
    std::vector<Counted> values;
    apply(metric, CountedValues(totals, values, probe));
    return values;
  }
  template <class M>
  static void apply(M& metric, CountedValues const& sum) {
    if constexpr (gives_rows<M>) {
      metric.gather(CountedRows{sum});
    } else {
      metric.reduce(sum);
    }
  }

  std::string written(Totals const& totals, bool depends, int probe = 0) const {
    CountedWriter out;
    out.put(depends);
    out.put<std::uint64_t>(parts_.size());
    for (Part const& part : parts_) {
      out.put(part.key);
      auto const [sum, weight] = part.measured.loss();
      out.put(std::vector<Counted>{{.number = sum}, {.number = weight}});
      each([&]<std::size_t I>() {
        out.put(part.is_elsewhere[I]
                    ? std::vector<Counted>()
                    : values_of(part.measured.template metric<I>(), totals[1 + I], probe));
      });
      std::uint64_t scalars = 0;
      part.scalars.each([&](std::string const&, double, double) { ++scalars; });
      out.put(scalars);
      part.scalars.each([&](std::string const& name, double sum_of, double weight_of) {
        out.put_text(name);
        out.put(sum_of);
        out.put(weight_of);
      });
    }
    return out.take();
  }

  struct Read {
    std::uint64_t key = 0;
    Totals values{};
    std::vector<std::tuple<std::string, double, double>> scalars{};
  };
  static std::vector<Read> read(std::vector<std::string> const& texts, bool& depends) {
    std::vector<Read> all;
    for (std::string const& text : texts) {
      CountedReader in(text);
      depends = in.get<bool>() || depends;
      for (auto left = in.get<std::uint64_t>(); left != 0; --left) {
        Read& part = all.emplace_back();
        part.key = in.get<std::uint64_t>();
        for (std::vector<Counted>& values : part.values) values = in.values();
        for (auto scalars = in.get<std::uint64_t>(); scalars != 0; --scalars) {
          std::string name = in.text();
          auto const sum = in.get<double>();
          part.scalars.emplace_back(std::move(name), sum, in.get<double>());
        }
      }
    }
    std::ranges::stable_sort(all, {}, &Read::key);
    return all;
  }
  /// Whether a metric of one process gives other numbers when it knows the totals of others.
  bool add_up(std::vector<std::string> const& texts, Totals& totals) const {
    std::array<std::string, 1 + metrics> const names = std::apply(
        [](auto const&... metric) {
          return std::array<std::string, 1 + metrics>{"loss", name_of(metric)...};
        },
        fresh_);
    bool depends = false;
    totals = {};
    for (Read& part : read(texts, depends)) {
      for (std::size_t i = 0; i < totals.size(); ++i) {
        add_counted(totals[i], std::move(part.values[i]), names[i]);
      }
    }
    return depends;
  }
  static void add_scalars(std::vector<std::string> const& texts, ScalarSpan& scalars) {
    bool depends = false;
    for (Read const& part : read(texts, depends)) {
      for (auto const& [name, sum, weight] : part.scalars) scalars.add(name, sum, weight);
    }
  }

  bool complete(Totals const& totals, Whole& whole) const {
    bool all = true;
    if (!totals[0].empty()) whole.set_loss(totals[0][0].number, totals[0][1].number);
    each([&]<std::size_t I>() {
      auto metric = whole.template metric<I>();
      for (Part const& part : parts_) {
        auto const& own = part.measured.template metric<I>();
        if (part.is_elsewhere[I]) continue;
        if (values_of(own, totals[1 + I], 0).size() == totals[1 + I].size()) metric = own;
      }
      std::vector<Counted> values;
      apply(metric, CountedValues(totals[1 + I], values));
      all = all && values.size() == totals[1 + I].size();
      whole.template metric<I>() = std::move(metric);
    });
    return all;
  }

  [[noreturn]] static void refuse_rounds() {
    throw MetricError(
        {.what = "a metric gives other numbers to `reduce` each time",
         .where = "reduce(sum)",
         .why = "parts of the data are put together by it, and it is called on copies",
         .fix = "Let it depend on what the metric has counted, and on the sums that "
                "it gets."});
  }

  std::deque<Part> parts_;
  [[no_unique_address]] typename Whole::Fresh fresh_;
};

template <class List>
struct measured_parts_of;
template <class... Ms>
struct measured_parts_of<list<Ms...>> {
  using type = MeasuredParts<Ms...>;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/core/measure/measured_parts.ipp>
#endif

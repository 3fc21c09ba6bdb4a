// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/measure/measured_parts.hpp>
#include <frugal/metrics/accuracy.hpp>
#include <frugal/metrics/confusion_matrix.hpp>
#include <frugal/metrics/perplexity.hpp>
#include <frugal/metrics/regression.hpp>
#include <frugal/metrics/roc_auc.hpp>

#include <barrier>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace frugal_test::core_loop_measured_parts {

namespace fr = frugal;

struct Exchange {
  std::vector<std::string>& all;
  std::barrier<>& meet;
  std::size_t rank;
  std::vector<std::string> operator()(std::string const& text) const {
    all[rank] = text;
    meet.arrive_and_wait();
    std::vector<std::string> const copy = all;
    meet.arrive_and_wait();
    return copy;
  }
};

fr::Batch batch_of(int i, bool of_values) {
  at::Generator const generator =
      at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(i + 1));
  std::int64_t const samples = 3 + i % 4;
  at::Tensor const x = at::randn({samples, 3}, generator) * (i + 1);
  return {x, of_values ? x + at::randn({samples, 3}, generator) + 100
                       : at::randint(0, 3, {samples}, generator)};
}
fr::Loss loss_of(fr::Batch const& batch, int i) {
  fr::Loss loss{.value = batch.data.abs().mean(), .output = batch.data};
  loss.weight = i == 3 ? 0.0 : static_cast<double>(batch.data.size(0));
  return loss;
}
template <class Measurement>
std::string text_of(Measurement& measured, fr::ScalarSpan& scalars) {
  std::string text;
  char one[64];
  auto const add = [&](std::string const& name, double value) {
    std::snprintf(one, sizeof one, "%s %a, ", name.c_str(), value);
    text += one;
  };
  fr::Metrics const found = measured.result([](std::string const&) {});
  for (auto const& [name, value] : found) add(name, value);
  for (auto const& [name, value] : scalars.take()) add(name, value);
  for (auto const& [name, table] : found.tables()) text += at::str(table);
  return text;
}

/// What each of `processes` gets, with blocks of `block` batches.
template <class... Ms>
std::vector<std::string> joined(int processes, int batches, int block, bool of_values) {
  using Parts = fr::detail::MeasuredParts<Ms...>;
  std::vector<std::string> texts(static_cast<std::size_t>(processes));
  std::vector<std::string> results = texts;
  std::barrier<> meet(processes);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < processes; ++rank) {
    threads.emplace_back([&, rank] {
      auto const own = static_cast<std::size_t>(rank);
      try {
        Parts parts;
        typename Parts::Whole whole;
        fr::ScalarSpan scalars;
        for (int i = 0; i < batches; ++i) {
          if (i / block % processes != rank) continue;
          fr::Batch const batch = batch_of(i, of_values);
          if (i % block == 0) parts.begin(static_cast<std::uint64_t>(i / block));
          parts.last().measured.add(loss_of(batch, i), batch);
          parts.last().scalars.add(i % 2 == 0 ? "even" : "odd", i * 0.1, 1);
        }
        if (parts.empty()) whole.add(loss_of(batch_of(0, of_values), 0), batch_of(0, of_values));
        bool const knows = parts.join(Exchange{texts, meet, own}, whole, scalars);
        results[own] = (knows ? "" : "unknown ") + text_of(whole, scalars);
      } catch (std::exception const& error) {
        results[own] = error.what();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  return results;
}

template <class... Ms>
void same_for_all(bool of_values) {
  for (int batches : {3, 13}) {
    for (int block : {1, 2}) {
      std::string const one = joined<Ms...>(1, batches, block, of_values).front();
      CAPTURE(one);
      CHECK(one.find("even") != std::string::npos);
      for (int processes : {2, 3, 4, 8}) {
        for (std::string const& each : joined<Ms...>(processes, batches, block, of_values)) {
          CHECK(each == one);
        }
      }
    }
  }
}

TEST_CASE("parts of any number of processes give the same bits") {
  same_for_all<fr::Accuracy, fr::Perplexity, fr::ConfusionMatrix, fr::RocAuc<fr::Macro>>(false);
  same_for_all<fr::MAE, fr::MSE, fr::R2>(true);
}

template <class... Ms>
void as_in_one_pass(bool of_values) {
  fr::detail::Measurement<Ms...> expected;
  fr::detail::MeasuredParts<Ms...> parts;
  for (int i = 0; i < 13; ++i) {
    fr::Batch const batch = batch_of(i, of_values);
    if (i % 2 == 0) parts.begin(static_cast<std::uint64_t>(i / 2));
    expected.add(loss_of(batch, i), batch);
    parts.last().measured.add(loss_of(batch, i), batch);
  }
  fr::detail::Measurement<Ms...> whole;
  fr::ScalarSpan scalars;
  CHECK(parts.join([](std::string const& text) { return std::vector<std::string>{text}; }, whole,
                   scalars));
  auto const silent = [](std::string const&) {};
  fr::Metrics const one = expected.result(silent), other = whole.result(silent);
  CHECK(one.size() == other.size());
  for (auto const& [name, value] : one) {
    CHECK(other[name] == doctest::Approx(value).epsilon(1e-13));
  }
  for (auto const& [name, table] : one.tables()) CHECK(table.equal(other.table(name)));
}

TEST_CASE("parts are what one pass over all batches gives") {
  as_in_one_pass<fr::Accuracy, fr::Perplexity, fr::ConfusionMatrix, fr::RocAuc<fr::Macro>>(false);
  as_in_one_pass<fr::MAE, fr::MSE, fr::R2>(true);
}

/// A metric without sums, one that adds up wrongly, and one of tensors of different shapes.
struct Largest {
  static constexpr std::string_view name = "largest";
  template <class B>
  void add(fr::Loss const&, B const&) {}
  double result() const { return 0; }
};
struct Restless : Largest {
  static constexpr std::string_view name = "restless";
  template <class Sum>
  void reduce(Sum&& sum) {
    static thread_local double calls = 0;
    sum(++calls);
  }
};
struct Shapeless : Largest {
  static constexpr std::string_view name = "shapeless";
  at::Tensor seen{};
  template <class B>
  void add(fr::Loss const&, B const& batch) {
    seen = batch.data.sum(1);
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    seen = sum(seen);
  }
};

TEST_CASE("what cannot be put together, and what refuses to be") {
  CHECK_FALSE(fr::detail::MeasuredParts<fr::Accuracy, Largest>::can_join);
  CHECK(fr::detail::MeasuredParts<fr::Accuracy, fr::RocAuc<>>::can_join);
  for (std::string const& each : joined<Restless>(2, 4, 1, true)) {
    CHECK(each.find("a metric gives other numbers to `reduce` each time") != std::string::npos);
  }
  for (std::string const& each : joined<Shapeless>(2, 4, 1, true)) {
    CHECK(each.find("different shapes (metric shapeless)") != std::string::npos);
  }
}

}  // namespace frugal_test::core_loop_measured_parts

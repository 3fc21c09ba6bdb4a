// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/policy/checkpoint/best.hpp>

#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace frugal_test::checkpoint_best {

using frugal::BestBy;
using frugal::Metrics;
using frugal::detail::BestSoFar;

Metrics measured(double loss, double accuracy) {
  Metrics metrics;
  metrics.set("loss", loss);
  metrics.set("accuracy", accuracy);
  return metrics;
}

BestSoFar both() {
  return BestSoFar({{.metric = "loss", .highest = false, .count = 1},
                    {.metric = "accuracy", .highest = true, .count = 1}});
}

/// An archive of lists of numbers.
template <bool Loading>
struct Lists {
  static constexpr bool loading = Loading;
  std::map<std::string, std::vector<double>> values{};

  void operator()(std::string const& name, std::vector<double>& value) {
    if (Loading) {
      value = values.at(name);
    } else {
      values[name] = value;
    }
  }
};

TEST_CASE("the first value is an improvement, then each better one of any metric") {
  BestSoFar best = both();
  CHECK(best.look(measured(2.0, 0.1)));
  CHECK_FALSE(best.look(measured(2.0, 0.1)));
  CHECK_FALSE(best.look(measured(2.5, 0.05)));
  CHECK(best.look(measured(1.9, 0.05)));
  CHECK(best.look(measured(3.0, 0.2)));
}

TEST_CASE("an improvement is one until it is saved, however late") {
  BestSoFar best = both();
  CHECK_FALSE(best.improved());
  CHECK(best.look(measured(2.0, 0.1)));
  CHECK_FALSE(best.look(measured(2.5, 0.1)));
  CHECK(best.improved());
  best.begin_save();
  CHECK_FALSE(best.improved());
}

TEST_CASE("a best value whose save failed is dropped, and that of one on disk stays") {
  BestSoFar best = both();
  best.look(measured(2.0, 0.5));
  best.begin_save();
  best.saved();
  best.look(measured(1.0, 0.5));
  best.begin_save();
  best.not_saved();
  CHECK_FALSE(best.improved());
  CHECK(best.look(measured(1.5, 0.5)));
  CHECK_FALSE(best.look(measured(1.6, 0.5)));
  best.begin_save();
  // Better while the write is in progress: that value is of the next save.
  CHECK(best.look(measured(1.2, 0.6)));
  best.not_saved();
  CHECK(best.improved());
  CHECK_FALSE(best.look(measured(1.3, 0.55)));

  BestSoFar first = both();
  first.look(measured(2.0, 0.5));
  first.begin_save();
  first.not_saved();
  CHECK(first.look(measured(9.0, 0.1)));
}

TEST_CASE("a resume makes the best values those on disk") {
  BestSoFar best = both();
  best.look(measured(0.5, 0.9));
  best.reset_to(
      {{{"loss", 1.5}, {"accuracy", 0.7}}, {}, {{"loss", 1.2}}, {{"loss", std::nan("")}}});
  CHECK_FALSE(best.look(measured(1.3, 0.7)));
  CHECK(best.look(measured(1.1, 0.6)));
  CHECK(best.look(measured(1.1, 0.8)));
  best.reset_to({});
  CHECK(best.look(measured(9.0, 0.1)));
}

TEST_CASE("a NaN is no improvement, and the first number after it is one") {
  BestSoFar best = both();
  CHECK_FALSE(best.look(measured(std::nan(""), std::nan(""))));
  CHECK_FALSE(best.improved());
  CHECK(best.look(measured(2.0, std::nan(""))));
  CHECK(best.look(measured(std::nan(""), 0.1)));
  CHECK_FALSE(best.look(measured(std::nan(""), std::nan(""))));
  CHECK(best.look(measured(1.9, 0.1)));
}

TEST_CASE("a return to before a best value forgets it, and that it is to be saved") {
  BestSoFar best = both();
  best.look(measured(1.5, 0.4));
  Lists<false> then;
  best.persist(then);
  best.look(measured(0.5, 0.9));
  Lists<true> back{then.values};
  best.persist(back);
  CHECK_FALSE(best.improved());
  CHECK(best.look(measured(1.4, 0.3)));
  Lists<true> start{{{"best.loss", {}}, {"best.accuracy", {}}}};
  best.persist(start);
  CHECK(best.look(measured(9.0, 0.1)));
}

TEST_CASE("a resumed run compares with the best before it") {
  BestSoFar best = both();
  Lists<false> nothing;
  best.persist(nothing);
  CHECK(nothing.values.at("best.loss").empty());
  best.look(measured(1.5, 0.4));
  Lists<false> writer;
  best.persist(writer);
  CHECK(writer.values.at("best.loss") == std::vector{1.5});

  BestSoFar resumed = both();
  Lists<true> reader{writer.values};
  resumed.persist(reader);
  CHECK_FALSE(resumed.look(measured(1.6, 0.3)));
  CHECK(resumed.look(measured(1.6, 0.5)));
}

}  // namespace frugal_test::checkpoint_best

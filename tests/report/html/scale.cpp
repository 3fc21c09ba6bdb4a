// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/html/scale.hpp>

#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::html_scale {

using frugal::html::nice_step;
using frugal::html::Scale;
using frugal::html::Unit;

std::vector<std::string> labels(Scale const& scale) {
  std::vector<std::string> all;
  for (double const tick : scale.ticks()) all.push_back(scale.label(tick));
  return all;
}
using Labels = std::vector<std::string>;

TEST_CASE("steps are 1, 2 or 5 times a power of ten, as Heckbert's nice numbers are") {
  CHECK(nice_step(0.9, Unit::plain) == doctest::Approx(1));
  CHECK(nice_step(1.1, Unit::plain) == doctest::Approx(2));
  CHECK(nice_step(2.1, Unit::plain) == doctest::Approx(5));
  CHECK(nice_step(5.1, Unit::plain) == doctest::Approx(10));
  CHECK(nice_step(0.03, Unit::plain) == doctest::Approx(0.05));
  CHECK(nice_step(0.3, Unit::count) == 1);  // there is no half step
  CHECK(nice_step(700, Unit::bytes) == 1024);
  CHECK(nice_step(50, Unit::seconds) == 60);
  CHECK(nice_step(4000, Unit::seconds) == 7200);
  CHECK(nice_step(0, Unit::plain) == 1);
}

TEST_CASE("labels are as people write them") {
  CHECK(labels(Scale(0, 1, Unit::plain, 4, true)) == Labels{"0", "0.5", "1.0"});
  CHECK(labels(Scale(0.31, 2.3, Unit::plain, 4, true)) ==
        Labels{"0", "0.5", "1.0", "1.5", "2.0", "2.5"});
  CHECK(labels(Scale(0, 9370, Unit::count, 4, false)) == Labels{"0", "5k"});
  CHECK(labels(Scale(0, 0.93, Unit::percent, 4, true)) == Labels{"0%", "50%", "100%"});
  CHECK(labels(Scale(0, 37748, Unit::dollars, 4, true)) ==
        Labels{"$0", "$10k", "$20k", "$30k", "$40k"});
  CHECK(labels(Scale(0, 5400, Unit::seconds, 4, false)) ==
        Labels{"0 s", "30 min", "1 h", "1 h 30 min"});
  CHECK(labels(Scale(0, 3e9, Unit::bytes, 4, true)) == Labels{"0 B", "1 GiB", "2 GiB", "3 GiB"});
  CHECK(labels(Scale(0.001, 40, Unit::plain, 4, true, true)) ==
        Labels{"0.001", "0.01", "0.1", "1", "10", "100"});
}

TEST_CASE("every range has ticks inside it, few, in order and with labels of their own") {
  for (double const low : {-1e200, -5.0, 0.0, 1e-300, 0.1, 3.0, 1e16, 1e199}) {
    for (double const size : {0.0, 1e-12, 1e-3, 1.0, 17.0, 1e5, 1e199}) {
      for (Unit const unit :
           {Unit::plain, Unit::count, Unit::percent, Unit::bytes, Unit::dollars, Unit::seconds}) {
        for (bool const loose : {false, true}) {
          Scale const scale(low, low + size, unit, 4, loose);
          CAPTURE(low);
          CAPTURE(size);
          CHECK(scale.ticks().size() <= 16);
          CHECK(scale.low() < scale.high());
          double const at = scale.at(low + size / 2);
          CHECK((at >= 0 && at <= 1));
          for (std::size_t i = 1; i < scale.ticks().size(); ++i) {
            CHECK(scale.ticks()[i - 1] < scale.ticks()[i]);
          }
          for (std::string const& label : labels(scale)) CHECK_FALSE(label.empty());
        }
      }
    }
  }
}

TEST_CASE("numbers read the same in all places") {
  using frugal::html::money_text;
  using frugal::html::short_number;
  using frugal::html::time_text;
  CHECK(short_number(0.0123456) == "0.01235");
  CHECK(short_number(999'950) == "1M");
  CHECK(short_number(12'345) == "12.35k");
  CHECK(short_number(std::nan("")) == "\xe2\x80\x93");
  CHECK(money_text(37748) == "$37,748");
  CHECK(money_text(999.999) == "$1,000");
  CHECK(money_text(0.00123) == "$0.00123");
  CHECK(money_text(-2) == "\xe2\x88\x92$2.00");
  CHECK(money_text(5, "EUR") == "5.00 EUR");
  CHECK(time_text(0.0032) == "3.2 ms");
  CHECK(time_text(59.96) == "1 min");
  CHECK(time_text(3899) == "1 h 04 min");
  CHECK(time_text(259'200) == "3 d");
}

}  // namespace frugal_test::html_scale

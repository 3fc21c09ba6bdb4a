// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/sink/prometheus_names.hpp>

#include <limits>

namespace frugal_test::policy_sink_prometheus_names {

using frugal::detail::prometheus_escaped;
using frugal::detail::prometheus_name;
using frugal::detail::prometheus_number;

TEST_CASE("numbers are as Prometheus writes them") {
  double const infinity = std::numeric_limits<double>::infinity();
  CHECK(prometheus_number(std::numeric_limits<double>::quiet_NaN()) == "NaN");
  CHECK(prometheus_number(infinity) == "+Inf");
  CHECK(prometheus_number(-infinity) == "-Inf");
  CHECK(prometheus_number(0.1) == "0.1");
  CHECK(prometheus_number(1e300) == "1e+300");
}

TEST_CASE("names become snake_case, and keep no suffix of another kind") {
  CHECK(prometheus_name("accuracy") == "accuracy");
  CHECK(prometheus_name("validLoss") == "valid_loss");
  CHECK(prometheus_name("F1") == "f1");
  CHECK(prometheus_name("test/top-5 acc.") == "test_top_5_acc");
  CHECK(prometheus_name("a\nb\"c\\") == "a_b_c");
  CHECK(prometheus_name("\xc3\xa4rger") == "rger");
  CHECK(prometheus_name("") == "unnamed");
  CHECK(prometheus_name("::") == "unnamed");
  CHECK(prometheus_name("error_total") == "error_total_value");
  CHECK(prometheus_name("hits_count") == "hits_count_value");
}

TEST_CASE("texts are escaped, and bytes that are not UTF-8 are replaced") {
  CHECK(prometheus_escaped("a\\b\"c\nd", true) == "a\\\\b\\\"c\\nd");
  CHECK(prometheus_escaped("a\"b", false) == "a\"b");
  CHECK(prometheus_escaped("\xff", true) == "\xef\xbf\xbd");
}

}  // namespace frugal_test::policy_sink_prometheus_names

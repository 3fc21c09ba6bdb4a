// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/error.hpp>

#include <string>
#include <type_traits>

namespace frugal_test::run_error {

using namespace frugal;

TEST_CASE("an error reads what, where, why and what to do") {
  Error const error({.what = "a", .where = "b", .why = "c", .fix = "D."});
  CHECK(std::string(error.what()) == "frugal: a (b): c. D.");
  CHECK(error.fault().fix == "D.");
}

TEST_CASE("unknown parts leave no punctuation behind") {
  CHECK(std::string(Error({.what = "a", .where = "", .why = "", .fix = ""}).what()) ==
        "frugal: a.");
  CHECK(std::string(Error({.what = "a", .where = "", .why = "c", .fix = "D."}).what()) ==
        "frugal: a: c. D.");
  // The cause is another error's sentence.
  CHECK(std::string(
            frugal::DataError({.what = "a", .where = "", .why = "c. d.", .fix = "E."}).what()) ==
        "frugal: a: c. d. E.");
}

TEST_CASE("catching data errors catches empty sources and failed workers") {
  CHECK(std::is_base_of_v<DataError, EmptySourceError>);
  CHECK(std::is_base_of_v<DataError, WorkerError>);
  CHECK(std::is_base_of_v<Error, NonFiniteLossError>);
  CHECK(std::is_base_of_v<std::runtime_error, Error>);
  CHECK_FALSE(std::is_base_of_v<DataError, ShapeError>);
}

}  // namespace frugal_test::run_error

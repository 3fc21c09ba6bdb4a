// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/data/loading/thrown_by.hpp>

#include <doctest/doctest.h>

#include <pthread.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <typeinfo>

namespace frugal_test::data_loading_thrown_by {

using frugal::detail::thrown_by;

TEST_CASE("what a body throws is returned, whatever it is") {
  CHECK(thrown_by([] {}) == nullptr);
  CHECK_THROWS_AS(std::rethrow_exception(thrown_by([] { throw 42; })), int);
  CHECK_THROWS_AS(std::rethrow_exception(thrown_by([] { throw std::logic_error("no"); })),
                  std::logic_error);
}

TEST_CASE("a thread that ends in it ends, and the program does not") {
  std::atomic<bool> went_on{false};
  std::thread([&] {
    static_cast<void>(thrown_by([] { ::pthread_exit(nullptr); }));
    went_on = true;
  }).join();
  CHECK_FALSE(went_on);
}

struct Reader {};

TEST_CASE("a type has the name that a programmer gave it") {
  CHECK(frugal::detail::type_name(typeid(Reader)) == "frugal_test::data_loading_thrown_by::Reader");
}

TEST_CASE("a thrown value that is no exception is known by its type") {
  try {
    throw 42;
  } catch (...) {
    CHECK(frugal::detail::current_exception_name() == "int");
  }
}

}  // namespace frugal_test::data_loading_thrown_by

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/loading/type_name.hpp>

#include <typeinfo>

namespace frugal_test::data_loading_type_name {

struct Reader {};

TEST_CASE("a type has the name that a programmer gave it") {
  CHECK(frugal::detail::type_name(typeid(Reader)) == "frugal_test::data_loading_type_name::Reader");
}

TEST_CASE("a thrown value that is no exception is known by its type") {
  try {
    throw 42;
  } catch (...) {
    CHECK(frugal::detail::current_exception_name() == "int");
  }
}

}  // namespace frugal_test::data_loading_type_name

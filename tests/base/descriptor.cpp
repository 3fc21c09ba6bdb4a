// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/base/descriptor.hpp>

#include <fcntl.h>

#include <utility>

namespace frugal_test::base_descriptor {

using frugal::detail::Descriptor;

bool is_open(int number) { return ::fcntl(number, F_GETFD) >= 0; }

TEST_CASE("a descriptor is closed at the end of its scope") {
  int number = -1;
  {
    Descriptor const owner(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    number = owner.get();
    REQUIRE(owner);
    CHECK(is_open(number));
  }
  CHECK_FALSE(is_open(number));
}

TEST_CASE("a descriptor that was moved is closed once, by its new owner") {
  Descriptor from(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  int const number = from.get();
  {
    Descriptor const to(std::move(from));
    CHECK(to.get() == number);
    CHECK(is_open(number));
  }
  CHECK_FALSE(is_open(number));
}

TEST_CASE("an assigned descriptor is taken over, and a closed one is none") {
  Descriptor one(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  int const number = one.get();
  Descriptor other;
  CHECK_FALSE(other);
  other = std::move(one);
  CHECK(other.get() == number);
  other.close();
  CHECK_FALSE(other);
  CHECK_FALSE(is_open(number));
}

}  // namespace frugal_test::base_descriptor

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/about.hpp>

#include <string>

namespace frugal_test::compose_about {

struct Plain {};
template <class... Ts>
struct Holder {};
template <int N>
struct Number {};
struct Praised {
  static constexpr frugal::About about{frugal::Term::hours_per_run, "a kernel", 2};
};

// Compilers differ in spaces: "char [3]", "> >".
template <class T>
std::string name() {
  std::string text(frugal::detail::type_name<T>());
  std::erase(text, ' ');
  for (std::string const part : {"frugal_test::", "compose_about::"}) {
    for (std::size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
  }
  return text;
}

TEST_CASE("a type's name is complete and exact with every compiler") {
  CHECK(name<int>() == "int");
  CHECK(name<Plain>() == "Plain");
  CHECK(name<Number<8>>() == "Number<8>");
  CHECK(name<Holder<int, Holder<char[3]>, Number<-1>>>() ==
        "Holder<int,Holder<char[3]>,Number<-1>>");
  CHECK(name<int[2][3]>() == "int[2][3]");
}

TEST_CASE("a policy without an About lowers nothing and waits for nothing") {
  constexpr frugal::About about = frugal::detail::about_of<Plain>();
  CHECK(about.term == frugal::Term::none);
  CHECK(about.cost.empty());
  CHECK(about.host_syncs_per_step == 0);
}

TEST_CASE("a policy's About is read unchanged") {
  constexpr frugal::About about = frugal::detail::about_of<Praised>();
  CHECK(about.term == frugal::Term::hours_per_run);
  CHECK(about.cost == "a kernel");
  CHECK(about.host_syncs_per_step == 2);
}

TEST_CASE("every term has a name") {
  CHECK(frugal::name_of(frugal::Term::price_per_hour) == "price per hour");
  CHECK(frugal::name_of(frugal::Term::hours_per_run) == "hours per run");
  CHECK(frugal::name_of(frugal::Term::runs_to_convergence) == "runs to convergence");
  CHECK(frugal::name_of(frugal::Term::memory) == "memory");
  CHECK(frugal::name_of(frugal::Term::none) == "-");
}

}  // namespace frugal_test::compose_about

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/template_arguments.hpp>

#include <concepts>
#include <type_traits>

namespace frugal_test::compose_template_arguments {

using frugal::list;
using frugal::detail::TemplateShape;
using frugal::detail::Value;
using frugal::detail::written_arguments;

template <class... Ts>
struct Types {};
template <class T, class U = int, class V = float>
struct Defaulted {};
template <auto... Vs>
struct Values {};
template <int N = 1, bool B = false>
struct Flags {};
template <int N, class T = int>
struct Counted {};
template <class T, int N = 7>
struct Sized {};
template <int N = 4, class T = int>
struct Both {};
template <class T = int, int N = 4>
struct Neither {};
template <class T, class U, int N>
struct Mixed {};
template <class T>
  requires std::integral<T>
struct Whole {};

template <class T>
using arguments = typename TemplateShape<T>::arguments;

TEST_CASE("the arguments of a template are a list, and values are types in it") {
  CHECK(std::same_as<arguments<Types<int, char>>, list<int, char>>);
  CHECK(std::same_as<arguments<Types<>>, list<>>);
  CHECK(std::same_as<arguments<Values<1, 'c'>>, list<Value<1>, Value<'c'>>>);
  CHECK(std::same_as<arguments<Flags<2, true>>, list<Value<2>, Value<true>>>);
  CHECK(std::same_as<arguments<Counted<2, char>>, list<Value<2>, char>>);
  CHECK(std::same_as<arguments<Sized<char, 2>>, list<char, Value<2>>>);
}

TEST_CASE("a type that is not a template, or mixes its arguments, has no shape") {
  CHECK(std::is_void_v<TemplateShape<int>>);
  CHECK(std::is_void_v<TemplateShape<Mixed<int, char, 1>>>);
}

TEST_CASE("arguments that are the defaults need not be written") {
  CHECK(written_arguments<TemplateShape<Defaulted<char>>>() == 1);
  CHECK(written_arguments<TemplateShape<Defaulted<char, int, float>>>() == 1);
  CHECK(written_arguments<TemplateShape<Defaulted<char, char>>>() == 2);
  CHECK(written_arguments<TemplateShape<Defaulted<char, int, char>>>() == 3);
  CHECK(written_arguments<TemplateShape<Flags<>>>() == 0);
  CHECK(written_arguments<TemplateShape<Flags<1, true>>>() == 2);
  CHECK(written_arguments<TemplateShape<Counted<1>>>() == 1);
  CHECK(written_arguments<TemplateShape<Counted<1, char>>>() == 2);
  CHECK(written_arguments<TemplateShape<Sized<char>>>() == 1);
  CHECK(written_arguments<TemplateShape<Sized<char, 8>>>() == 2);
  CHECK(written_arguments<TemplateShape<Both<>>>() == 0);
  CHECK(written_arguments<TemplateShape<Both<5>>>() == 1);
  CHECK(written_arguments<TemplateShape<Both<4, char>>>() == 2);
  CHECK(written_arguments<TemplateShape<Neither<>>>() == 0);
  CHECK(written_arguments<TemplateShape<Neither<char>>>() == 1);
}

TEST_CASE("a pack has no defaults, and a constraint is no obstacle") {
  CHECK(written_arguments<TemplateShape<Types<int, char>>>() == 2);
  CHECK(written_arguments<TemplateShape<Values<1, 2>>>() == 2);
  CHECK(written_arguments<TemplateShape<Whole<int>>>() == 1);
}

}  // namespace frugal_test::compose_template_arguments

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <frugal/core/compose/fixed_string.hpp>
#include <frugal/core/compose/rational.hpp>
#include <frugal/core/compose/written_name.hpp>

namespace shop {

struct Meter {};
template <class T>
struct Till {};
struct Scoped {
  static constexpr std::string_view identity = "a::b";
};
enum class Coin { penny, pound };
enum Note { five, ten };

}  // namespace shop

namespace myfrugal {

struct Meter {};

}  // namespace myfrugal

namespace frugal {

struct WrittenUnit {};
template <class T = WrittenUnit, int N = 3>
struct WrittenPolicy {};
template <fixed_string Name, shop::Coin Direction>
struct WrittenWatch {};
template <auto N>
struct WrittenCount {};
struct WrittenAuto {};
template <Rational R, class T = WrittenUnit>
struct WrittenShare {};
template <int A, class T, int B>
struct WrittenMixed {};
template <class... Ts>
struct WrittenPack {};
struct WrittenIdentity {
  static constexpr std::string_view identity = "Cheese, grated";
};
using WrittenShort = WrittenCount<90>;
template <>
inline constexpr std::string_view alias_name<WrittenShort> = "WrittenShort";

}  // namespace frugal

namespace frugal_test::compose_written_name {

using namespace frugal;
using frugal::detail::written_name;

namespace {
struct Hidden {};
}  // namespace

int plus(int a) { return a + 1; }

TEST_CASE("a policy is named as its user writes it, the same with every compiler") {
  CHECK(written_name<WrittenUnit>() == "WrittenUnit");
  CHECK(written_name<WrittenCount<8>>() == "WrittenCount<8>");
  CHECK(written_name<WrittenCount<std::uint64_t{8}>>() == "WrittenCount<8>");
  CHECK(written_name<WrittenCount<-8>>() == "WrittenCount<-8>");
  CHECK(written_name<WrittenCount<true>>() == "WrittenCount<true>");
  CHECK(written_name<WrittenCount<WrittenAuto{}>>() == "WrittenCount<WrittenAuto>");
  CHECK(written_name<WrittenPolicy<WrittenCount<2>, 4>>() == "WrittenPolicy<WrittenCount<2>, 4>");
  CHECK(written_name<WrittenPack<>>() == "WrittenPack<>");
  CHECK(written_name<WrittenPack<WrittenUnit, WrittenPack<WrittenUnit>>>() ==
        "WrittenPack<WrittenUnit, WrittenPack<WrittenUnit>>");
}

TEST_CASE("strings and enumerators keep their spelling") {
  CHECK(written_name<WrittenWatch<"accuracy", shop::Coin::pound>>() ==
        "WrittenWatch<\"accuracy\", shop::Coin::pound>");
  CHECK(written_name<WrittenWatch<"a<b>", shop::Coin::penny>>() ==
        "WrittenWatch<\"a<b>\", shop::Coin::penny>");
  CHECK(written_name<WrittenCount<shop::ten>>() == "WrittenCount<ten>");
}

TEST_CASE("a rational is the literal that makes it, or a fraction if there is none") {
  CHECK(written_name<WrittenShare<0.999>>() == "WrittenShare<0.999>");
  CHECK(written_name<WrittenShare<1>>() == "WrittenShare<1.0>");
  CHECK(written_name<WrittenShare<12.05>>() == "WrittenShare<12.05>");
  CHECK(written_name<WrittenShare<3e-4>>() == "WrittenShare<0.0003>");
  CHECK(written_name<WrittenShare<Rational{1, 3}>>() == "WrittenShare<Rational{1, 3}>");
  CHECK(written_name<WrittenShare<Rational{-1, 2}>>() == "WrittenShare<Rational{-1, 2}>");
}

TEST_CASE("defaults at the end are left out, the first argument stays") {
  CHECK(written_name<WrittenPolicy<>>() == "WrittenPolicy<WrittenUnit>");
  CHECK(written_name<WrittenPolicy<WrittenUnit, 3>>() == "WrittenPolicy<WrittenUnit>");
  CHECK(written_name<WrittenPolicy<WrittenUnit, 4>>() == "WrittenPolicy<WrittenUnit, 4>");
  CHECK(written_name<WrittenShare<0.5, WrittenUnit>>() == "WrittenShare<0.5>");
  CHECK(written_name<WrittenShare<0.5, int>>() == "WrittenShare<0.5, int>");
}

TEST_CASE("in a short name all defaults are left out, and empty brackets too") {
  CHECK(written_name<WrittenPolicy<>>(Defaults::none) == "WrittenPolicy");
  CHECK(written_name<WrittenPack<WrittenPolicy<>>>(Defaults::none) == "WrittenPack<WrittenPolicy>");
  CHECK(written_name<WrittenPolicy<WrittenUnit, 4>>(Defaults::none) ==
        "WrittenPolicy<WrittenUnit, 4>");
}

TEST_CASE("an alias and an identity are equivalent to the type") {
  CHECK(written_name<WrittenCount<90>>() == "WrittenShort");
  CHECK(written_name<WrittenPack<WrittenShort>>() == "WrittenPack<WrittenShort>");
  CHECK(written_name<WrittenPack<WrittenIdentity>>() == "WrittenPack<Cheese, grated>");
}

TEST_CASE("user-defined types keep their namespaces, except unnamed ones") {
  struct Local {};
  CHECK(written_name<shop::Meter>() == "shop::Meter");
  CHECK(written_name<myfrugal::Meter>() == "myfrugal::Meter");
  CHECK(written_name<shop::Till<shop::Meter>>() == "shop::Till<shop::Meter>");
  CHECK(written_name<WrittenPack<Hidden>>() ==
        "WrittenPack<frugal_test::compose_written_name::Hidden>");
  CHECK(written_name<WrittenPack<Local>>().ends_with("Local>"));
  CHECK(written_name<WrittenPack<std::uint64_t, short, double>>() ==
        "WrittenPack<unsigned long, short, double>");
}

TEST_CASE("a policy in a table is without its namespace, and its arguments keep theirs") {
  using frugal::detail::policy_name;
  CHECK(policy_name<shop::Till<shop::Meter>>() == "Till<shop::Meter>");
  CHECK(policy_name<shop::Meter>() == "Meter");
  CHECK(policy_name<WrittenPolicy<>>() == "WrittenPolicy<WrittenUnit>");
  CHECK(policy_name<WrittenPolicy<>>(Defaults::none) == "WrittenPolicy");
  CHECK(policy_name<shop::Scoped>() == "a::b");
}

TEST_CASE("other mixtures of arguments, functions and lambdas have names too") {
  CHECK(written_name<WrittenMixed<1, shop::Meter, 2>>() == "WrittenMixed<1, shop::Meter, 2>");
  CHECK(written_name<WrittenCount<&plus>>() ==
        "WrittenCount<frugal_test::compose_written_name::plus>");
  auto const twice = [](int a) { return 2 * a; };
  CHECK(written_name<WrittenPack<decltype(twice)>>() == "WrittenPack<lambda>");
}

struct HasNameless {
  struct {
    int member = 1;
  } nameless{};
  enum { first } nameless_enum{};
};

TEST_CASE("a type without a name is not called by its file and line") {
  CHECK(written_name<decltype(HasNameless::nameless)>() == "unnamed");
  CHECK(written_name<decltype(HasNameless::nameless_enum)>() == "unnamed");
  CHECK(written_name<WrittenPack<decltype(HasNameless::nameless), int>>() ==
        "WrittenPack<unnamed, int>");
  auto const lambda = [] {};
  CHECK(written_name<WrittenPack<decltype(lambda)>>() == "WrittenPack<lambda>");
}

}  // namespace frugal_test::compose_written_name

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

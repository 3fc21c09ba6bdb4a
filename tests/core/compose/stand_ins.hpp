// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/compose/composition.hpp>
#include <frugal/core/compose/engine.hpp>
#include <frugal/core/compose/recipe_facts.hpp>

#include <string>
#include <string_view>
#include <vector>

// Kinds, policies and phases for composition tests; the engine knows no others.
namespace frugal_test::compose {

using namespace frugal;

#define FRUGAL_TEST_KIND(tag, nature, text)        \
  struct tag : nature {                            \
    static constexpr std::string_view name = text; \
    static constexpr Stage stage = Stage::measure; \
  }
FRUGAL_TEST_KIND(alpha, optional_kind, "Alpha");
FRUGAL_TEST_KIND(beta, optional_kind, "Beta");
FRUGAL_TEST_KIND(gamma, optional_kind, "Gamma");
FRUGAL_TEST_KIND(delta, optional_kind, "Delta");
FRUGAL_TEST_KIND(epsilon, optional_kind, "Epsilon");
FRUGAL_TEST_KIND(many, repeatable_kind, "Many");
FRUGAL_TEST_KIND(gear, slot_kind, "Gear");
FRUGAL_TEST_KIND(brake, slot_kind, "Brake");
#undef FRUGAL_TEST_KIND

/// The phase of these tests: records which policies were called.
struct Notes {
  std::vector<std::string> lines{};
};

struct IntContinuation {
  int operator()() const;
};

struct Phases {
  template <class Hook>
  using phase = Notes;
  template <class Hook>
  using continuation = IntContinuation;
};
template <class... Ps>
struct Context {
  static constexpr frugal::RecipeFacts facts{};
  using phases = Phases;
};

/// A setting: listens to nothing. Parameters distinguish instances.
template <class Kind, int Mark = 0>
struct Setting {
  using kind = Kind;
  using listens = list<>;
  int value = Mark;
};

/// Records its kind and mark at every step, and may ask to stop.
template <class Kind, int Mark = 0, bool Stops = false>
struct Teller {
  using kind = Kind;
  using listens = list<on::step>;
  template <class>
  struct State {
    explicit State(Teller const&) {}
    flow on_step(Notes& notes) {
      notes.lines.push_back(std::string(Kind::name) + (Mark ? std::to_string(Mark) : ""));
      return Stops ? flow::stop : flow::proceed;
    }
  };
};

template <class List>
struct engine_of;
template <class... Ps>
struct engine_of<list<Ps...>> {
  using type = Engine<Context<Ps...>, Ps...>;
};

/// The engine of some policies, in the order that a trainer computes.
template <class Slots, class... Ps>
using engine_for = typename engine_of<frugal::detail::composed<Slots, list<Ps...>>>::type;

template <class... Ps>
using values_of = frugal::detail::Storage<Ps...>;

}  // namespace frugal_test::compose

// The null policies stand next to their kinds, as in the library.
template <>
struct frugal::null_policy<frugal_test::compose::gear> {
  using type = frugal_test::compose::Setting<frugal_test::compose::gear>;
};
template <>
struct frugal::null_policy<frugal_test::compose::brake> {
  using type = frugal_test::compose::Setting<frugal_test::compose::brake>;
};

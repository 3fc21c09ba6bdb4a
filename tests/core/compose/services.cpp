// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/engine.hpp>
#include <frugal/core/compose/outcome.hpp>
#include <frugal/core/compose/recipe.hpp>
#include <frugal/core/compose/services.hpp>

#include "stand_ins.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::compose_services {

using namespace frugal_test::compose;

struct greet {
  static constexpr std::string_view name = "greet";
  template <class P, class State>
  static constexpr bool met = requires(State& state) { state.greet(); };
  FRUGAL_DIAGNOSTIC(unmet, "it cannot greet");
  FRUGAL_DIAGNOSTIC(twice, "two greet");
};
struct wave {
  static constexpr std::string_view name = "wave";
  template <class P, class State>
  static constexpr bool met = true;
  FRUGAL_DIAGNOSTIC(unmet, "it cannot wave");
  FRUGAL_DIAGNOSTIC(twice, "two wave");
};

template <class Kind, class... Services>
struct Provider {
  using kind = Kind;
  using listens = list<on::step>;
  using provides = list<Services...>;
  template <class>
  struct State {
    explicit State(Provider const&) {}
    void on_step(Notes&) {}
    std::string greet() { return std::string(Kind::name); }
  };
};

static_assert(frugal::Service<greet>);
static_assert(!frugal::Service<int>);

TEST_CASE("the provider of a service is found, in any position") {
  using All = engine_for<list<>, Teller<alpha>, Provider<delta, wave>, Provider<beta, greet>>;
  using Values =
      frugal::detail::Storage<Teller<alpha>, Provider<beta, greet>, Provider<delta, wave>>;
  All engine{Values{}};
  CHECK(All::provides<greet>);
  CHECK(All::provides<wave>);
  CHECK(engine.provider<greet>().greet() == "Beta");
  CHECK_FALSE(engine_for<list<>, Teller<alpha>>::provides<greet>);
}

TEST_CASE("two providers of one service are a fault, and of two services none") {
  using frugal::Recipe;
  CHECK(Recipe<Provider<alpha, greet>, Provider<beta, wave>>::legal);
  CHECK(Recipe<Provider<alpha, greet, wave>, Teller<beta>>::legal);
  CHECK(Recipe<Provider<alpha, greet>, Provider<beta, greet>>::fault == "two greet");
  CHECK(Recipe<Provider<alpha, greet>, Provider<beta, wave, greet>>::fault == "two greet");
}

TEST_CASE("a list of policies knows its provider of a service") {
  using frugal::detail::provided;
  using frugal::detail::provider_of;
  using All = list<Teller<alpha>, Provider<beta, greet>>;
  CHECK(provided<greet, All>);
  CHECK_FALSE(provided<wave, All>);
  CHECK(std::is_same_v<provider_of<greet, void, All>::type, Provider<beta, greet>>);
  CHECK(std::is_same_v<provider_of<wave, void, All>::type, void>);
}

/// Another kind with a name that is taken.
struct other_alpha : frugal::optional_kind {
  static constexpr std::string_view name = "Alpha";
};

TEST_CASE("two kinds with one name are a fault, and one kind twice is another") {
  using frugal::Recipe;
  CHECK(Recipe<Teller<alpha>, Teller<other_alpha>>::fault == frugal::rules::one_name::text);
  CHECK(Recipe<Teller<alpha>, Teller<alpha, 2>>::fault == frugal::rules::duplicate::text);
  CHECK(Recipe<Teller<many>, Teller<many, 2>>::legal);
}

/// Answers, and records that it was asked.
template <class Kind, bool Answer>
struct Asked {
  using kind = Kind;
  using listens = list<frugal::query::stop_requested>;
  template <class>
  struct State {
    using transient = void;
    explicit State(Asked const&) {}
    bool stop_requested(Notes& notes) const {
      notes.lines.emplace_back(Kind::name);
      return Answer;
    }
  };
};

TEST_CASE("a query asks every subscriber, and one yes is a yes") {
  using All = engine_for<list<>, Asked<alpha, false>, Asked<beta, true>, Asked<gamma, false>>;
  All engine{
      frugal::detail::Storage<Asked<alpha, false>, Asked<beta, true>, Asked<gamma, false>>{}};
  Notes notes;
  std::vector<std::string> who;
  auto const hear = [&](std::string_view kind) { who.emplace_back(kind); };
  CHECK(engine.ask<frugal::query::stop_requested>(notes, hear));
  CHECK(notes.lines == std::vector<std::string>{"Alpha", "Beta", "Gamma"});
  CHECK(who == std::vector<std::string>{"Beta"});
}

/// Interrupts the event at its first call.
struct Breaks {
  using kind = delta;
  using listens = list<on::step>;
  template <class>
  struct State {
    using transient = void;
    explicit State(Breaks const&) {}
    void on_step(Notes& notes) {
      if (!std::exchange(broken_, true)) throw frugal::Interrupted{};
      notes.lines.emplace_back("Delta");
    }
    bool broken_ = false;
  };
};

TEST_CASE("an interrupted event is completed for the subscribers that have not finished it") {
  using All = engine_for<list<>, Teller<alpha>, Teller<many, 1>, Teller<many, 2>, Breaks>;
  All engine{frugal::detail::Storage<Teller<alpha>, Breaks, Teller<many, 1>, Teller<many, 2>>{}};
  Notes notes;
  std::vector<std::string> told;
  std::size_t current_subscriber = 0;
  auto const nobody = [](std::string_view) {};
  CHECK_THROWS_AS(
      static_cast<void>(engine.emit_to_others<on::step>(told, current_subscriber, notes, nobody)),
      frugal::Interrupted);
  CHECK(told == std::vector<std::string>{"Alpha"});
  CHECK(engine.emit_to_others<on::step>(told, current_subscriber, notes, nobody) ==
        frugal::flow::proceed);
  CHECK(notes.lines == std::vector<std::string>{"Alpha", "Delta", "Many1", "Many2"});
  told = {"Many.1", "Alpha", "Somebody who has gone"};
  notes.lines.clear();
  static_cast<void>(engine.emit_to_others<on::step>(told, current_subscriber, notes, nobody));
  CHECK(notes.lines == std::vector<std::string>{"Delta", "Many1"});
  CHECK(All::names_of_first(3) == std::vector<std::string>{"Alpha", "Delta", "Many"});
}

}  // namespace frugal_test::compose_services

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/engine.hpp>
#include <frugal/core/compose/outcome.hpp>

#include "stand_ins.hpp"

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace frugal_test::compose_engine {

using namespace frugal_test::compose;
namespace on = frugal::on;
namespace around = frugal::around;

using Lines = std::vector<std::string>;

TEST_CASE("an event reaches every subscriber in the computed order") {
  values_of<Teller<alpha>, Teller<beta>, Teller<gamma>> const values;
  engine_for<list<>, Teller<gamma>, Teller<alpha>, Teller<beta>> engine(values);
  Notes notes;
  engine.emit<on::step>(notes);
  CHECK(notes.lines == Lines{"Alpha", "Beta", "Gamma"});
}

TEST_CASE("a stop request does not short-circuit, and each policy that asks is named") {
  values_of<Teller<alpha, 0, true>, Teller<beta>, Teller<gamma, 0, true>> const values;
  engine_for<list<>, Teller<alpha, 0, true>, Teller<beta>, Teller<gamma, 0, true>> engine(values);
  Notes notes;
  Lines stoppers;
  flow const verdict =
      engine.emit<on::step>(notes, [&](std::string_view kind) { stoppers.emplace_back(kind); });
  CHECK(verdict == flow::stop);
  CHECK(notes.lines == Lines{"Alpha", "Beta", "Gamma"});
  CHECK(stoppers == Lines{"Alpha", "Gamma"});
}

TEST_CASE("without a stop request the verdict is to proceed and none is named") {
  values_of<Teller<alpha>> const values;
  engine_for<list<>, Teller<alpha>> engine(values);
  Notes notes;
  int named = 0;
  CHECK(engine.emit<on::step>(notes, [&](std::string_view) { ++named; }) == flow::proceed);
  CHECK(named == 0);
}

TEST_CASE("an event without subscribers calls nothing and proceeds") {
  values_of<Teller<alpha>> const values;
  engine_for<list<>, Teller<alpha>> engine(values);
  Notes notes;
  CHECK(engine.emit<on::epoch_end>(notes, [](std::string_view) {}) == flow::proceed);
  CHECK(notes.lines.empty());
}

TEST_CASE("subscribers are known at compile time") {
  using E = engine_for<list<gear>, Teller<alpha>, Teller<beta>>;
  CHECK(E::subscriber_count<on::step> == 2);
  CHECK(E::has_subscribers<on::step>);
  CHECK(E::subscriber_count<on::loss> == 0);
  CHECK_FALSE(E::has_subscribers<on::loss>);
}

// A phase without a definition: code that used it would not compile.
struct Undefined;
Undefined& undefined_phase();

TEST_CASE("an event without subscribers does not use its phase: an incomplete type will do") {
  values_of<Teller<alpha>> const values;
  engine_for<list<>, Teller<alpha>> engine(values);
  CHECK(engine.emit<on::loss>(undefined_phase(), [](std::string_view) {}) == flow::proceed);
  CHECK(engine.surround<around::forward>(undefined_phase(), [] { return 4; }) == 4);
}

struct Undefined {};
Undefined& undefined_phase() {
  static Undefined phase;
  return phase;
}

// Around-hooks.
template <class Kind, int Mark = 0>
struct Guard {
  using kind = Kind;
  using listens = list<around::forward>;
  template <class>
  struct State {
    explicit State(Guard const&) {}
    template <class Next>
    int around_forward(Notes& notes, Next&& next) {
      struct Leave {
        Notes& notes;
        ~Leave() { notes.lines.push_back("leave " + std::string(Kind::name)); }
      } const leave{notes};
      notes.lines.push_back("enter " + std::string(Kind::name));
      return 10 * next() + Mark;
    }
  };
};

TEST_CASE("guards nest in the computed order, the first outermost, and return through each other") {
  values_of<Guard<alpha, 1>, Guard<beta, 2>, Guard<gamma, 3>> const values;
  engine_for<list<>, Guard<gamma, 3>, Guard<beta, 2>, Guard<alpha, 1>> engine(values);
  Notes notes;
  int const result = engine.surround<around::forward>(notes, [&] {
    notes.lines.emplace_back("body");
    return 7;
  });
  CHECK(result == 7321);
  CHECK(notes.lines == Lines{"enter Alpha", "enter Beta", "enter Gamma", "body", "leave Gamma",
                             "leave Beta", "leave Alpha"});
}

TEST_CASE("an exception of the body leaves every guard, innermost first") {
  values_of<Guard<alpha>, Guard<beta>> const values;
  engine_for<list<>, Guard<alpha>, Guard<beta>> engine(values);
  Notes notes;
  CHECK_THROWS_WITH_AS(
      engine.surround<around::forward>(notes, []() -> int { throw std::runtime_error("inside"); }),
      "inside", std::runtime_error);
  CHECK(notes.lines == Lines{"enter Alpha", "enter Beta", "leave Beta", "leave Alpha"});
}

TEST_CASE("without guards surround is its body, and keeps the type of its result") {
  values_of<Teller<alpha>> const values;
  engine_for<list<>, Teller<alpha>> engine(values);
  Notes notes;
  int number = 3;
  decltype(auto) same = engine.surround<around::forward>(notes, [&]() -> int& { return number; });
  static_assert(std::is_same_v<decltype(same), int&>);
  CHECK(&same == &number);
}

struct Thrower {
  using kind = beta;
  using listens = list<on::step>;
  template <class>
  struct State {
    explicit State(Thrower const&) {}
    void on_step(Notes&) { throw std::runtime_error("no"); }
  };
};

TEST_CASE("an exception of a subscriber reaches the caller, and later subscribers are not called") {
  values_of<Teller<alpha>, Thrower, Teller<gamma>> const values;
  engine_for<list<>, Teller<alpha>, Thrower, Teller<gamma>> engine(values);
  Notes notes;
  CHECK_THROWS_WITH_AS(engine.emit<on::step>(notes), "no", std::runtime_error);
  CHECK(notes.lines == Lines{"Alpha"});
}

/// Interrupts its event.
template <class Kind>
struct Breaker {
  using kind = Kind;
  using listens = list<on::step>;
  template <class>
  struct State {
    explicit State(Breaker const&) {}
    void on_step(Notes&) { throw frugal::Interrupted{}; }
  };
};

TEST_CASE("an interrupted event is completed for the subscribers that have not finished it") {
  auto const nobody = [](std::string_view) {};
  std::vector<std::string> told;
  std::size_t current_subscriber = 9;
  Notes notes;
  {
    values_of<Teller<alpha>, Breaker<beta>, Teller<gamma>> const values;
    engine_for<list<>, Teller<alpha>, Breaker<beta>, Teller<gamma>> engine(values);
    CHECK_THROWS_AS(
        static_cast<void>(engine.emit_to_others<on::step>(told, current_subscriber, notes, nobody)),
        frugal::Interrupted);
  }
  CHECK(told == Lines{"Alpha"});
  CHECK(current_subscriber == 1);
  // Interrupted again, in another order: subscribers that completed the event are not forgotten.
  told.emplace_back("Delta");
  {
    values_of<Teller<alpha>, Breaker<beta>, Teller<delta>> const values;
    engine_for<list<>, Teller<alpha>, Breaker<beta>, Teller<delta>> engine(values);
    CHECK_THROWS_AS(
        static_cast<void>(engine.emit_to_others<on::step>(told, current_subscriber, notes, nobody)),
        frugal::Interrupted);
  }
  CHECK(told == Lines{"Alpha", "Delta"});
  // The recipe has lost one of them and gained another.
  values_of<Teller<beta>, Teller<delta>, Teller<epsilon>> const values;
  engine_for<list<>, Teller<beta>, Teller<delta>, Teller<epsilon>> engine(values);
  static_cast<void>(engine.emit_to_others<on::step>(told, current_subscriber, notes, nobody));
  CHECK(notes.lines == Lines{"Alpha", "Beta", "Epsilon"});
}

// Persistence.
struct Archive {
  static constexpr bool loading = false;
  std::map<std::string, int> values{};
  std::vector<std::string> scopes{};
  std::string path{};

  template <class T>
  void operator()(std::string const& name, T& value) {
    values[path + name] = static_cast<int>(value);
  }
  template <class F>
  void scope(std::string const& name, F&& body) {
    scopes.push_back(name);
    std::string const outer = path;
    path += name + "/";
    body(*this);
    path = outer;
  }
};

template <class Kind, int Mark = 0>
struct Keeper {
  using kind = Kind;
  using listens = list<on::step>;
  int begin = Mark;
  template <class>
  struct State {
    int value;
    explicit State(Keeper const& settings) : value(settings.begin) {}
    State(State const&) = delete;
    State& operator=(State const&) = delete;
    void on_step(Notes&) { ++value; }
    template <class A>
    void persist(A& archive) {
      archive("value", value);
    }
  };
};
template <class Kind>
struct Forgetful {
  using kind = Kind;
  using listens = list<on::step>;
  template <class>
  struct State {
    using transient = void;
    int value = 0;
    explicit State(Forgetful const&) {}
    void on_step(Notes&) {}
  };
};

TEST_CASE("states are saved in scopes named after their kinds, repeated ones with a number") {
  values_of<Keeper<alpha, 1>, Keeper<many, 2>, Keeper<many, 3>, Keeper<many, 4>> const values;
  engine_for<list<>, Keeper<many, 2>, Keeper<alpha, 1>, Keeper<many, 3>, Keeper<many, 4>> engine(
      values);
  Archive archive;
  engine.persist(archive);
  CHECK(archive.scopes == Lines{"Alpha", "Many", "Many.1", "Many.2"});
  CHECK(archive.values ==
        std::map<std::string, int>{
            {"Alpha/value", 1}, {"Many/value", 2}, {"Many.1/value", 3}, {"Many.2/value", 4}});
}

TEST_CASE("a state without data opens no scope") {
  values_of<Keeper<alpha>, Forgetful<beta>, Teller<gamma>, Setting<gear>> const values;
  engine_for<list<gear>, Keeper<alpha>, Forgetful<beta>, Teller<gamma>> engine(values);
  Archive archive;
  engine.persist(archive);
  CHECK(archive.scopes == Lines{"Alpha"});
}

template <class Kind>
struct Shower : Keeper<Kind> {
  template <class Context>
  struct State : Keeper<Kind>::template State<Context> {
    using dispensable = void;
    using Keeper<Kind>::template State<Context>::State;
  };
};

TEST_CASE("the scopes of what is saved are known by name, and each can be saved alone") {
  values_of<Keeper<alpha, 1>, Forgetful<beta>, Shower<gamma>, Keeper<many, 2>,
            Keeper<many, 3>> const values;
  using Engine = engine_for<list<>, Keeper<alpha, 1>, Forgetful<beta>, Shower<gamma>,
                            Keeper<many, 2>, Keeper<many, 3>>;
  Lines names;
  for (auto const& scope : Engine::saved_scopes()) {
    names.push_back(scope.name);
    CHECK(scope.dispensable == (scope.name == "Gamma"));
  }
  CHECK(names == Lines{"Alpha", "Gamma", "Many", "Many.1"});
  Engine engine(values);
  Archive archive;
  engine.persist(archive, /*slots_alone=*/false, "Many.1");
  CHECK(archive.values == std::map<std::string, int>{{"Many.1/value", 3}});
}

TEST_CASE("a state that cannot be moved is made in place from its policy's value") {
  values_of<Keeper<alpha, 1>, Keeper<beta, 2>> values;
  frugal::detail::get<1>(values).begin = 20;
  engine_for<list<>, Keeper<alpha, 1>, Keeper<beta, 2>> engine(values);
  CHECK(engine.state<alpha>().value == 1);
  CHECK(engine.state<beta>().value == 20);
  CHECK_FALSE(std::is_copy_constructible_v<decltype(engine)>);
}

TEST_CASE("state<Kind> is the state itself, of a repeatable kind the first") {
  values_of<Keeper<alpha, 1>, Keeper<many, 2>, Keeper<many, 3>> const values;
  engine_for<list<>, Keeper<many, 2>, Keeper<alpha, 1>, Keeper<many, 3>> engine(values);
  Notes notes;
  engine.emit<on::step>(notes);
  CHECK(engine.state<alpha>().value == 2);
  CHECK(engine.state<many>().value == 3);
}

TEST_CASE("subscribers that return nothing never stop a run") {
  values_of<Keeper<alpha>, Teller<beta, 0, true>> const values;
  engine_for<list<>, Keeper<alpha>, Teller<beta, 0, true>> engine(values);
  Notes notes;
  Lines stoppers;
  static_cast<void>(
      engine.emit<on::step>(notes, [&](std::string_view kind) { stoppers.emplace_back(kind); }));
  CHECK(stoppers == Lines{"Beta"});
  CHECK(engine.state<alpha>().value == 1);
}

}  // namespace frugal_test::compose_engine

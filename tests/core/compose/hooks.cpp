// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/hooks.hpp>

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace frugal_test::compose_hooks {

using frugal::flow;
using frugal::HookForm;
using frugal::list;
namespace on = frugal::on;
namespace around = frugal::around;
namespace query = frugal::query;

struct Plain {
  void on_step(int&) {}
};
struct Without {
  void on_stpe(int&) {}
};
struct Template {
  template <class Phase>
  void on_step(Phase&) {}
};
struct Overloaded {
  void on_step(int&) {}
  void on_step(double&) {}
};
struct Hidden {
 private:
  [[maybe_unused]] void on_step(int&) {}
};
struct Base {
  void on_step(int&) {}
};
struct OtherBase {
  void on_step(int&) {}
};
struct Inherited : Base {};
struct PrivatelyInherited : private Base {};
struct VirtuallyInherited : virtual Base {};
struct TwiceInherited : Base, OtherBase {};
struct Static {
  static void on_step(int&) {}
};
struct Constant {
  void on_step(int const&) const {}
};
struct Number {
  int on_step = 0;
};
struct FunctionObject {
  struct Call {
    void operator()(int&) const {}
  } on_step;
};
struct Nested {
  struct on_step {};
};
struct Abstract {
  virtual void on_loss() = 0;
  virtual ~Abstract() = default;
};
struct NeedsArguments {
  explicit NeedsArguments(int) {}
  NeedsArguments(NeedsArguments const&) = delete;
  void on_step(int&) {}
};
struct WrongArguments {
  void on_step() {}
};

template <class State>
constexpr bool named = on::step::named<State>;
template <class State>
constexpr bool callable = on::step::callable<State, int>;

TEST_CASE("a member is found whatever its form: plain, template, overloaded, static, const") {
  CHECK((named<Plain> && callable<Plain>));
  CHECK((named<Template> && callable<Template>));
  CHECK((named<Overloaded> && callable<Overloaded>));
  CHECK((named<Static> && callable<Static>));
  CHECK((named<Constant> && callable<Constant>));
}

TEST_CASE("an inherited member counts, also from a virtual base") {
  CHECK((named<Inherited> && callable<Inherited>));
  CHECK((named<VirtuallyInherited> && callable<VirtuallyInherited>));
}

TEST_CASE("a private, ambiguous or mistyped member is found and cannot be called") {
  CHECK((named<Hidden> && !callable<Hidden>));
  CHECK((named<PrivatelyInherited> && !callable<PrivatelyInherited>));
  CHECK((named<TwiceInherited> && !callable<TwiceInherited>));
  CHECK((named<WrongArguments> && !callable<WrongArguments>));
}

TEST_CASE("members that are not functions are found, and called if possible") {
  CHECK((named<Number> && !callable<Number>));
  CHECK((named<Nested> && !callable<Nested>));
  CHECK((named<FunctionObject> && callable<FunctionObject>));
}

TEST_CASE("absent members are not found, however similar their names") {
  CHECK_FALSE(named<Without>);
  CHECK_FALSE(on::loss::named<Plain>);
  CHECK_FALSE(on::epoch_end::named<Plain>);
  CHECK(on::loss::named<Abstract>);
  CHECK_FALSE(named<Abstract>);
}

TEST_CASE("a state that can be neither copied nor default-constructed is still inspected") {
  CHECK((named<NeedsArguments> && callable<NeedsArguments>));
}

TEST_CASE("every hook has its own index, its position in the list of all hooks") {
  auto const indices = []<class... Hooks>(list<Hooks...>) {
    return std::array{Hooks::index...};
  }(frugal::all_hooks{});
  for (std::size_t i = 0; i < indices.size(); ++i) CHECK(indices[i] == i);
  CHECK(indices.size() == 23);
}

TEST_CASE("hooks are named after their members") {
  CHECK(on::fit_begin::name == "on_fit_begin");
  CHECK(around::forward::name == "around_forward");
}

TEST_CASE(
    "a run may be stopped when it begins, before windows, after steps, epochs and validations "
    "only") {
  CHECK(on::fit_begin::may_stop);
  CHECK(on::window::may_stop);
  CHECK(on::step::may_stop);
  CHECK(on::validated::may_stop);
  CHECK(on::epoch_end::may_stop);
  int count = 0;
  []<class... Hooks>(list<Hooks...>, int& sum) { ((sum += Hooks::may_stop), ...); }(
      frugal::all_hooks{}, count);
  CHECK(count == 5);
}

TEST_CASE("the form of a hook is its namespace") {
  CHECK(on::step::form == HookForm::on);
  CHECK(around::forward::form == HookForm::around);
  CHECK(query::stop_requested::form == HookForm::query);
  int around = 0;
  []<class... Hooks>(list<Hooks...>, int& sum) { ((sum += Hooks::form == HookForm::around), ...); }(
      frugal::all_hooks{}, around);
  CHECK(around == 5);
}

static_assert(std::is_same_v<on::step::phase, frugal::Step>);
static_assert(std::is_same_v<query::stop_requested::phase, frugal::Phase>);
static_assert(std::is_same_v<std::invoke_result_t<around::fit::continuation>, void> &&
              std::is_same_v<decltype(&around::forward::continuation::operator()),
                             frugal::Loss (around::forward::continuation::*)() const>);

TEST_CASE("verdicts combine to stop if any says stop") {
  CHECK((flow::proceed | flow::proceed) == flow::proceed);
  CHECK((flow::proceed | flow::stop) == flow::stop);
  CHECK((flow::stop | flow::proceed) == flow::stop);
  flow verdict = flow::stop;
  verdict |= flow::proceed;
  CHECK(verdict == flow::stop);
}

}  // namespace frugal_test::compose_hooks

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/core/compose/hooks.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/state_of.hpp>

namespace frugal_test::compose_near_hooks {

using frugal::list;
using frugal::detail::has_near_hook;
using frugal::detail::near_hooks;

struct Exact {
  void on_step(int&) {}
  void on_validated(int&) {}
  bool stop_requested(int const&) const { return false; }
  void steps() {}
};
struct Near {
  void on_step(int&) {}
  void on_validate(int&) {}
};
struct Template {
  template <class Phase>
  void on_train_end(Phase&) {}
};
struct Hidden {
 private:
  [[maybe_unused]] void on_begin() {}
};
struct Inherited : Near {};
struct NeedsArguments {
  explicit NeedsArguments(int) {}
  NeedsArguments(NeedsArguments const&) = delete;
};

TEST_CASE("a State with a name close to a hook's is found, whatever the member's form") {
  CHECK(has_near_hook<Near>);
  CHECK(has_near_hook<Template>);
  CHECK(has_near_hook<Hidden>);
  CHECK(has_near_hook<Inherited>);
}

TEST_CASE("hooks and other members are not close to a hook's name") {
  CHECK_FALSE(has_near_hook<Exact>);
  CHECK_FALSE(has_near_hook<NeedsArguments>);
}

TEST_CASE("each name is found by itself, and none is a hook") {
  int found = 0;
  []<class... Each>(list<Each...>, int& sum) {
    using Probe = frugal::detail::name_probe<Near, frugal::detail::near_hook_names>;
    ((sum += Each::template named<Probe>), ...);
  }(near_hooks{}, found);
  CHECK(found == 1);  // on_validate alone
  int hooks = 0;
  []<class... Hooks>(list<Hooks...>, int& sum) {
    using Names = frugal::detail::near_hook_names;
    ((sum += Hooks::template named<Names>), ...);
  }(frugal::all_hooks{}, hooks);
  CHECK(hooks == 0);
}

}  // namespace frugal_test::compose_near_hooks

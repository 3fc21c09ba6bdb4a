// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <string_view>

#include <frugal/core/compose/legality.hpp>
#include <frugal/core/compose/policy.hpp>

#include "stand_ins.hpp"

namespace frugal_test::compose_policy {

using namespace frugal_test::compose;
using frugal::Policy;
using frugal::detail::info_of;

struct NoKind {
  using listens = list<>;
};
struct NoListens {
  using kind = alpha;
};
struct OfNoKind {
  using kind = int;
  using listens = list<>;
};
struct NotDefault {
  using kind = alpha;
  using listens = list<>;
  explicit NotDefault(int) {}
};
struct NotCopyable {
  using kind = alpha;
  using listens = list<>;
  NotCopyable() = default;
  NotCopyable(NotCopyable const&) = delete;
};
struct HookForList {
  using kind = alpha;
  using listens = frugal::on::step;
};

TEST_CASE("a policy is a copyable, default-constructible type with a kind and a list of hooks") {
  CHECK(Policy<Setting<alpha>>);
  CHECK(Policy<Teller<many>>);
  CHECK_FALSE(Policy<int>);
  CHECK_FALSE(Policy<NoKind>);
  CHECK_FALSE(Policy<NoListens>);
  CHECK_FALSE(Policy<OfNoKind>);
  CHECK_FALSE(Policy<NotDefault>);
  CHECK_FALSE(Policy<NotCopyable>);
}

TEST_CASE("hooks that are not a list make no policy, since none would be called") {
  CHECK_FALSE(Policy<HookForList>);
}

FRUGAL_DIAGNOSTIC(own_need, "frugal: own words of a need.");
FRUGAL_DIAGNOSTIC(own_conflict, "frugal: own words of a conflict.");

struct Full {
  using kind = many;
  using listens = list<frugal::on::fit_begin, frugal::on::fit_end>;
  using needs = list<alpha, frugal::need<gear, own_need>>;
  using conflicts = list<frugal::conflict<beta, own_conflict>, gamma>;
  using before = list<delta>;
  using after = list<epsilon, alpha>;
};

TEST_CASE("an info has the declarations of the policy's type") {
  constexpr auto const& info = info_of<Full>;
  CHECK(info.kind == "Many");
  CHECK_FALSE(info.slot);
  CHECK(info.repeatable);
  CHECK_FALSE(info.null);
  CHECK(info.listens ==
        ((1U << frugal::on::fit_begin::index) | (1U << frugal::on::fit_end::index)));
  REQUIRE(info.before.size() == 1);
  CHECK(info.before[0].kind == "Delta");
  REQUIRE(info.after.size() == 2);
  CHECK(info.after[0].kind == "Epsilon");
  CHECK(info.after[1].kind == "Alpha");
}

TEST_CASE("an edge has the policy's own sentence, or the general one") {
  constexpr auto const& info = info_of<Full>;
  REQUIRE(info.needs.size() == 2);
  CHECK(info.needs[0].kind == "Alpha");
  CHECK(info.needs[0].sentence == frugal::rules::missing_need::text);
  CHECK_FALSE(info.needs[0].slot);
  CHECK(info.needs[1].kind == "Gear");
  CHECK(info.needs[1].sentence == own_need::text);
  CHECK(info.needs[1].slot);
  REQUIRE(info.conflicts.size() == 2);
  CHECK(info.conflicts[0].sentence == own_conflict::text);
  CHECK(info.conflicts[1].sentence == frugal::rules::conflicting::text);
}

TEST_CASE("a policy without edges has empty ones") {
  constexpr auto const& info = info_of<Setting<alpha>>;
  CHECK(info.listens == 0);
  CHECK(info.needs.empty());
  CHECK(info.conflicts.empty());
  CHECK(info.before.empty());
  CHECK(info.after.empty());
}

TEST_CASE("a null is the default of its slot and no other policy of it") {
  CHECK(info_of<Setting<gear>>.null);
  CHECK_FALSE(info_of<Setting<gear, 1>>.null);
  CHECK_FALSE(info_of<Setting<alpha>>.null);
}

struct ListensToNoHook {
  using kind = alpha;
  struct my_event {};
  using listens = list<my_event, frugal::on::step>;
};

TEST_CASE("a type that is not a hook has no bit in an info, and real hooks keep theirs") {
  CHECK(info_of<ListensToNoHook>.listens == (1U << frugal::on::step::index));
}

}  // namespace frugal_test::compose_policy

namespace frugal_test::compose_kind {

using frugal::Kind;

struct Nameless : frugal::slot_kind {};
struct Natureless {
  static constexpr std::string_view name = "Natureless";
};
struct Numbered : frugal::optional_kind {
  static constexpr int name = 3;
};

TEST_CASE("a kind has a name and a nature") {
  CHECK(Kind<compose::alpha>);
  CHECK(Kind<compose::many>);
  CHECK(Kind<compose::gear>);
  CHECK_FALSE(Kind<Nameless>);
  CHECK_FALSE(Kind<Natureless>);
  CHECK_FALSE(Kind<Numbered>);
  CHECK_FALSE(Kind<int>);
}

TEST_CASE("only slots are always filled and only repeatable kinds may occur twice") {
  CHECK(compose::gear::slot);
  CHECK_FALSE(compose::gear::repeatable);
  CHECK_FALSE(compose::alpha::slot);
  CHECK_FALSE(compose::alpha::repeatable);
  CHECK_FALSE(compose::many::slot);
  CHECK(compose::many::repeatable);
}

}  // namespace frugal_test::compose_kind

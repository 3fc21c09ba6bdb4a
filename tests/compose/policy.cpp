// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/compose/legality.hpp>

#include "stand_ins.hpp"

#include <string_view>

namespace frugal_test::compose_policy {

using namespace frugal_test::compose;
using frugal::Policy;
using frugal::detail::card_of;

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

TEST_CASE("hooks that are no list are no policy's, since nobody would be told of them") {
  CHECK_FALSE(Policy<HookForList>);
}

FRUGAL_SENTENCE(own_need, "frugal: own words of a need.");
FRUGAL_SENTENCE(own_conflict, "frugal: own words of a conflict.");

struct Full {
  using kind = many;
  using listens = list<frugal::on::fit_begin, frugal::on::fit_end>;
  using needs = list<alpha, frugal::need<gear, own_need>>;
  using conflicts = list<frugal::conflict<beta, own_conflict>, gamma>;
  using before = list<delta>;
  using after = list<epsilon, alpha>;
};

TEST_CASE("a card says of a policy what its type says") {
  constexpr auto const& card = card_of<Full>;
  CHECK(card.kind == "Many");
  CHECK_FALSE(card.slot);
  CHECK(card.repeatable);
  CHECK_FALSE(card.null);
  CHECK(card.listens ==
        ((1U << frugal::on::fit_begin::index) | (1U << frugal::on::fit_end::index)));
  REQUIRE(card.before.size() == 1);
  CHECK(card.before[0].kind == "Delta");
  REQUIRE(card.after.size() == 2);
  CHECK(card.after[0].kind == "Epsilon");
  CHECK(card.after[1].kind == "Alpha");
}

TEST_CASE("an edge has the policy's own sentence, or the general one where it brings none") {
  constexpr auto const& card = card_of<Full>;
  REQUIRE(card.needs.size() == 2);
  CHECK(card.needs[0].kind == "Alpha");
  CHECK(card.needs[0].sentence == frugal::rules::missing_need::text);
  CHECK_FALSE(card.needs[0].slot);
  CHECK(card.needs[1].kind == "Gear");
  CHECK(card.needs[1].sentence == own_need::text);
  CHECK(card.needs[1].slot);
  REQUIRE(card.conflicts.size() == 2);
  CHECK(card.conflicts[0].sentence == own_conflict::text);
  CHECK(card.conflicts[1].sentence == frugal::rules::conflicting::text);
}

TEST_CASE("a policy without edges has empty ones") {
  constexpr auto const& card = card_of<Setting<alpha>>;
  CHECK(card.listens == 0);
  CHECK(card.needs.empty());
  CHECK(card.conflicts.empty());
  CHECK(card.before.empty());
  CHECK(card.after.empty());
}

TEST_CASE("a null is the default of its slot and no other policy of it") {
  CHECK(card_of<Setting<gear>>.null);
  CHECK_FALSE(card_of<Setting<gear, 1>>.null);
  CHECK_FALSE(card_of<Setting<alpha>>.null);
}

struct ListensToNoHook {
  using kind = alpha;
  struct my_event {};
  using listens = list<my_event, frugal::on::step>;
};

TEST_CASE("what is no hook has no bit in a card, and the hooks beside it keep theirs") {
  CHECK(card_of<ListensToNoHook>.listens == (1U << frugal::on::step::index));
}

}  // namespace frugal_test::compose_policy

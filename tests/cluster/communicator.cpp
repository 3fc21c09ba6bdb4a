// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/agreement/same_run.hpp>
#include <frugal/cluster/agreement/window_message.hpp>
#include <frugal/cluster/communicator.hpp>

#include "support/ranks.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <locale>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::cluster_communicator {

using frugal::ClusterError;
using frugal::Communicator;
namespace ranks = support::ranks;

TEST_CASE("four ranks gather, exchange, collect and add up") {
  std::vector<int> right(4, 0);  // a rank is a thread: the bits of a vector<bool> share a byte
  auto const errors = ranks::run(4, [&](std::shared_ptr<Communicator> const& all) {
    std::int64_t const rank = all->rank();
    at::Tensor const rows = all->gather(at::full({2, 3}, rank, at::kLong), "rows");
    bool ok = rows.equal(at::arange(4).view({4, 1, 1}).expand({4, 2, 3}));

    at::Tensor mine = at::arange(8, at::kFloat) + 10.0 * static_cast<double>(rank);
    at::Tensor parts = at::empty({8});
    all->exchange(parts, mine, "parts");
    at::Tensor const own = at::arange(2 * rank, 2 * rank + 2, at::kFloat);
    ok = ok && parts.view({4, 2}).equal(at::arange(4, at::kFloat).view({4, 1}) * 10 + own);

    at::Tensor one = at::full({2}, static_cast<double>(rank)), everyone = at::empty({8});
    all->collect(everyone, one, "numbers");
    ok = ok && everyone.view({4, 2}).equal(at::arange(4, at::kFloat).view({4, 1}).expand({4, 2}));

    at::Tensor sum = at::full({3}, static_cast<double>(rank + 1));
    all->complete(all->start_sum(sum), "a sum");
    ok = ok && sum.equal(at::full({3}, 10.0));
    right[static_cast<std::size_t>(rank)] = ok && all->hosts().size() == 4;
  });
  CHECK(ranks::none(errors));
  CHECK(right == std::vector<int>(4, 1));
}

TEST_CASE("ranks that leave as soon as they have come do not disturb those that still connect") {
  for (int round = 0; round < 10; ++round) {
    auto const errors = ranks::run(5, [](std::shared_ptr<Communicator> const&) {});
    CAPTURE(errors.front());
    CHECK(ranks::none(errors));
  }
}

TEST_CASE("messages of any size come back to the byte, and texts too") {
  auto const errors = ranks::run(3, [&](std::shared_ptr<Communicator> const& all) {
    constexpr std::int64_t room = frugal::detail::ControlFrame::room();
    for (std::int64_t const size :
         std::vector<std::int64_t>{0, 1, room - 1, room, room + 1, 5000}) {
      at::Tensor const expected = (at::arange(3 * size).view({3, size}) % 251).to(at::kByte);
      at::Tensor const rows = all->gather(expected[all->rank()], "bytes");
      if (!rows.equal(expected)) throw std::runtime_error(std::to_string(size) + " bytes");
    }
    for (std::int64_t const most : std::vector<std::int64_t>{0, 3, room - 9, room - 8, 3000}) {
      auto const length = static_cast<std::size_t>(most);
      // Of another length in each.
      auto const text = [&](int rank) {
        return std::string(length * static_cast<std::size_t>(rank), 'a') + std::to_string(rank);
      };
      auto const texts = frugal::detail::gather_texts(*all, text(all->rank()), "texts");
      for (int rank = 0; rank < 3; ++rank) {
        if (texts[static_cast<std::size_t>(rank)] != text(rank))
          throw std::runtime_error(std::to_string(length) + " letters");
      }
    }
  });
  CAPTURE(errors.front());
  CHECK(ranks::none(errors));
}

TEST_CASE("ranks at different exchanges are told so, all of them, with both places") {
  auto const errors_of = [](auto const& one, auto const& other) {
    return ranks::run(3, [&](std::shared_ptr<Communicator> const& all) {
      all->rank() == 2 ? one(*all) : other(*all);
    });
  };
  auto const message = [](std::int64_t numbers, char const* what) {
    return [=](Communicator& all) {
      static_cast<void>(all.gather(at::zeros({numbers}, at::kLong), what));
    };
  };
  auto const check = [](std::vector<std::string> const& errors, std::string const& expected) {
    for (std::string const& error : errors) {
      CAPTURE(error);
      CHECK(error.find("the processes are at different places of the run: " + expected) !=
            std::string::npos);
    }
  };
  check(errors_of(message(1, "a save"), message(1, "a verdict")),
        "rank 2 is in a save, and rank 0 in a verdict (epoch 0, position 0, step 0)");
  // Gloo ends the process for these.
  check(errors_of(message(2, "a verdict"), message(700, "a verdict")),
        "rank 2 sends 16 bytes, and rank 0 5600 for a verdict");
  check(errors_of(
            [&](Communicator& all) {
              all.set_place({.epoch = 1, .position = 64, .step = 9});
              message(1, "a verdict")(all);
            },
            message(1, "a verdict")),
        "rank 2 is at epoch 1, position 64, step 9 in a verdict, and rank 0 at epoch 0, position "
        "0, step 0 in a verdict");
}

TEST_CASE("what two ranks exchange under one name and of one size is told from other things") {
  using Frame = frugal::detail::ControlFrame;
  auto const head = [](std::string const& what, at::Tensor const& message, std::uint64_t tensors) {
    return Frame::head(what, 3, message, {}, tensors);
  };
  auto const difference = [](Frame::Head const& other, Frame::Head const& mine) {
    return Frame::difference(other, "rank 1", mine, "rank 0");
  };
  at::Tensor const six = at::zeros({2, 3});
  std::string const name = "a message whose name is longer than the room for it";
  Frame::Head const mine = head(name, six, 4);
  CHECK(difference(head(name, six.clone(), 4), mine).empty());
  CHECK(difference(head(name + " here", six, 4), mine) ==
        "rank 1 is in another exchange, and rank 0 in one whose name begins with a message whose "
        "name is longer  (epoch 0, position 0, step 0)");
  std::string const other_kind =
      "rank 1 sends a tensor of another type or shape, and rank 0 one of as many bytes for ";
  CHECK(difference(head(name, six.view({3, 2}), 4), mine).starts_with(other_kind));
  CHECK(difference(head(name, six.to(at::kInt), 4), mine).starts_with(other_kind));
  CHECK(difference(head(name, six, 5), mine)
            .starts_with("rank 1 has begun 5 exchanges of tensors, and rank 0 4 before "));
}

TEST_CASE("ranks that have begun different numbers of sums are told so before they add up others") {
  auto const errors = ranks::run(3, [&](std::shared_ptr<Communicator> const& all) {
    at::Tensor sum = at::ones({3}), more = at::ones({3});
    all->complete(all->start_sum(sum), "a sum");
    static_cast<void>(all->gather(at::ones({1}), "the losses of a step", /*after_tensors=*/true));
    // It never comes about, and a message goes another way.
    auto const work = all->rank() == 2 ? all->start_sum(more) : nullptr;
    static_cast<void>(all->gather(at::ones({1}), "a message at another place"));
    static_cast<void>(all->gather(at::ones({1}), "the losses of a step", /*after_tensors=*/true));
  });
  for (std::string const& error : errors) {
    CAPTURE(error);
    CHECK(error.find("rank 2 has begun 2 exchanges of tensors, and rank 0 1 before the losses of a "
                     "step (epoch 0, position 0, step 0)") != std::string::npos);
  }
}

TEST_CASE("ranks that would send messages in frames of different sizes are told so") {
  auto const errors = ranks::run(3, [&](std::shared_ptr<Communicator> const& all) {
    all->set_message_room(5000);
    at::Tensor const rows = all->gather(at::full({600}, all->rank(), at::kLong), "numbers");
    if (!rows.select(1, 599).equal(at::arange(3))) throw std::runtime_error("wrong numbers");
    all->reset_message_room();
    all->set_message_room(all->rank() == 1 ? 4000 : 5000);
  });
  for (std::string const& error : errors) {
    CAPTURE(error);
    CHECK(error.find("rank 1 sends up to 4000 bytes in a message, and rank 0 5000") !=
          std::string::npos);
  }
}

TEST_CASE("a group keeps what it needs of its world, and has each of its ranks once") {
  std::vector<std::int64_t> sums(3);
  auto const errors = ranks::run(3, [&](std::shared_ptr<Communicator>& all) {
    int const rank = all->rank();
    for (std::vector<int> const& bad :
         std::vector<std::vector<int>>{{}, {rank, rank}, {rank, 3}, {-1, rank}, {(rank + 1) % 3}}) {
      CHECK_THROWS_AS(all->group(bad, "bad"), frugal::SettingsError);
    }
    // The second one of a name has its own connections.
    for (int i = 0; i < 2; ++i) {
      auto const group = all->group({0, 1, 2}, "same name");
      CHECK(group->gather(at::ones({1}), "ones").sum().item<double>() == 3);
    }
    auto const group = all->group({2, 1, 0}, "turned");
    all.reset();
    // Its first tensor connects: it waits in the store, and looks for ranks that have ended.
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    at::Tensor sum = at::full({1}, rank + 1, at::kLong);
    group->complete(group->start_sum(sum), "a sum");
    sums[static_cast<std::size_t>(rank)] = sum.item<std::int64_t>();
  });
  CAPTURE(errors.front());
  CHECK(ranks::none(errors));
  CHECK(sums == std::vector<std::int64_t>(3, 6));
}

/// Digits in groups with a space between, as in France.
struct Spaces : std::numpunct<char> {
  char do_thousands_sep() const override { return ' '; }
  std::string do_grouping() const override { return "\3"; }
};

TEST_CASE("what a rank says of itself does not depend on the program's locale") {
  using frugal::detail::RankPlace;
  std::locale const before = std::locale::global(std::locale(std::locale::classic(), new Spaces));
  frugal::detail::BegunExchanges const begun{
      .look = 1, .messages = 200, .tensors = 300, .awaited = 12345, .what = "a sum"};
  auto const read = frugal::detail::BegunExchanges::parse(begun.text());
  RankPlace const place{.beats = 1, .step = 12345, .exchanges = 300, .what = "a sum"};
  auto const there = RankPlace::parse(place.text());
  std::locale::global(before);
  CHECK(begun.text() == "1 200 300 12345 a sum");
  CHECK(read.text() == begun.text());
  REQUIRE(there);
  CHECK(there->text() == "1 0 0 0 12345 300 0 0 0 0 a sum");
  CHECK_FALSE(RankPlace::parse("1 0 0"));
}

/// A store that does not answer.
struct Silent final : c10d::HashStore {
  using c10d::HashStore::set;
  void set(std::string const&, std::vector<std::uint8_t> const&) override {
    throw std::runtime_error("no answer");
  }
};

TEST_CASE("a look at the others refuses what is not of this run, and waits without an answer") {
  using frugal::detail::BegunExchanges;
  using frugal::detail::BlockedLook;
  using frugal::detail::GuardedStore;
  auto const open = c10::make_intrusive<c10d::HashStore>();
  GuardedStore one(open, "a token of the run"), two(open, "a token of the run");
  BegunExchanges mine{.messages = 4, .tensors = 3, .awaited = 3, .what = "a sum"};
  BegunExchanges other{.look = 1, .messages = 5, .tensors = 2, .what = "a message"};
  BlockedLook looks(std::chrono::milliseconds(0));
  CHECK(looks.is_due());
  two.set("begun/1", other.text());
  CHECK_FALSE(looks.look(one, 0, 2, mine));
  CHECK_FALSE(looks.look(one, 0, 2, mine));  // it has not said so again
  ++other.look;
  two.set("begun/1", other.text());
  auto const found = looks.look(one, 0, 2, mine);
  REQUIRE(found);
  CHECK(found->rank == 1);
  CHECK(found->waits_in == "a message");
  open->set("begun/1", std::vector<std::uint8_t>{'3', ' ', '5'});
  CHECK_THROWS_WITH_AS(looks.look(one, 0, 2, mine), doctest::Contains("is not of this run"),
                       ClusterError);

  BlockedLook later(std::chrono::hours(1));
  Silent silent;
  CHECK_FALSE(later.look(silent, 0, 2, mine));
  CHECK_FALSE(later.is_due());
}

TEST_CASE("a value that is not of this run ends a wait for the others, and all hear of it") {
  auto const store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Communicator all(store, ranks::place(rank, 2), ranks::short_limits);
        all.enter_run();
        if (rank == 1) {
          store->set("none/begun/1", std::vector<std::uint8_t>{'x'});
          for (std::uint64_t i = 0; i < 3000; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            all.at_step(i);
          }
        } else {
          static_cast<void>(all.gather(at::ones({1}), "a message"));
        }
      } catch (std::exception const& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  for (std::string const& error : errors) {
    CAPTURE(error);
    CHECK(error.find(") ends: a value in the store is not of this run ('begun/1', 1 bytes)") !=
          std::string::npos);
  }
}

TEST_CASE("the text of the first rank is awaited, by both ends, until the limit of an exchange") {
  using frugal::detail::FirstWord;
  using frugal::detail::RankWatch;
  auto const store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::string> const hosts{"one", "two"};
  frugal::detail::WatchTimes const quick{.beat = std::chrono::milliseconds(20)};
  RankWatch first(store, 0, hosts, false, quick), second(store, 1, hosts, false, quick);
  std::chrono::milliseconds const limit(400);
  frugal::World const one = ranks::place(0, 2), two = ranks::place(1, 2);
  FirstWord says(*store, first, one, 0, limit), hears(*store, second, two, 0, limit);
  auto const same = [](int rank) { return rank; };
  std::string why;

  std::thread other([&] { says.say("a", "saved", same); });
  auto const heard = hears.hear("a", why);
  CHECK((heard && *heard == "saved"));
  other.join();
  says.say("b", "saved", same);  // nobody reads it
  CHECK((hears.hear("b", why) == std::optional<std::string>("saved")));
  // It beats, and says nothing.
  CHECK_FALSE(hears.hear("c", why));
  CHECK(why == "rank 0 (one) has not said what it has saved for 0 s");
}

TEST_CASE("a rank that waits for a message while the others add up is named, and does not hang") {
  auto const errors = ranks::run(3, [&](std::shared_ptr<Communicator> const& all) {
    all->enter_run();
    at::Tensor sum = at::ones({3});
    all->complete(all->start_sum(sum), "a sum");
    if (all->rank() == 1) static_cast<void>(all->gather(at::ones({1}), "the end of a run"));
    all->complete(all->start_sum(sum), "the sum of gradients");
  });
  for (std::string const& error : errors) {
    CAPTURE(error);
    CHECK(error.find("rank 1 (") != std::string::npos);
    CHECK(error.find(") has not begun the sum of gradients, for which rank ") != std::string::npos);
    CHECK(error.find("and waits for the others in the end of a run: the processes are at different "
                     "places of the run") != std::string::npos);
  }
}

TEST_CASE("a rank that is late, or that waits for the same, blocks nobody") {
  using Begun = frugal::detail::BegunExchanges;
  Begun const adds{.messages = 4, .tensors = 3, .awaited = 3, .what = "a sum"};
  CHECK(adds.blocks({.messages = 5, .tensors = 2, .awaited = 0, .what = "a message"}));
  // It is still on its way to the sum, with the message of this one.
  CHECK_FALSE(adds.blocks({.messages = 4, .tensors = 2, .awaited = 0, .what = "a message"}));
  // It has sent its part of the sum, which the network has not carried yet.
  CHECK_FALSE(adds.blocks({.messages = 5, .tensors = 3, .awaited = 0, .what = "a message"}));
  CHECK_FALSE(adds.blocks({.messages = 5, .tensors = 2, .awaited = 2, .what = "a sum"}));
  CHECK(Begun::parse(adds.text()).text() == adds.text());
  Begun again = adds;
  CHECK_FALSE(again.still(adds));  // it may be from before
  again.look = 1;
  CHECK(again.still(adds));
  again.tensors = 4;
  CHECK_FALSE(again.still(adds));
}

TEST_CASE("ranks that have read other samples in a window are told so") {
  using frugal::detail::WindowMessage;
  using frugal::detail::WindowStamp;
  frugal::PlaceInRun const here{.epoch = 0, .position = 64, .step = 2};
  auto const errors = ranks::run(3, [&](std::shared_ptr<Communicator> const& all) {
    all->set_place(here);
    std::uint64_t const consumed = all->rank() == 1 ? 128 : 96;
    auto const of = [&](std::uint64_t read) {
      return WindowMessage::Part{.stamp = WindowStamp::of(2, here, read)};
    };
    frugal::detail::require_one_window(*all, {of(96), of(96), of(96)}, 96);
    frugal::detail::require_one_window(*all, {of(96), of(128), of(96)}, consumed);
  });
  for (std::string const& error : errors) {
    CAPTURE(error);
    CHECK(error.find("in the window at epoch 0, position 64, step 2, rank 1 has read up to sample "
                     "128 of the epoch, and rank 0 up to 96") != std::string::npos);
  }
}

TEST_CASE("an address of loopback is an error if a rank is on another machine") {
  using frugal::detail::require_reachable;
  std::vector<std::string> const hosts{"a, process 1", "b, process 2"};
  auto const check = [&](std::string const& one, std::string const& other,
                         std::string const& network = "", std::string const& its = "") {
    require_reachable({{one, network}, {other, its}}, hosts, "");
  };
  CHECK_NOTHROW(check("10.0.0.1", "10.0.0.2"));
  CHECK_NOTHROW(check("eth0", "eth1"));
  CHECK_NOTHROW(check("127.0.0.1", "127.0.0.1"));  // containers of one machine
  for (std::string const bad : {"127.0.1.1", "::1", "lo", "::ffff:127.0.0.1"}) {
    CAPTURE(bad);
    auto const refused = doctest::Contains(
        ("rank 0 (a, process 1) would give the others the address " + bad).c_str());
    CHECK_THROWS_WITH_AS(check(bad, "10.0.0.2"), refused, ClusterError);
    CHECK_THROWS_WITH_AS(check(bad, "10.0.0.2", "boot net", "boot net of another"), refused,
                         ClusterError);
    CHECK_THROWS_WITH_AS(check("10.0.0.2", bad),
                         doctest::Contains("Set GLOO_SOCKET_IFNAME on each machine"), ClusterError);
    // One machine under two names.
    CHECK_NOTHROW(check(bad, "10.0.0.2", "boot net", "boot net"));
    CHECK_THROWS_WITH_AS(require_reachable({{bad, "one"}, {"10.0.0.2", "one"}, {"10.0.0.3", "two"}},
                                           {"a", "b", "c"}, ""),
                         doctest::Contains("rank 2 (c) is on another machine"), ClusterError);
  }
  auto const store = c10::make_intrusive<c10d::HashStore>();
  auto const found =
      frugal::detail::exchange_addresses(*store, ranks::place(0, 1), std::chrono::seconds(5));
  REQUIRE(found.size() == 1);
  CHECK(found.front().address == "127.0.0.1");
  CHECK(found.front().network == frugal::detail::this_network());
}

TEST_CASE("four ranks send to the next one, by two tags, and those of a tag arrive in order") {
  std::vector<int> right(4, 0);
  auto const errors = ranks::run(4, [&](std::shared_ptr<Communicator> const& all) {
    all->connect_links();
    int const rank = all->rank(), next = (rank + 1) % 4, before = (rank + 3) % 4;
    std::vector<at::Tensor> sent, came;
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    for (int i = 0; i < 3; ++i) {
      sent.push_back(at::full({2}, 10.0 * rank + i));
      works.push_back(all->start_send(sent.back(), next, i == 1 ? 8 : 7));
    }
    for (int const tag : {8, 7, 7}) {  // not in the order of sending
      came.push_back(at::empty({2}));
      works.push_back(all->start_receive(came.back(), before, tag));
    }
    for (auto const& work : works) all->complete_link(work, "a message");
    bool ok = true;
    for (int const i : {1, 0, 2}) {
      ok = ok && came[i == 1 ? 0U : i == 0 ? 1U : 2U].equal(at::full({2}, 10.0 * before + i));
    }
    right[static_cast<std::size_t>(rank)] = ok;
  });
  CHECK(ranks::none(errors));
  CHECK(right == std::vector<int>(4, 1));
}

TEST_CASE("a message that will not come ends with the verdict of the rank that failed") {
  std::atomic<int> ended = 0;
  auto const errors = ranks::run(3, [&](std::shared_ptr<Communicator> const& all) {
    all->connect_links();
    all->enter_run();
    at::Tensor const place = at::empty({2});
    if (all->rank() == 2) {
      all->fail(std::runtime_error("the labels are gone"));
      // It stays, so its connections do not close.
      for (int i = 0; i < 6000 && ended < 2; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    } else {
      try {
        all->complete_link(all->start_receive(place, 2, 7), "a message of rank 2");
      } catch (...) {
        ++ended;
        throw;
      }
    }
    all->leave_run();
  });
  for (std::size_t const rank : {0U, 1U}) {
    CHECK(errors[rank].find("could not complete a message of rank 2") != std::string::npos);
    CHECK(errors[rank].find("failed at step 0: the labels are gone") != std::string::npos);
  }
  CHECK(errors[2].empty());
}

TEST_CASE("a world of one needs no store") {
  auto const all = Communicator::join(frugal::World{});
  CHECK(all->gather(at::ones({2}), "x").equal(at::ones({1, 2})));
  at::Tensor in = at::arange(4), out = at::empty({4}, at::kLong);
  all->exchange(out, in, "x");
  CHECK(out.equal(in));
}

TEST_CASE("a rank that ends is an error in the others, which name what they were doing") {
  auto const errors =
      ranks::run(4,
                 [](std::shared_ptr<Communicator> const& all) {
                   static_cast<void>(all->gather(at::ones({1}), "the first"));
                   if (all->rank() == 2) return;
                   static_cast<void>(all->gather(at::ones({1}), "the second"));
                 },
                 {.join = std::chrono::seconds(60), .collective = std::chrono::seconds(5)});
  for (int rank : {0, 1, 3}) {
    std::string const& error = errors[static_cast<std::size_t>(rank)];
    CAPTURE(error);
    CHECK(error.starts_with("frugal: rank " + std::to_string(rank) +
                            " of 4 could not complete the second ("));
    CHECK(error.find(": rank 2 (") != std::string::npos);
    CHECK(error.find(") left the run before the others (") != std::string::npos);
    CHECK(error.find("rank 0 (") == std::string::npos);
    CHECK(error.find("rank 3 (") == std::string::npos);
  }
  CHECK(errors[2].empty());
}

TEST_CASE(
    "after an error nothing is exchanged any more: others could take it for what they wait for") {
  auto const errors = ranks::run(3, [](std::shared_ptr<Communicator> const& all) {
    static_cast<void>(all->gather(at::ones({1}), "the first"));
    if (all->rank() == 2) return;
    CHECK_THROWS_AS(static_cast<void>(all->gather(at::ones({1}), "the second")), ClusterError);
    // Of another size: Gloo ends the process if ranks 0 and 1 are not in the same one.
    if (all->rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    auto const begun = std::chrono::steady_clock::now();
    try {
      static_cast<void>(all->gather(at::ones({100}), "the third"));
    } catch (ClusterError const&) {
      CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(1));
      throw;
    }
  });
  for (std::size_t const rank : {0U, 1U}) {
    CAPTURE(errors[rank]);
    CHECK(errors[rank].find("could not complete the third") != std::string::npos);
    CHECK(errors[rank].find(": rank 2 (") != std::string::npos);
  }
  CHECK(errors[2].empty());
}

TEST_CASE(
    "a message over a connection that has broken before it begins names the rank that ended") {
  auto const errors =
      ranks::run(2,
                 [](std::shared_ptr<Communicator> const& all) {
                   all->connect_links();
                   static_cast<void>(all->gather(at::ones({1}), "the first"));
                   if (all->rank() == 1) return;
                   std::this_thread::sleep_for(std::chrono::seconds(1));
                   at::Tensor const tensor = at::ones({1 << 20});
                   for (int i = 0; i < 2; ++i) {  // one of them at least finds it at its beginning
                     try {
                       all->complete_link(all->start_send(tensor, 1, 7), "a message to rank 1");
                     } catch (ClusterError const&) {
                       if (i == 1) throw;
                     }
                   }
                 },
                 {.join = std::chrono::seconds(60), .collective = std::chrono::seconds(5)});
  CAPTURE(errors[0]);
  CHECK(errors[0].starts_with("frugal: rank 0 of 2 could not complete a message to rank 1 ("));
  CHECK(errors[0].find(": rank 1 (") != std::string::npos);
}

TEST_CASE(
    "a broken connection does not end the process by SIGPIPE, which is as before afterwards") {
  auto const now = [] {
    struct sigaction all{};
    ::sigaction(SIGPIPE, nullptr, &all);
    return all.sa_handler;
  };
  auto* const before = std::signal(SIGPIPE, SIG_DFL);
  {
    auto const one = Communicator::join(frugal::World{});
    CHECK((now() == SIG_IGN));
    Communicator::join(frugal::World{}).reset();
    CHECK((now() == SIG_IGN));
  }
  CHECK((now() == SIG_DFL));
  auto* const own = +[](int) {};
  std::signal(SIGPIPE, own);
  {
    auto const one = Communicator::join(frugal::World{});
    CHECK((now() == own));
  }
  CHECK((now() == own));
  std::signal(SIGPIPE, before);
}

}  // namespace frugal_test::cluster_communicator

namespace frugal_test::cluster_store_board {

using frugal::Communicator;
using frugal::SaveBoard;
using std::chrono::seconds;
namespace ranks = support::ranks;

TEST_CASE("a text waits for the one who asks for it, in any thread, and each board has its own") {
  std::vector<std::string> found(6);
  auto const errors = ranks::run(3, [&](std::shared_ptr<Communicator> const& all) {
    auto const rank = static_cast<unsigned>(all->rank());
    for (unsigned round = 0; round < 2; ++round) {
      std::shared_ptr<SaveBoard> const board = all->save_board();
      CHECK(board->rank() == rank);
      CHECK(board->count() == 3);
      std::thread waits([&] { found[3 * round + rank] = board->await(0, "folder"); });
      if (rank == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        board->post("folder", "step " + std::to_string(round));
        CHECK(board->await(2, "2") == "written");
        board->forget("2");
        board->post("all", "");
      }
      if (rank == 2) board->post("2", "written");
      CHECK(board->await(0, "all").empty());
      waits.join();
    }
  });
  CHECK(ranks::none(errors));
  CHECK((found ==
         std::vector<std::string>{"step 0", "step 0", "step 0", "step 1", "step 1", "step 1"}));
}

TEST_CASE("who waits for a process that is gone names it, although nobody exchanges anything") {
  auto const errors = ranks::run(3, [](std::shared_ptr<Communicator> const& all) {
    std::shared_ptr<SaveBoard> const board = all->save_board();
    all->enter_run();
    if (all->rank() == 2) return;
    board->await(2, "2");
  });
  for (int const rank : {0, 1}) {
    std::string const& error = errors[static_cast<std::size_t>(rank)];
    CAPTURE(error);
    CHECK(error.starts_with("frugal: the processes could not write a checkpoint together (rank " +
                            std::to_string(rank) + " of 3): rank 2 ("));
    CHECK(error.find(") left the run before the others") != std::string::npos);
  }
  CHECK(errors[2].empty());
}

TEST_CASE("who waits too long accuses the process that it waits for, and the others hear of it") {
  std::atomic<int> accused = 0;
  auto const errors = ranks::run(3,
                                 [&](std::shared_ptr<Communicator> const& all) {
                                   std::shared_ptr<SaveBoard> const board = all->save_board();
                                   all->enter_run();
                                   // It writes nothing, and then waits itself.
                                   for (int i = 0; all->rank() == 2 && i < 6000 && accused < 2; ++i)
                                     std::this_thread::sleep_for(std::chrono::milliseconds(10));
                                   try {
                                     board->await(all->rank() == 2 ? 0 : 2, "never");
                                   } catch (...) {
                                     ++accused;
                                     throw;
                                   }
                                 },
                                 {.join = seconds(60), .collective = seconds(2)});
  for (std::string const& error : errors) {
    CAPTURE(error);
    CHECK(error.find(" has not written its part of a checkpoint for ") != std::string::npos);
  }
  CHECK(errors[0].find(": rank 2 (") != std::string::npos);
}

TEST_CASE("a world of one has no board") {
  CHECK(Communicator::join(frugal::World{})->save_board() == nullptr);
}

}  // namespace frugal_test::cluster_store_board

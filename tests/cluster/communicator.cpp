// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/agreement/one_window.hpp>
#include <frugal/cluster/agreement/same_run.hpp>
#include <frugal/cluster/agreement/window_message.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/communicator/begun_exchanges.hpp>

#include "support/ranks.hpp"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
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
  CHECK_NOTHROW(require_reachable({"10.0.0.1", "10.0.0.2"}, hosts, ""));
  CHECK_NOTHROW(require_reachable({"eth0", "eth1"}, hosts, ""));
  CHECK_NOTHROW(
      require_reachable({"127.0.0.1", "127.0.0.1"}, hosts, ""));  // containers of one machine
  for (std::string const bad : {"127.0.1.1", "::1", "lo", "::ffff:127.0.0.1"}) {
    CHECK_THROWS_WITH_AS(
        require_reachable({bad, "10.0.0.2"}, hosts, ""),
        doctest::Contains(
            ("rank 0 (a, process 1) would give the others the address " + bad).c_str()),
        ClusterError);
    CHECK_THROWS_WITH_AS(require_reachable({"10.0.0.2", bad}, hosts, ""),
                         doctest::Contains("Set GLOO_SOCKET_IFNAME on each machine"), ClusterError);
  }
  auto const errors = ranks::run(3, [&](std::shared_ptr<Communicator> const& all) {
    auto const store = c10::make_intrusive<c10d::HashStore>();
    frugal::World world = all->world();
    world.size = 1, world.rank = 0;
    std::vector<std::string> const found =
        frugal::detail::exchange_addresses(*store, world, std::chrono::seconds(5));
    if (found != std::vector<std::string>{"127.0.0.1"}) throw std::runtime_error(found.front());
  });
  CHECK(ranks::none(errors));
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
  auto const errors = ranks::run(3, [&](std::shared_ptr<Communicator> const& all) {
    all->connect_links();
    all->enter_run();
    at::Tensor const place = at::empty({2});
    if (all->rank() == 2) {
      all->fail(std::runtime_error("the labels are gone"));
      // It stays, so its connections do not close.
      std::this_thread::sleep_for(std::chrono::seconds(3));
    } else {
      all->complete_link(all->start_receive(place, 2, 7), "a message of rank 2");
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

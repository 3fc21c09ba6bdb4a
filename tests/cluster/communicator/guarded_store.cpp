// SPDX-License-Identifier: Apache-2.0
// needs: cluster
// left to clang: shard.cpp has the same templates
#include <doctest/doctest.h>

#include <frugal/cluster/communicator.hpp>

#include "support/ranks.hpp"
#include "support/sockets.hpp"

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace frugal_test::cluster_guarded_store {

using frugal::ClusterError;
using frugal::Communicator;
using frugal::World;
using frugal::detail::GuardedStore;
using namespace std::chrono_literals;
namespace ranks = support::ranks;

std::vector<std::uint8_t> bytes(std::string const& text) { return {text.begin(), text.end()}; }

TEST_CASE("only what was written with the token under the same key is read") {
  auto const open = c10::make_intrusive<c10d::HashStore>();
  GuardedStore ours(open, "a token of the run"), other(open, "another, of nobody");
  GuardedStore without(open, "");
  ours.setTimeout(50ms);
  ours.set("one", std::string("first"));
  CHECK(ours.get_to_str("one") == "first");
  CHECK(ours.clone()->get_to_str("one") == "first");
  CHECK(ours.clone()->getTimeout() == 50ms);
  ours.set("nothing", std::string());
  CHECK(ours.get_to_str("nothing").empty());
  CHECK_THROWS_WITH_AS(
      other.get_to_str("one"),
      doctest::Contains("a value in the store is not of this run ('one', 21 bytes)"), ClusterError);
  CHECK_THROWS_AS(without.get_to_str("one"), ClusterError);

  // Of another key, changed, cut, and without a tag.
  std::vector<std::uint8_t> const tagged = open->get("one");
  std::vector<std::uint8_t> changed = tagged, cut = tagged;
  changed[0] ^= 1;
  cut.pop_back();
  for (auto const& [key, value] :
       {std::pair{"two", tagged}, std::pair{"one", changed}, std::pair{"one", cut},
        std::pair{"one", bytes("")}, std::pair{"one", bytes("/home/user/thesis.tex")}}) {
    CAPTURE(key);
    open->set(key, value);
    CHECK_THROWS_AS(ours.get(key), ClusterError);
  }
  open->set("one", tagged);
  CHECK(ours.get_to_str("one") == "first");
}

TEST_CASE("the first of several texts stands, and one that does not come is an error") {
  auto const open = c10::make_intrusive<c10d::HashStore>();
  GuardedStore one(open, "a token of the run"), two(open, "a token of the run");
  CHECK(one.compareSet("verdict", std::string(), "it was rank 1") == "it was rank 1");
  CHECK(two.compareSet("verdict", std::string(), "it was rank 2") == "it was rank 1");
  CHECK(two.compareSet("verdict", "it was rank 1", "nobody") == "nobody");
  one.setTimeout(30ms);
  CHECK_THROWS_WITH_AS(one.get_to_str("never"), doctest::Contains("has not written 'never'"),
                       ClusterError);
  int looks = 0;
  one.in_waits([&] {
    if (++looks == 2) throw ClusterError({"rank 3 has ended", "", "", ""});
  });
  CHECK_THROWS_WITH_AS(one.wait({"never"}, 60s), doctest::Contains("rank 3 has ended"),
                       ClusterError);
  CHECK_THROWS_AS(one.set("long", std::vector<std::uint8_t>(GuardedStore::most)), ClusterError);
}

/// A world of threads that meet at a store of TCP, with these tokens.
std::vector<std::string> world(std::vector<std::string> const& tokens, std::uint16_t port,
                               std::atomic<int>& exchanged, int exchanges,
                               std::chrono::milliseconds join = 20s) {
  std::vector<std::string> errors(tokens.size());
  std::vector<std::thread> threads;
  std::atomic<int> ended = 0;
  for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
    threads.emplace_back([&, rank] {
      World place = ranks::place(static_cast<int>(rank), static_cast<int>(tokens.size()));
      place.port = port;
      place.token = tokens[rank];
      frugal::WaitLimits const limits{.join = join, .collective = 20s};
      c10::intrusive_ptr<c10d::Store> store;
      try {
        store = frugal::detail::store_of(place, limits);
        Communicator all(store, place, limits);
        all.enter_run();
        for (int i = 0; i < exchanges; ++i) {
          at::Tensor const rows = all.gather(at::full({1}, place.rank, at::kLong), "numbers");
          if (!rows.view(-1).equal(at::arange(all.size()))) throw std::logic_error("wrong numbers");
          ++exchanged;
          all.at_step(static_cast<std::uint64_t>(i));
          std::this_thread::sleep_for(2ms);
        }
        all.leave_run();
      } catch (ClusterError const& error) {
        errors[rank] = error.what();
      } catch (std::exception const& error) {
        errors[rank] = std::string("not of frugal: ") + error.what();
      }
      ++ended;
      while (rank == 0 && ended != static_cast<int>(tokens.size()))
        std::this_thread::sleep_for(2ms);
    });
  }
  for (std::thread& each : threads) each.join();
  return errors;
}

TEST_CASE("a process with another token, or with none, is told so at once") {
  for (std::string const other : {"the token of others", ""}) {
    support::Port port;
    port.close();
    std::atomic<int> exchanged = 0;
    auto const errors = world({"the token of the run", other}, port.number, exchanged, 1, 3s);
    CAPTURE(errors[1]);
    CHECK(errors[1].find("rank 1 and rank 0 have different tokens") != std::string::npos);
    CHECK(errors[1].find(other.empty() ? "this rank has none" : "is refused") != std::string::npos);
    CHECK(errors[0].find("rank 1 of 2 did not come") != std::string::npos);
    CHECK(exchanged == 0);
  }
}

/// A store that takes no further connection, as one whose process has just ended.
struct Gone final : c10d::HashStore {
  c10::intrusive_ptr<c10d::Store> clone() override {
    throw std::runtime_error("connection refused");
  }
};

TEST_CASE("a store that goes while ranks come to it is an error of frugal") {
  CHECK_THROWS_WITH_AS(Communicator(c10::make_intrusive<Gone>(), ranks::place(1, 2)),
                       doctest::Contains("rank 1 of 2 could not meet the others"), ClusterError);
}

/// Sends garbage to a port, as a program that takes it for another service would.
void send_garbage(std::uint16_t port, std::mt19937& draw, std::size_t size) {
  int const socket = support::connected(port);
  if (socket < 0) return;
  std::string text(size, '\0');
  for (char& each : text) each = static_cast<char>(draw());
  static_cast<void>(::send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  ::close(socket);
}

/// The ports at which this process listens.
std::vector<std::uint16_t> listening() {
  std::vector<std::uint16_t> ports;
  for (std::string const table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream in(table);
    std::string number, address, peer, state, line;
    std::getline(in, line);
    while (in >> number >> address >> peer >> state && std::getline(in, line)) {
      if (state == "0A")
        ports.push_back(static_cast<std::uint16_t>(
            std::stoul(address.substr(address.rfind(':') + 1), nullptr, 16)));
    }
  }
  return ports;
}

enum class Attack { garbage, overwrite, huge, remove };

TEST_CASE(
    "a stranger at the store and at the sockets ends a run at most, by an error that says so") {
  for (Attack const attack : {Attack::garbage, Attack::overwrite, Attack::huge, Attack::remove}) {
    CAPTURE(static_cast<int>(attack));
    support::Port port;
    port.close();
    std::vector<std::uint16_t> const of_others = listening();
    std::atomic<int> exchanged = 0;
    std::atomic<bool> over = false;
    std::thread stranger([&] {
      std::mt19937 draw(7);
      while (exchanged < 20 && !over) std::this_thread::sleep_for(1ms);
      if (attack == Attack::garbage) {
        for (int i = 0; i < 20; ++i) {
          for (std::uint16_t const each : listening()) {
            // Other programs of this machine are none of this test's.
            if (std::ranges::find(of_others, each) == of_others.end())
              send_garbage(each, draw, 1 + draw() % 4096);
          }
        }
        return;
      }
      try {
        c10d::TCPStoreOptions options;
        options.port = port.number;
        options.waitWorkers = false;
        options.timeout = 2s;
        auto const store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
        std::vector<std::string> keys;
        std::string run;  // what stands before the keys of a run
        for (std::string const& each : store->listKeys()) {
          // Without that which LibTorch puts before keys.
          std::size_t const begin = each.find("frugal/"), end = each.find("/watch/0");
          if (begin == std::string::npos) continue;
          keys.push_back(each.substr(begin));
          if (end != std::string::npos) run = each.substr(begin, end - begin);
        }
        CHECK(keys.size() > 4);
        CHECK(!run.empty());
        for (std::string const& each : keys) {
          if (attack == Attack::remove) {
            store->deleteKey(each);
          } else {
            store->set(each, bytes(attack == Attack::huge ? std::string(4 << 20, 'x')
                                                          : "../../../home/user/thesis.tex"));
          }
        }
        if (attack != Attack::remove) {
          store->set(run + "/verdict", bytes("rank 1 is \x1b[2Jto blame"));
        }
      } catch (std::exception const&) {
        // The store has gone, or takes no such values.
      }
    });
    auto const errors =
        world({"the token of the run", "the token of the run"}, port.number, exchanged, 400);
    over = true;
    stranger.join();
    for (std::string const& each : errors) {
      CAPTURE(each);
      CHECK((each.empty() || each.starts_with("frugal: ")));
      if (attack == Attack::garbage) CHECK(each.empty());
      if (attack == Attack::overwrite) CHECK(each.find("is not of this run") != std::string::npos);
      CHECK(each.find('\x1b') == std::string::npos);
    }
  }
}

}  // namespace frugal_test::cluster_guarded_store

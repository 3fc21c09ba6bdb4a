// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/communicator/rendezvous.hpp>

#include <frugal/inline.hpp>

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE std::string this_process() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name = {"unknown host"};
  return std::string(name.data()) + ", process " + std::to_string(::getpid());
}

FRUGAL_INLINE c10::intrusive_ptr<c10d::Store> store_of(World const& world,
                                                       WaitLimits const& limits) {
  c10d::TCPStoreOptions options;
  options.port = world.port;
  options.isServer = world.rank == 0 && !world.agent_has_store;
  options.numWorkers = static_cast<std::size_t>(world.size);
  options.waitWorkers = false;  // meet() waits, and says for whom
  options.timeout = limits.join;
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(world.host, options);
    // From here on waits are GuardedStore's: this is for a value that someone removes while it is read, and
    // for further connections.
    store->setTimeout(std::chrono::seconds(45));
    return c10::make_intrusive<c10d::PrefixStore>("frugal/" + std::to_string(world.restart),
                                                  std::move(store));
  } catch (std::exception const& error) {
    std::string const place = world.host + ":" + std::to_string(world.port);
    std::string const text = first_line(error);
    if (options.isServer) {
      throw ClusterError(
          {.what = "rank 0 cannot serve the store at " + place,
           .where = world.text(),
           .why = text,
           .fix = "Give each run a free port (MASTER_PORT, torchrun --master-port), and start rank "
                  "0 on the machine that MASTER_ADDR names."});
    }
    throw ClusterError(
        {.what = "rank " + std::to_string(world.rank) + " finds no store at " + place,
         .where = world.text(),
         .why = "waited " + seconds_text(limits.join) + "; " + text,
         .fix = "Check that rank 0 runs, that MASTER_ADDR and MASTER_PORT are its, "
                "and that no firewall is between the machines."});
  }
}

FRUGAL_INLINE void require_token(c10d::Store& open, World const& world) {
  std::string const own = GuardedStore::fingerprint(world.token);
  std::string const name = "token";
  if (!open.check({name})) return;
  std::string const of_first = open.get_to_str(name);
  if (of_first == own) return;
  throw ClusterError(
      {.what = "rank " + std::to_string(world.rank) + " and rank 0 have different tokens",
       .where = world.text(),
       .why = world.token.empty()  ? "this rank has none"
              : of_first == "none" ? "rank 0 has none"
                                   : "a process without the run's token is refused",
       .fix = "Give all processes one FRUGAL_CLUSTER_TOKEN, or one FRUGAL_CLUSTER_TOKEN_FILE."});
}

FRUGAL_INLINE std::string local_address_towards(std::string const& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  int const code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> const all(found, ::freeaddrinfo);
  if (code == 0) {
    for (addrinfo const* each = found; each != nullptr; each = each->ai_next) {
      int const socket = ::socket(each->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
      if (socket < 0) continue;
      sockaddr_storage own{};
      socklen_t length = sizeof own;
      bool const known = ::connect(socket, each->ai_addr, each->ai_addrlen) == 0 &&
                         ::getsockname(socket, reinterpret_cast<sockaddr*>(&own), &length) == 0;
      ::close(socket);
      std::array<char, NI_MAXHOST> text{};
      if (known && ::getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text.data(),
                                 text.size(), nullptr, 0, NI_NUMERICHOST) == 0)
        return text.data();
    }
  }
  throw ClusterError({.what = "no network leads to '" + host + "'",
                      .where = "the store's machine",
                      .why = code == 0 ? "it has an address, and no route" : ::gai_strerror(code),
                      .fix = "Correct MASTER_ADDR, or name the interface in GLOO_SOCKET_IFNAME."});
}

/// An address, or the name of an interface, that leads to the machine itself.
FRUGAL_INLINE bool is_loopback(std::string const& address) {
  return address.starts_with("127.") || address.starts_with("::ffff:127.") || address == "::1" ||
         address == "lo";
}

FRUGAL_INLINE void require_reachable(std::vector<RankAddress> const& all,
                                     std::vector<std::string> const& hosts,
                                     std::string const& where) {
  auto const loops = [](RankAddress const& each) { return is_loopback(each.address); };
  // A rank that does not find it there.
  auto const good_for = [&](RankAddress const& bad) {
    return std::ranges::find_if(all, [&](RankAddress const& other) {
      return !loops(other) && (bad.network.empty() || other.network != bad.network);
    });
  };
  auto const bad = std::ranges::find_if(
      all, [&](RankAddress const& each) { return loops(each) && good_for(each) != all.end(); });
  if (bad == all.end()) return;
  auto const good = good_for(*bad);
  auto const named = [&](auto at) {
    auto const rank = static_cast<std::size_t>(at - all.begin());
    return "rank " + std::to_string(rank) + " (" + hosts[rank] + ")";
  };
  throw ClusterError(
      {.what = named(bad) + " would give the others the address " + bad->address +
               ", which leads each machine to itself",
       .where = where,
       .why = "there the name in MASTER_ADDR is one of loopback (Debian's /etc/hosts has 127.0.1.1 "
              "for "
              "a machine's own name), and " +
              named(good) + " is on another machine",
       .fix =
           "Set GLOO_SOCKET_IFNAME on each machine to the interface that leads to the others "
           "(`ip -brief address` lists them), or remove the line with 127.0.1.1 from /etc/hosts."});
}

FRUGAL_INLINE std::vector<RankAddress> exchange_addresses(c10d::Store& store, World const& world,
                                                          std::chrono::milliseconds limit) {
  auto const key = [](int rank) { return "address/" + std::to_string(rank); };
  auto const read = [](int rank) { return "address read/" + std::to_string(rank); };
  char const* const interface = std::getenv("GLOO_SOCKET_IFNAME");
  std::string const own =
      interface != nullptr ? std::string(interface) : local_address_towards(world.host, world.port);
  store.set(key(world.rank), own + '\n' + this_network());
  std::vector<RankAddress> all;
  std::vector<std::string> readers;
  for (int rank = 0; rank < world.size; ++rank) {
    store.wait({key(rank)}, limit);
    std::string const text = store.get_to_str(key(rank));
    std::size_t const line = std::min(text.find('\n'), text.size());
    all.push_back({.address = printable(text.substr(0, line), 300),
                   .network = text.substr(std::min(line + 1, text.size()))});
    readers.push_back(read(rank));
  }
  store.set(read(world.rank), std::string("1"));
  // One may refuse them and end, and the store with it.
  if (world.rank == 0) store.wait(readers, limit);
  return all;
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <frugal/checkpoint/lock_owner.hpp>
#include <frugal/cluster/communicator/c10d.hpp>
#include <frugal/cluster/communicator/rendezvous.hpp>
#include <frugal/cluster/world.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// The address of this machine on the network that leads to a host: that which the kernel would
/// send from. Nothing is sent. Throws ClusterError if the host has no address, or no way leads there.
inline std::string local_address_towards(std::string const& host, std::uint16_t port) {
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
inline bool is_loopback(std::string const& address) {
  return address.starts_with("127.") || address.starts_with("::ffff:127.") || address == "::1" ||
         address == "lo";
}

/// What a rank says of its address.
struct RankAddress {
  std::string address{};  ///< or the name of an interface
  std::string network{};  ///< which loopback it has; empty: not known
};
/// Processes with the same one reach each other by loopback, whatever their machine is called.
inline std::string this_network() {
  std::error_code failed;
  std::string const space = std::filesystem::read_symlink("/proc/self/ns/net", failed).string();
  std::string const boot = LockOwner::here().boot;
  return failed || boot.empty() ? std::string() : boot + ' ' + space;
}

/// ClusterError if a rank gives the others an address that leads each of them to itself: they would wait for
/// it, and none would know why. `hosts`: where they run. All are at such addresses where they are on one
/// machine under several names.
inline void require_reachable(std::vector<RankAddress> const& all,
                              std::vector<std::string> const& hosts, std::string const& where) {
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

/// The address that each rank gives the others; all call it. `store`: at which all have met.
inline std::vector<RankAddress> exchange_addresses(c10d::Store& store, World const& world,
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

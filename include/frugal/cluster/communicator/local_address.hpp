// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

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

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/sink/listening_socket.hpp>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

namespace frugal_test::policy_sink_listening_socket {

using frugal::detail::ListeningSocket;
using frugal::detail::ListeningSockets;

/// Listens at a free port of this machine; -1 without such addresses.
int listener(int family) {
  int const made = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_storage at{};
  socklen_t size = sizeof(sockaddr_in);
  at.ss_family = static_cast<sa_family_t>(family);
  if (family == AF_INET6) {
    size = sizeof(sockaddr_in6);
    reinterpret_cast<sockaddr_in6*>(&at)->sin6_addr = in6addr_loopback;
  } else {
    reinterpret_cast<sockaddr_in*>(&at)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }
  if (made >= 0 && ::bind(made, reinterpret_cast<sockaddr*>(&at), size) == 0 &&
      ::listen(made, 1) == 0) {
    return made;
  }
  ::close(made);
  return -1;
}

TEST_CASE("a socket listens until it is shut") {
  for (int const family : {AF_INET, AF_INET6}) {
    int const made = listener(family);
    if (made < 0 && family == AF_INET6) continue;  // a machine without IPv6
    auto const found = ListeningSocket::of(made);
    REQUIRE(found);
    CHECK(found->listens());
    CHECK(found->port() != 0);
    found->shut();
    CHECK_FALSE(found->listens());
    found->shut();
    ::close(made);
    CHECK_FALSE(found->listens());
  }
}

TEST_CASE("another socket that gets its number is not taken for it") {
  int const made = listener(AF_INET);
  auto const found = ListeningSocket::of(made);
  REQUIRE(found);
  int const other = listener(AF_INET);
  REQUIRE(::dup2(other, made) == made);
  CHECK(ListeningSocket::of(made));
  CHECK_FALSE(found->listens());
  found->shut();
  CHECK(ListeningSocket::of(made)->listens());
  ::close(made);
  ::close(other);
}

TEST_CASE("a socket that does not listen, and a file, are none") {
  int const idle = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK_FALSE(ListeningSocket::of(idle));
  ::close(idle);
  CHECK_FALSE(ListeningSocket::of(idle));
  CHECK_FALSE(ListeningSocket::of(-1));
}

TEST_CASE("the socket that has come since is found by its port") {
  int const old = listener(AF_INET);
  ListeningSockets const before;
  int const made = listener(AF_INET);
  std::uint16_t const port = ListeningSocket::of(made)->port();
  CHECK(before.added(port) == ListeningSocket::of(made));
  CHECK_FALSE(before.added(ListeningSocket::of(old)->port()));
  ::close(made);
  CHECK_FALSE(before.added(port));
  ::close(old);
}

}  // namespace frugal_test::policy_sink_listening_socket

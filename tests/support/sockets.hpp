// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace frugal_test::support {

/// A listening socket on a port that was free.
struct Port {
  Port() : socket(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t length = sizeof address;
    REQUIRE(::bind(socket, reinterpret_cast<sockaddr*>(&address), length) == 0);
    REQUIRE(::listen(socket, 1) == 0);
    REQUIRE(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    number = ntohs(address.sin_port);
  }
  ~Port() { close(); }
  void close() {
    if (socket >= 0) ::close(socket);
    socket = -1;
  }
  int socket;
  std::uint16_t number = 0;
};

/// A connection to a port of this machine; -1 if nobody listens.
inline int connected(std::uint16_t port) {
  int const socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // A server that stops forgets connections that it has accepted and not yet read; the wait for an
  // answer must end then too.
  timeval const patience{.tv_sec = 2, .tv_usec = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return socket;
  ::close(socket);
  return -1;
}

/// The whole answer to a GET; empty if nobody listens.
inline std::string got(std::uint16_t port, std::string const& target = "/metrics") {
  int const socket = connected(port);
  if (socket < 0) return {};
  std::string const request = "GET " + target + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
  std::string answer;
  if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    char buffer[4096];
    for (ssize_t read = 0; (read = ::read(socket, buffer, sizeof buffer)) > 0;) {
      answer.append(buffer, static_cast<std::size_t>(read));
    }
  }
  ::close(socket);
  return answer;
}

/// Shuts the sockets of this process that listen at a port: nobody is answered there any more.
inline void shut_listener(std::uint16_t port) {
  for (int each = 3; each < 1024; ++each) {
    sockaddr_in at{};
    socklen_t size = sizeof at;
    int listens = 0;
    socklen_t of_int = sizeof listens;
    if (::getsockopt(each, SOL_SOCKET, SO_ACCEPTCONN, &listens, &of_int) != 0 || listens == 0) {
      continue;
    }
    if (::getsockname(each, reinterpret_cast<sockaddr*>(&at), &size) != 0) continue;
    if (ntohs(at.sin_port) == port) ::shutdown(each, SHUT_RDWR);
  }
}

}  // namespace frugal_test::support

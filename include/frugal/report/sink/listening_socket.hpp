// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace frugal::detail {

/// A socket of this process that listens, and that a library owns. To look at it costs two system
/// calls. A connection would prove no more, since the kernel accepts it in place of a server that
/// hangs, and would wake the server.
class ListeningSocket {
 public:
  /// Nothing, if the descriptor is none of a listening socket.
  static std::optional<ListeningSocket> of(int descriptor) {
    struct stat status{};
    if (::fstat(descriptor, &status) != 0 || !S_ISSOCK(status.st_mode)) return std::nullopt;
    ListeningSocket const found(descriptor, status.st_ino);
    return found.listens() ? std::optional(found) : std::nullopt;
  }

  /// False once it is shut or closed, also if another file has its number now.
  bool listens() const {
    struct stat status{};
    if (::fstat(descriptor_, &status) != 0 || status.st_ino != inode_) return false;
    int listens = 0;
    socklen_t size = sizeof listens;
    return ::getsockopt(descriptor_, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 &&
           listens != 0;
  }

  /// Refuses further connections, and wakes the thread that waits for one.
  void shut() const {
    if (listens()) ::shutdown(descriptor_, SHUT_RDWR);
  }

  /// The port; 0 if the socket has none.
  std::uint16_t port() const {
    sockaddr_storage at{};
    socklen_t size = sizeof at;
    auto* const any = reinterpret_cast<sockaddr*>(&at);
    if (::getsockname(descriptor_, any, &size) != 0) return 0;
    if (at.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in*>(&at)->sin_port);
    if (at.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&at)->sin6_port);
    return 0;
  }

  friend bool operator==(ListeningSocket const&, ListeningSocket const&) = default;

 private:
  ListeningSocket(int descriptor, ino_t inode) : descriptor_(descriptor), inode_(inode) {}

  int descriptor_;
  ino_t inode_;  ///< the kernel gives each socket its own
};

/// The listening sockets of this process at one moment.
class ListeningSockets {
 public:
  ListeningSockets() {
    std::error_code failure;  // without /proc there are none
    for (std::filesystem::directory_iterator each("/proc/self/fd", failure), end;
         !failure && each != end; each.increment(failure)) {
      std::string const name = each->path().filename().string();
      int descriptor = -1;
      std::from_chars(name.data(), name.data() + name.size(), descriptor);
      if (auto const found = ListeningSocket::of(descriptor)) all_.push_back(*found);
    }
  }

  /// One at this port that has come since; nothing if there is none.
  std::optional<ListeningSocket> added(std::uint16_t port) const {
    ListeningSockets const now;
    for (ListeningSocket const& each : now.all_) {
      if (each.port() == port && std::find(all_.begin(), all_.end(), each) == all_.end()) {
        return each;
      }
    }
    return std::nullopt;
  }

 private:
  std::vector<ListeningSocket> all_;
};

}  // namespace frugal::detail

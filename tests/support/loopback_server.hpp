// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace frugal_test::support {

/// Longer than any test here takes, on the slowest machine under the slowest sanitizer.
inline constexpr std::chrono::seconds ages{60};

struct HttpRequest {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;

  std::string header(std::string const& name) const {
    auto const found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

/// The bytes that a server sends, and what it does then.
struct Reply {
  enum class Then { listen, close, hang, flood };

  std::string bytes = {};
  Then then = Then::listen;
};

/// A complete, valid response. `headers` are lines that end with \r\n.
inline Reply answer(int status, std::string const& body, std::string const& headers = "") {
  return {.bytes = "HTTP/1.1 " + std::to_string(status) + " Status\r\n" + headers +
                   "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body};
}

inline Reply hang() { return {.bytes = "", .then = Reply::Then::hang}; }

/// An HTTP server on a free port of 127.0.0.1, reduced to the needs of metadata-service tests.
/// Calls the handler for one request at a time.
class LoopbackServer {
 public:
  using Handler = std::function<Reply(HttpRequest const&)>;

  explicit LoopbackServer(Handler handler) : handler_(std::move(handler)) {
    listening_ = bound(port_);
    if (::listen(listening_, 16) != 0) throw std::runtime_error("listen");
    accepting_ = std::thread([this] { accept_all(); });
  }

  LoopbackServer(LoopbackServer const&) = delete;
  LoopbackServer& operator=(LoopbackServer const&) = delete;

  ~LoopbackServer() {
    {
      std::lock_guard const lock(mutex_);
      stopping_ = true;
      for (int const open : open_) ::shutdown(open, SHUT_RDWR);
    }
    ::shutdown(listening_, SHUT_RDWR);  // wakes accept
    accepting_.join();
    for (std::thread& thread : serving_) thread.join();
    ::close(listening_);
  }

  std::string base() const { return "http://127.0.0.1:" + std::to_string(port_); }

  /// Waits for a number of requests; false if they do not come.
  bool wait_for(std::size_t requests) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, ages, [&] { return requests_.size() >= requests; });
  }

  std::vector<HttpRequest> requests() const {
    std::lock_guard const lock(mutex_);
    return requests_;
  }

  std::size_t connections() const {
    std::lock_guard const lock(mutex_);
    return connections_;
  }

  /// A socket on a free port of 127.0.0.1, which refuses connections until something listens on it.
  static int bound(int& port) {
    int const made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (made < 0 || ::bind(made, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::getsockname(made, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("no port on 127.0.0.1");
    }
    port = ntohs(address.sin_port);
    return made;
  }

 private:
  void accept_all() {
    while (true) {
      int const peer = ::accept(listening_, nullptr, nullptr);
      std::lock_guard const lock(mutex_);
      if (stopping_ || peer < 0) {
        if (peer >= 0) ::close(peer);
        if (stopping_) return;
        continue;
      }
      open_.insert(peer);
      ++connections_;
      serving_.emplace_back([this, peer] {
        serve(peer);
        std::lock_guard const inner(mutex_);
        open_.erase(peer);
        ::close(peer);
      });
    }
  }

  void serve(int peer) {
    std::string buffer;
    HttpRequest request;
    while (read(peer, buffer, request)) {
      Reply reply;
      {
        std::lock_guard const lock(mutex_);
        requests_.push_back(request);
        reply = handler_(request);
        changed_.notify_all();
      }
      if (!write(peer, reply.bytes) || reply.then == Reply::Then::close) return;
      if (reply.then == Reply::Then::flood) {
        std::string const much(4096, 'x');
        while (write(peer, much)) {
        }
        return;
      }
      if (reply.then == Reply::Then::hang) {
        while (more(peer, buffer)) {
        }
        return;
      }
    }
  }

  static bool more(int peer, std::string& buffer) {
    std::array<char, 4096> piece{};
    ssize_t const got = ::recv(peer, piece.data(), piece.size(), 0);
    if (got <= 0) return false;
    buffer.append(piece.data(), static_cast<std::size_t>(got));
    return true;
  }

  static bool write(int peer, std::string const& bytes) {
    for (std::size_t at = 0; at < bytes.size();) {
      ssize_t const sent = ::send(peer, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      at += static_cast<std::size_t>(sent);
    }
    return true;
  }

  static bool read(int peer, std::string& buffer, HttpRequest& request) {
    std::size_t end = 0;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
      if (!more(peer, buffer)) return false;
    }
    request = {};
    std::string const head = buffer.substr(0, end + 2);
    buffer.erase(0, end + 4);
    std::size_t const first = head.find(' ');
    std::size_t const second = head.find(' ', first + 1);
    request.method = head.substr(0, first);
    request.target = head.substr(first + 1, second - first - 1);
    for (std::size_t at = head.find("\r\n") + 2; at < head.size();) {
      std::size_t const stop = head.find("\r\n", at);
      std::size_t const colon = head.find(':', at);
      std::string name = head.substr(at, colon - at);
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      request.headers[name] = head.substr(colon + 2, stop - colon - 2);
      at = stop + 2;
    }
    std::size_t const length =
        static_cast<std::size_t>(std::atoll(request.header("content-length").c_str()));
    while (buffer.size() < length) {
      if (!more(peer, buffer)) return false;
    }
    request.body = buffer.substr(0, length);
    buffer.erase(0, length);
    return true;
  }

  Handler handler_;
  int port_ = 0;
  int listening_ = -1;
  std::thread accepting_;
  mutable std::mutex mutex_;  // guards the following
  std::condition_variable changed_;
  bool stopping_ = false;
  std::set<int> open_;
  std::size_t connections_ = 0;
  std::vector<std::thread> serving_;
  std::vector<HttpRequest> requests_;
};

/// An address that refuses connections for the lifetime of this object.
class RefusingPort {
 public:
  RefusingPort() { socket_ = LoopbackServer::bound(port_); }
  RefusingPort(RefusingPort const&) = delete;
  RefusingPort& operator=(RefusingPort const&) = delete;
  ~RefusingPort() { ::close(socket_); }

  std::string base() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  int port_ = 0;
  int socket_ = -1;
};

}  // namespace frugal_test::support

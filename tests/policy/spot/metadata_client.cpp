// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: notices
#include "support/loopback_server.hpp"

#include <doctest/doctest.h>

#include <frugal/policy/spot/metadata_client.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::cluster_metadata_answer {

using frugal::MetadataAnswer;
using frugal::detail::checked_base;
using frugal::detail::printable;

TEST_CASE("a header is found ignoring case, without surrounding blanks") {
  MetadataAnswer answer;
  answer.add_header_line("HTTP/1.1 200 OK\r\n");
  answer.add_header_line("metadata-FLAVOR:  Google \r\n");
  answer.add_header_line("Empty:\r\n");
  answer.add_header_line("\r\n");
  CHECK(answer.header("Metadata-Flavor") == "Google");
  CHECK(answer.header("empty") == "");
  CHECK_FALSE(answer.header("Metadata"));
  CHECK(answer.headers.size() == 2);
}

TEST_CASE("headers of earlier responses are dropped") {
  MetadataAnswer answer;
  answer.add_header_line("HTTP/1.1 100 Continue\r\n");
  answer.add_header_line("Metadata-Flavor: Google\r\n");
  answer.add_header_line("HTTP/1.1 200 OK\r\n");
  CHECK_FALSE(answer.header("Metadata-Flavor"));
}

TEST_CASE("foreign text is truncated and made printable for a log") {
  CHECK(printable("a\nb\x1b[31m\xc3\xa4") == "a?b?[31m??");
  CHECK(printable(std::string(300, 'x')) == std::string(200, 'x') + "...");
}

TEST_CASE("a base loses its trailing slashes") {
  CHECK(checked_base("http://169.254.169.254/") == "http://169.254.169.254");
  CHECK(checked_base("http://[fd00:ec2::254]//") == "http://[fd00:ec2::254]");
}

TEST_CASE("a base that is not a plain http address is refused") {
  for (char const* const base : {"", "/", "http://", "http:///", "https://169.254.169.254",
                                 "file:///etc/passwd", "169.254.169.254", "http://a b",
                                 "http://a?b", "http://a#b", "http://user@a", "http://a\r\nX: y"}) {
    CAPTURE(base);
    CHECK_THROWS_AS(checked_base(base), frugal::SettingsError);
  }
}

}  // namespace frugal_test::cluster_metadata_answer

namespace frugal_test::cluster_metadata_client {

using namespace std::chrono_literals;
using frugal::MetadataAnswer;
using frugal::MetadataClient;
using frugal::MetadataError;
using frugal::UnreachableError;
using support::answer;
using support::LoopbackServer;
using support::Reply;

LoopbackServer::Handler always(Reply reply) {
  return [reply](support::HttpRequest const&) { return reply; };
}

/// Why a request failed.
std::string why(MetadataClient& client, std::string const& url,
                std::chrono::milliseconds timeout = support::ages) {
  try {
    client.send({.url = url, .timeout = timeout});
  } catch (MetadataError const& error) {
    CHECK(error.fault().where == url);
    return error.fault().why;
  }
  return "it was answered";
}

TEST_CASE("a response has status, headers and body") {
  LoopbackServer server(always(answer(200, "TRUE", "Metadata-Flavor: Google\r\n")));
  MetadataClient client;
  MetadataAnswer const got = client.send({.url = server.base() + "/a?b=c"});
  CHECK(got.status == 200);
  CHECK(got.body == "TRUE");
  CHECK(got.header("metadata-flavor") == "Google");
  CHECK(server.requests().at(0).method == "GET");
  CHECK(server.requests().at(0).target == "/a?b=c");
}

TEST_CASE("a PUT without a body declares length 0, and sends its headers") {
  LoopbackServer server(always(answer(200, "token")));
  MetadataClient client;
  client.send({.url = server.base() + "/t", .method = "PUT", .headers = {"X-Ttl: 60"}});
  auto const request = server.requests().at(0);
  CHECK(request.method == "PUT");
  CHECK(request.header("content-length") == "0");
  CHECK(request.header("x-ttl") == "60");
  CHECK_FALSE(request.headers.contains("content-type"));
  CHECK_FALSE(request.headers.contains("expect"));
}

TEST_CASE("a POST sends its body") {
  LoopbackServer server(always(answer(200, "")));
  MetadataClient client;
  client.send({.url = server.base() + "/", .method = "POST", .body = "{\"a\": 1}"});
  CHECK(server.requests().at(0).method == "POST");
  CHECK(server.requests().at(0).body == "{\"a\": 1}");
}

TEST_CASE("a GET after a PUT is a GET without a body, on the same connection") {
  LoopbackServer server(always(answer(200, "x")));
  MetadataClient client;
  client.send({.url = server.base() + "/", .method = "PUT", .headers = {"A: b"}, .body = "c"});
  client.send({.url = server.base() + "/"});
  CHECK(server.requests().at(1).method == "GET");
  CHECK(server.requests().at(1).body.empty());
  CHECK_FALSE(server.requests().at(1).headers.contains("a"));
  CHECK(server.connections() == 1);
}

TEST_CASE("no status is an error") {
  MetadataClient client;
  for (int const status : {204, 400, 401, 403, 404, 410, 429, 500, 503}) {
    LoopbackServer server(always(answer(status, "")));
    CHECK(client.send({.url = server.base() + "/"}).status == status);
  }
}

TEST_CASE("a redirect is a response, and is not followed") {
  LoopbackServer elsewhere(always(answer(200, "TRUE")));
  LoopbackServer server(always(answer(302, "", "Location: " + elsewhere.base() + "/\r\n")));
  MetadataClient client;
  CHECK(client.send({.url = server.base() + "/"}).status == 302);
  CHECK(elsewhere.requests().empty());
}

TEST_CASE("proxies of the environment are not used") {
  LoopbackServer proxy(always(answer(200, "of the proxy")));
  LoopbackServer server(always(answer(200, "of the service")));
  ::unsetenv("no_proxy");
  ::unsetenv("NO_PROXY");
  ::setenv("http_proxy", proxy.base().c_str(), 1);
  ::setenv("all_proxy", proxy.base().c_str(), 1);
  MetadataClient client;
  std::string const body = client.send({.url = server.base() + "/"}).body;
  ::unsetenv("http_proxy");
  ::unsetenv("all_proxy");
  CHECK(body == "of the service");
  CHECK(proxy.requests().empty());
}

TEST_CASE("protocols other than http are refused") {
  MetadataClient client;
  CHECK_THROWS_AS(client.send({.url = "file:///etc/hostname"}), MetadataError);
  CHECK_THROWS_AS(client.send({.url = "https://127.0.0.1/"}), MetadataError);
  CHECK_THROWS_AS(client.send({.url = "ftp://127.0.0.1/"}), MetadataError);
}

TEST_CASE("a header with control characters is not sent") {
  LoopbackServer server(always(answer(200, "")));
  MetadataClient client;
  CHECK_THROWS_AS(client.send({.url = server.base() + "/", .headers = {"A: b\r\nC: d"}}),
                  MetadataError);
  CHECK(server.requests().empty());
}

TEST_CASE("a refused connection is a machine without the service") {
  support::RefusingPort nobody;
  MetadataClient client;
  CHECK_THROWS_AS(client.send({.url = nobody.base() + "/"}), UnreachableError);
}

TEST_CASE("a server that accepts and never responds costs the timeout, and is no missing service") {
  LoopbackServer server(always(support::hang()));
  MetadataClient client;
  CHECK(why(client, server.base() + "/", 50ms).find("timed out") != std::string::npos);
  try {
    client.send({.url = server.base() + "/", .timeout = 50ms});
    FAIL("it was answered");
  } catch (UnreachableError const&) {
    FAIL("it was reached");
  } catch (MetadataError const& error) {
    CHECK(error.fault().what == "the metadata service gave no answer");
  }
}

TEST_CASE("a server that responds half and hangs costs the timeout") {
  LoopbackServer server(always(
      {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nTRU", .then = Reply::Then::hang}));
  MetadataClient client;
  CHECK(why(client, server.base() + "/", 50ms).find("timed out") != std::string::npos);
}

TEST_CASE("a server that responds half and closes is an error, not a short body") {
  LoopbackServer server(always(
      {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nTRUE", .then = Reply::Then::close}));
  MetadataClient client;
  CHECK(why(client, server.base() + "/") != "it was answered");
}

TEST_CASE("a server that closes at once is an error") {
  LoopbackServer server(always({.bytes = "", .then = Reply::Then::close}));
  MetadataClient client;
  CHECK(why(client, server.base() + "/") != "it was answered");
}

TEST_CASE("a response that is not HTTP is an error") {
  LoopbackServer server(always({.bytes = "SSH-2.0-OpenSSH_9.2\r\n", .then = Reply::Then::close}));
  MetadataClient client;
  CHECK(why(client, server.base() + "/") != "it was answered");
}

TEST_CASE("an endless body is cut off") {
  LoopbackServer server(always({.bytes = "HTTP/1.1 200 OK\r\n\r\n", .then = Reply::Then::flood}));
  MetadataClient client;
  CHECK(why(client, server.base() + "/") == "more than 65536 bytes came");
}

TEST_CASE("an endless header is cut off") {
  LoopbackServer server(always({.bytes = "HTTP/1.1 200 OK\r\nA: ", .then = Reply::Then::flood}));
  MetadataClient client;
  CHECK(why(client, server.base() + "/") != "it was answered");
}

TEST_CASE("endless headers are cut off") {
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += "A: " + std::string(40, 'b') + "\r\n";
  LoopbackServer server(always(answer(200, "", lines)));
  MetadataClient client;
  CHECK(why(client, server.base() + "/") == "more than 65536 bytes came");
}

TEST_CASE("a body of 64 KiB is accepted, and one byte more is not") {
  MetadataClient client;
  LoopbackServer most(always(answer(200, std::string(65536, 'x'))));
  CHECK(client.send({.url = most.base() + "/"}).body.size() == 65536);
  LoopbackServer more(always(answer(200, std::string(65537, 'x'))));
  CHECK(why(client, more.base() + "/") == "more than 65536 bytes came");
}

TEST_CASE("an announced body larger than memory allocates nothing") {
  LoopbackServer server(
      always({.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n",
              .then = Reply::Then::flood}));
  MetadataClient client;
  CHECK(why(client, server.base() + "/") == "more than 65536 bytes came");
}

TEST_CASE("after every kind of failure the next request succeeds") {
  int turn = 0;
  LoopbackServer server([&turn](support::HttpRequest const&) -> Reply {
    switch (turn++) {
      case 0:
        return {.bytes = "", .then = Reply::Then::close};
      case 1:
        return {.bytes = "nonsense\r\n\r\n", .then = Reply::Then::close};
      case 2:
        return {.bytes = "HTTP/1.1 200 OK\r\n\r\n", .then = Reply::Then::flood};
      case 3:
        return support::hang();
      default:
        return answer(200, "here");
    }
  });
  MetadataClient client;
  for (int i = 0; i < 4; ++i) CHECK(why(client, server.base() + "/", 200ms) != "it was answered");
  CHECK(client.send({.url = server.base() + "/"}).body == "here");
}

TEST_CASE("a stop ends a request to a server that hangs") {
  LoopbackServer server(always(support::hang()));
  std::stop_source stop;
  auto asked = std::async(std::launch::async, [&] {
    MetadataClient client(stop.get_token());
    return why(client, server.base() + "/", 10 * support::ages);
  });
  REQUIRE(server.wait_for(1));
  stop.request_stop();
  REQUIRE(asked.wait_for(support::ages) == std::future_status::ready);
  CHECK(asked.get() == "the caller cancelled it");
}

TEST_CASE("after a stop nothing is sent") {
  LoopbackServer server(always(answer(200, "")));
  std::stop_source stop;
  stop.request_stop();
  MetadataClient client(stop.get_token());
  CHECK_THROWS_AS(client.send({.url = server.base() + "/"}), MetadataError);
  CHECK(server.requests().empty());
}

TEST_CASE("clients of several threads do not interfere") {
  LoopbackServer server(always(answer(200, "x")));
  std::vector<std::future<std::size_t>> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(std::async(std::launch::async, [&server] {
      std::size_t bytes = 0;
      for (int k = 0; k < 8; ++k) {
        MetadataClient client;
        bytes += client.send({.url = server.base() + "/"}).body.size();
      }
      return bytes;
    }));
  }
  for (auto& one : all) CHECK(one.get() == 8);
}

TEST_CASE("libcurl does not change the program's signal handlers") {
  struct sigaction before{};
  struct sigaction after{};
  struct sigaction ours{};
  ours.sa_handler = [](int) {};
  ::sigaction(SIGALRM, &ours, &before);
  LoopbackServer server(always(answer(200, "")));
  MetadataClient client;
  client.send({.url = server.base() + "/"});
  ::sigaction(SIGALRM, &before, &after);
  bool const same = after.sa_handler == ours.sa_handler;
  CHECK(same);
}

}  // namespace frugal_test::cluster_metadata_client

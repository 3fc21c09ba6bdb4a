// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: notices
#include <doctest/doctest.h>

#include <frugal/report/doctor/cloud.hpp>

#include "support/loopback_server.hpp"

#include <chrono>
#include <string>

namespace frugal_test::doctor_cloud {

using frugal::doctor::ask_cloud;
using frugal::doctor::Cloud;
using support::answer;
using support::HttpRequest;
using support::LoopbackServer;
using support::Reply;

Cloud asked(LoopbackServer& server) {
  return ask_cloud({.base = server.base(), .timeout = support::ages});
}

TEST_CASE("EC2 answers with a token, and has a type") {
  LoopbackServer server([](HttpRequest const& request) -> Reply {
    if (request.method == "PUT" && request.target == "/latest/api/token") return answer(200, "abc");
    if (request.header("x-aws-ec2-metadata-token") == "abc") return answer(200, "p4d.24xlarge");
    return answer(404, "<html>not found</html>");
  });
  Cloud const cloud = asked(server);
  CHECK(cloud.name == "aws");
  CHECK(cloud.machine == "p4d.24xlarge");
}

TEST_CASE("Google answers with its header, and has a type at the end of a path") {
  LoopbackServer server([](HttpRequest const& request) -> Reply {
    if (request.header("metadata-flavor") != "Google") return answer(403, "");
    return answer(200, "projects/1/machineTypes/a2-highgpu-1g", "Metadata-Flavor: Google\r\n");
  });
  CHECK(asked(server).name == "gcp");
  CHECK(asked(server).machine == "a2-highgpu-1g");
}

TEST_CASE("Azure answers to its header") {
  LoopbackServer server([](HttpRequest const& request) -> Reply {
    if (request.header("metadata") != "true") return answer(400, "");
    return answer(200, "Standard_NC24ads_A100_v4");
  });
  CHECK(asked(server).name == "azure");
  CHECK(asked(server).machine == "Standard_NC24ads_A100_v4");
}

TEST_CASE("another web server is no cloud") {
  LoopbackServer server([](HttpRequest const&) { return answer(200, "<html>welcome</html>"); });
  CHECK(asked(server).name == "");
  CHECK(asked(server).text.find("none of aws, gcp, azure") != std::string::npos);
}

TEST_CASE("nobody at the address is a sentence and no error") {
  std::string base;
  {
    LoopbackServer const closed([](HttpRequest const&) { return answer(200, ""); });
    base = closed.base();
  }
  Cloud const cloud = ask_cloud({.base = base});
  CHECK(cloud.name == "");
  CHECK(cloud.text.starts_with("no metadata service: "));
}

}  // namespace frugal_test::doctor_cloud

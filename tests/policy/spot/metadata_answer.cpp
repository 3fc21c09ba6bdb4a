// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/policy/spot/metadata_answer.hpp>

#include <string>

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

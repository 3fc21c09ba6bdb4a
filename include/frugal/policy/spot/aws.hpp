// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/policy/spot/metadata_answer.hpp>
#include <frugal/policy/spot/metadata_client.hpp>
#include <frugal/policy/spot/notice.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace frugal {

/// Notices of an AWS EC2 spot instance, from version 2 of its metadata service (with tokens).
///
/// An instance that will be terminated, stopped or hibernated gives a preempt notice with AWS's
/// time, about two minutes ahead (hibernation begins at once). A rebalance recommendation is a
/// hint, which may come earlier, at the same time or not at all. Both are best effort.
///
/// A container behind a bridge needs the instance's HttpPutResponseHopLimit to be at least 2: with
/// 1 the token response never arrives, and each poll times out.
///
/// Cost    two requests per poll, which never leave the machine's host.
/// Errors  MetadataError, UnreachableError (from poll); SettingsError for an invalid base address.
/// Source  AWS EC2 User Guide:
///        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
///        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html
///        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
struct Aws {
  static constexpr std::string_view name = "aws";
  static constexpr std::chrono::milliseconds interval{5000};  ///< AWS's recommendation

  std::string base = "http://169.254.169.254";
  std::chrono::seconds token_lifetime{21600};  ///< 1 s to 6 h, the most that AWS grants
  bool rebalance = true;                       ///< poll for the hint as well
  std::chrono::milliseconds timeout{2000};     ///< per request

  class Session;
};

class Aws::Session {
 public:
  Session(Aws const& settings, MetadataClient& client) : aws_(settings), client_(client) {
    aws_.base = detail::checked_base(aws_.base);
    if (aws_.token_lifetime < std::chrono::seconds(1) ||
        aws_.token_lifetime > std::chrono::hours(6)) {
      throw SettingsError(
          {.what = "Aws::token_lifetime is " + std::to_string(aws_.token_lifetime.count()) + " s",
           .where = "",
           .why = "the metadata service gives tokens of 1 s to 6 h",
           .fix = "Leave it at 6 h."});
    }
  }

  std::optional<Notice> poll() {
    if (std::optional<Notice> notice = action()) return notice;
    return aws_.rebalance ? recommendation() : std::nullopt;
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<Notice> action() {
    std::string const url = aws_.base + "/latest/meta-data/spot/instance-action";
    std::optional<detail::Json> const found = object_at(url);
    if (!found) return {};
    std::string const what = text_of(*found, "action", url);
    if (what != "terminate" && what != "stop" && what != "hibernate") {
      throw detail::nonsense(url, "the action is \"" + detail::printable(what, 80) + '"');
    }
    // An unreadable time must not lose the notice.
    detail::Json const* const time = found->find("time");
    std::string const when =
        time != nullptr && time->is(detail::Json::Kind::text) ? time->text() : "an unknown time";
    return Notice{.kind = Notice::Kind::preempt,
                  .deadline = detail::time_of_rfc3339(when),
                  .source = std::string(name),
                  .text = "AWS will " + what + " this instance at " + detail::printable(when, 80)};
  }

  std::optional<Notice> recommendation() {
    std::string const url = aws_.base + "/latest/meta-data/events/recommendations/rebalance";
    std::optional<detail::Json> const found = object_at(url);
    if (!found) return {};
    std::string const when = detail::printable(text_of(*found, "noticeTime", url), 80);
    return Notice{.kind = Notice::Kind::rebalance,
                  .deadline = {},
                  .source = std::string(name),
                  .text = "AWS recommends since " + when + " to leave this instance"};
  }

  /// The object at a path; nothing on 404, which here means that there is none.
  std::optional<detail::Json> object_at(std::string const& url) {
    MetadataAnswer answer = ask(url);
    if (answer.status == 401) {  // expired early, or the machine has moved
      token_.clear();
      answer = ask(url);
    }
    if (answer.status == 404) return {};
    if (answer.status != 200) {
      if (answer.status == 401) token_.clear();
      throw detail::refused(url, answer,
                            "Ask again later; 401 twice means that tokens are not kept.");
    }
    std::optional<detail::Json> parsed = detail::Json::parse(answer.body);
    if (!parsed || !parsed->is(detail::Json::Kind::object)) {
      throw detail::nonsense(url, "no JSON object: \"" + detail::printable(answer.body, 80) + '"');
    }
    return parsed;
  }

  static std::string text_of(detail::Json const& object, char const* key, std::string const& url) {
    detail::Json const* const found = object.find(key);
    if (found == nullptr || !found->is(detail::Json::Kind::text)) {
      throw detail::nonsense(url, "there is no text under \"" + std::string(key) + '"');
    }
    return found->text();
  }

  MetadataAnswer ask(std::string const& url) {
    if (token_.empty() || Clock::now() >= renew_at_) renew();
    return client_.send(
        {.url = url, .headers = {"X-aws-ec2-metadata-token: " + token_}, .timeout = aws_.timeout});
  }

  void renew() {
    std::string const url = aws_.base + "/latest/api/token";
    auto const asked_at = Clock::now();
    token_.clear();
    MetadataAnswer const answer =
        client_.send({.url = url,
                      .method = "PUT",
                      .headers = {"X-aws-ec2-metadata-token-ttl-seconds: " +
                                  std::to_string(aws_.token_lifetime.count())},
                      .timeout = aws_.timeout});
    if (answer.status != 200) {
      throw detail::refused(url, answer,
                            answer.status == 403
                                ? "Turn the instance's metadata service on (HttpEndpoint)."
                                : "Check whether this is an EC2 instance with IMDSv2.");
    }
    std::string token(detail::trimmed(answer.body));
    if (token.empty() || token.size() > 4096 || !detail::is_printable(token)) {
      throw detail::nonsense(url, "no token: \"" + detail::printable(token, 80) + '"');
    }
    token_ = std::move(token);
    // Renew half a minute early, or half-way for short lifetimes, so that no token expires in
    // flight.
    auto const granted = lifetime_of(answer);
    renew_at_ = asked_at + granted - std::min(std::chrono::seconds(30), granted / 2);
  }

  /// The lifetime that the response grants, capped at the requested one.
  std::chrono::seconds lifetime_of(MetadataAnswer const& answer) const {
    std::string_view const said =
        answer.header("X-aws-ec2-metadata-token-ttl-seconds").value_or("");
    long long seconds = 0;
    auto const [end, error] = std::from_chars(said.data(), said.data() + said.size(), seconds);
    if (error != std::errc() || end != said.data() + said.size() || seconds < 0) {
      return aws_.token_lifetime;
    }
    return std::min(aws_.token_lifetime, std::chrono::seconds(seconds));
  }

  Aws aws_;
  MetadataClient& client_;
  std::string token_;
  Clock::time_point renew_at_;
};

static_assert(NoticeProvider<Aws>);

}  // namespace frugal

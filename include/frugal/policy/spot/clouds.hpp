// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/policy/spot/metadata_client.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace frugal {

class MetadataClient;

/// A cloud's announcement about the end of this machine.
struct Notice {
  enum class Kind {
    rebalance,  ///< a hint: the machine has a raised risk of preemption, but may stay
    preempt,    ///< the machine will be preempted
  };

  Kind kind = Kind::preempt;
  /// When the machine is preempted, on the system clock; nothing if the cloud gives no time, or an
  /// unreadable one.
  std::optional<std::chrono::system_clock::time_point> deadline = {};
  std::string source = {};  ///< the cloud: "aws", "gcp", "azure"
  std::string text = {};    ///< the cloud's text, for the log; printable ASCII
};

/// A cloud that gives notices: Aws, Gcp, Azure, or a user-defined type. The type holds the
/// settings; its Session polls, and may cache what it needs (a token, the machine's name).
///
/// poll() returns the current notice, or nothing; it throws if the service is unreachable or gives
/// no sensible answer. One thread calls it. It must send every request through the client, because
/// only these can be interrupted.
template <class P>
concept NoticeProvider =
    std::copyable<P> && std::constructible_from<typename P::Session, P const&, MetadataClient&> &&
    requires(typename P::Session& session) {
      { P::name } -> std::convertible_to<std::string_view>;
      { P::interval } -> std::convertible_to<std::chrono::milliseconds>;
      { session.poll() } -> std::same_as<std::optional<Notice>>;
    };

}  // namespace frugal

namespace frugal::detail {

using NoticeTime = std::optional<std::chrono::system_clock::time_point>;

/// The digits of text[at, at + width) as a number; -1 if any character is not a digit.
inline int digits_at(std::string_view text, std::size_t at, std::size_t width) {
  std::string_view const part = text.substr(at, width);
  for (char const c : part) {
    if (c < '0' || c > '9') return -1;  // from_chars would accept a minus
  }
  int value = -1;
  std::from_chars(part.data(), part.data() + part.size(), value);
  return value;
}

/// Nothing for an invalid time: 30 February, 25 o'clock, a leap second. Nor for a year beyond the
/// range of the clock, whose nanoseconds end in 2262.
inline NoticeTime moment(int year, int month, int day, std::string_view clock) {
  namespace chr = std::chrono;
  if (clock.size() != 8 || clock[2] != ':' || clock[5] != ':') return {};
  int const hour = digits_at(clock, 0, 2);
  int const minute = digits_at(clock, 3, 2);
  int const second = digits_at(clock, 6, 2);
  if (year < 1970 || year > 2200 || month < 0 || day < 0) return {};
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return {};
  chr::year_month_day const date{chr::year(year), chr::month(static_cast<unsigned>(month)),
                                 chr::day(static_cast<unsigned>(day))};
  if (!date.ok()) return {};
  return chr::sys_days(date) + chr::hours(hour) + chr::minutes(minute) + chr::seconds(second);
}

/// Parses AWS's time format, "2017-09-18T08:22:00Z"; nothing for any other text.
///
/// Source  RFC 3339, section 5.6, without fractions and always in UTC.
inline NoticeTime time_of_rfc3339(std::string_view text) {
  if (text.size() != 20 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[19] != 'Z') {
    return {};
  }
  return moment(digits_at(text, 0, 4), digits_at(text, 5, 2), digits_at(text, 8, 2),
                text.substr(11, 8));
}

/// Parses Azure's time format, "Mon, 19 Sep 2016 18:29:47 GMT"; nothing for any other text. Ignores
/// the day of the week: the vendor's own examples have wrong ones.
///
/// Source  RFC 1123, section 5.2.14; RFC 9110, section 5.6.7.
inline NoticeTime time_of_rfc1123(std::string_view text) {
  constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  if (text.size() != 29 || text.substr(3, 2) != ", " || text[7] != ' ' || text[11] != ' ' ||
      text[16] != ' ' || (text.substr(25) != " GMT" && text.substr(25) != " UTC")) {
    return {};
  }
  for (std::size_t month = 0; month < months.size(); ++month) {
    if (text.substr(8, 3) == months[month]) {
      return moment(digits_at(text, 12, 4), static_cast<int>(month) + 1, digits_at(text, 5, 2),
                    text.substr(17, 8));
    }
  }
  return {};
}

/// Nothing if there is none under the key, or something else than a text.
inline std::optional<std::string> text_under(Json const& object, char const* key) {
  Json const* const found = object.find(key);
  if (found == nullptr || !found->is(Json::Kind::text)) return {};
  return found->text();
}

}  // namespace frugal::detail

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
    std::string const when = detail::text_under(*found, "time").value_or("an unknown time");
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
    std::optional<std::string> const found = detail::text_under(object, key);
    if (!found) throw detail::nonsense(url, "there is no text under \"" + std::string(key) + '"');
    return *found;
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

/// Notices of an Azure Spot VM, from its Scheduled Events.
///
/// A Preempt event that names this machine is a preempt notice, at least 30 s ahead, best effort.
/// Events of other machines, which Azure sends to all in a scale set or availability set, and of
/// other types (Freeze, Reboot, Redeploy, Terminate) are ignored.
///
/// The first request enables the events for a machine, and may take two minutes; Azure disables
/// them again after a day without requests.
///
/// Events are acknowledged only if `acknowledge` is set and NoticePoller::acknowledge() is called.
/// An acknowledged event may begin at once, so acknowledge after the save; it begins for every
/// machine that it names.
///
/// Cost    one request per poll, which never leaves the machine's host.
/// Errors  MetadataError, UnreachableError (from poll); SettingsError for an invalid base address.
/// Source  https://learn.microsoft.com/azure/virtual-machines/linux/scheduled-events
///        https://learn.microsoft.com/azure/virtual-machines/instance-metadata-service
struct Azure {
  static constexpr std::string_view name = "azure";
  static constexpr std::chrono::milliseconds interval{1000};  ///< Azure's recommendation

  std::string base = "http://169.254.169.254";
  std::string machine = {};  ///< its name in events; empty: ask the metadata service
  bool acknowledge = false;  ///< whether NoticePoller::acknowledge() starts the event early
  std::chrono::milliseconds first_timeout{
      130000};                              ///< of each request until the first answer about events
  std::chrono::milliseconds timeout{2000};  ///< of any other request

  class Session;
};

class Azure::Session {
  using Json = detail::Json;

 public:
  Session(Azure const& settings, MetadataClient& client)
      : azure_(settings), client_(client), machine_(settings.machine) {
    azure_.base = detail::checked_base(azure_.base);
  }

  std::optional<Notice> poll() {
    if (machine_.empty()) machine_ = asked_name();
    MetadataAnswer const answer =
        client_.send({.url = events_url(),
                      .headers = {"Metadata: true"},
                      .timeout = answered_ ? azure_.timeout : azure_.first_timeout});
    if (answer.status != 200) {
      throw detail::refused(events_url(), answer, "Check whether this is an Azure VM.");
    }
    std::optional<Json> const document = Json::parse(answer.body);
    Json const* const events = document ? document->find("Events") : nullptr;
    if (events == nullptr || !events->is(Json::Kind::array)) {
      throw detail::nonsense(events_url(), "no JSON object with an array of Events: \"" +
                                               detail::printable(answer.body, 80) + '"');
    }
    answered_ = true;
    return notice_among(*events, answer.body);
  }

  /// Starts the event of the last notice before its time. Sends nothing and returns false if
  /// `acknowledge` is not set or there was no notice with an id.
  bool acknowledge() {
    if (!azure_.acknowledge || event_id_.empty()) return false;
    detail::JsonWriter body;
    body.object().key("StartRequests").array().object().add("EventId", event_id_);
    MetadataAnswer const answer =
        client_.send({.url = events_url(),
                      .method = "POST",
                      .headers = {"Metadata: true", "Content-Type: application/json"},
                      .body = body.str(),
                      .timeout = azure_.timeout});
    if (answer.status != 200) {
      throw detail::refused(events_url(), answer, "Nothing is lost: the event begins at its time.");
    }
    return true;
  }

 private:
  std::string events_url() const {
    return azure_.base + "/metadata/scheduledevents?api-version=2020-07-01";
  }

  std::string asked_name() {
    std::string const url =
        azure_.base + "/metadata/instance/compute/name?api-version=2021-02-01&format=text";
    MetadataAnswer const answer =
        client_.send({.url = url, .headers = {"Metadata: true"}, .timeout = azure_.timeout});
    if (answer.status != 200) {
      throw detail::refused(url, answer, "Check whether this is an Azure VM, or give its name.");
    }
    std::string_view const said = detail::trimmed(answer.body);
    // Azure's names have at most 64 characters; an answer the size of a page is a page.
    if (said.empty() || said.size() > 256 || !detail::is_printable(said)) {
      throw detail::nonsense(url, "no name of a machine: \"" + detail::printable(said, 80) + '"');
    }
    return std::string(said);
  }

  /// A malformed event does not hide a valid one; alone it is an error.
  std::optional<Notice> notice_among(Json const& events, std::string const& body) {
    bool broken = false;
    for (Json const& event : events.items()) {
      std::optional<std::string> const type = detail::text_under(event, "EventType");
      if (type && *type != "Preempt") continue;
      Json const* const resources = event.find("Resources");
      if (!type || resources == nullptr || !resources->is(Json::Kind::array)) {
        broken = true;
        continue;
      }
      if (names_this(*resources)) return notice_of(event);
    }
    if (broken) {
      throw detail::nonsense(events_url(), "an invalid event, in " + detail::printable(body, 300));
    }
    return {};
  }

  /// Whether this machine is among the names, ignoring case: Azure names never differ by case
  /// alone.
  bool names_this(Json const& resources) const {
    return std::any_of(resources.items().begin(), resources.items().end(), [this](Json const& one) {
      return one.is(Json::Kind::text) && detail::equal_ignoring_case(one.text(), machine_);
    });
  }

  Notice notice_of(Json const& event) {
    event_id_ = detail::text_under(event, "EventId").value_or("");
    std::string const when = detail::text_under(event, "NotBefore").value_or("");
    std::string text = "Azure evicts " + detail::printable(machine_, 80);
    auto deadline = detail::time_of_rfc1123(when);
    if (detail::text_under(event, "EventStatus") == "Started") {
      text += " now";
      // An event that has begun has no time; use the time of first sight instead.
      if (!started_) started_ = std::chrono::system_clock::now();
      deadline = started_;
    } else {
      text += " not before " + (when.empty() ? "an unknown time" : detail::printable(when, 80));
    }
    if (auto const why = detail::text_under(event, "Description"); why && !why->empty()) {
      text += ": " + detail::printable(*why);
    }
    return {.kind = Notice::Kind::preempt,
            .deadline = deadline,
            .source = std::string(name),
            .text = std::move(text)};
  }

  Azure azure_;
  MetadataClient& client_;
  std::string machine_;
  std::string event_id_;
  bool answered_ = false;
  std::optional<std::chrono::system_clock::time_point> started_;
};

static_assert(NoticeProvider<Azure>);

/// Notices of a Google Compute Engine Spot VM.
///
/// Google gives no time: the machine stops about 30 s after the notice, best effort, so the
/// deadline is the time of first sight plus `grace`. Polling every second is simpler than
/// `wait_for_change` and at most a second slower: a request that hangs on purpose looks like a
/// service that hangs.
///
/// Cost    one request per poll, which never leaves the machine's host.
/// Errors  MetadataError, UnreachableError (from poll); SettingsError for an invalid base address.
/// Source  https://cloud.google.com/compute/docs/instances/create-use-spot#detect-preemption
///        https://cloud.google.com/compute/docs/instances/spot#preemption
///        https://cloud.google.com/compute/docs/metadata/querying-metadata
struct Gcp {
  static constexpr std::string_view name = "gcp";
  static constexpr std::chrono::milliseconds interval{1000};  ///< there is only half a minute

  /// The address of metadata.google.internal: name servers fail too.
  std::string base = "http://169.254.169.254";
  std::chrono::seconds grace{30};           ///< from the notice to the end
  std::chrono::milliseconds timeout{2000};  ///< per request

  class Session;
};

class Gcp::Session {
 public:
  Session(Gcp const& settings, MetadataClient& client) : gcp_(settings), client_(client) {
    gcp_.base = detail::checked_base(gcp_.base);
  }

  std::optional<Notice> poll() {
    std::string const url = gcp_.base + "/computeMetadata/v1/instance/preempted";
    MetadataAnswer const answer =
        client_.send({.url = url, .headers = {"Metadata-Flavor: Google"}, .timeout = gcp_.timeout});
    // Tells Google's responses from those of a portal that answers everything.
    if (answer.header("Metadata-Flavor") != "Google") {
      throw detail::nonsense(url, "the answer (" + std::to_string(answer.status) +
                                      ") does not say Metadata-Flavor: Google");
    }
    if (answer.status != 200) {
      throw detail::refused(url, answer, "Check whether this is a Compute Engine VM.");
    }
    std::string_view const said = detail::trimmed(answer.body);
    if (said == "FALSE") return {};
    if (said != "TRUE") {
      throw detail::nonsense(url, "neither TRUE nor FALSE: \"" + detail::printable(said, 80) + '"');
    }
    if (!seen_) seen_ = std::chrono::system_clock::now();
    return Notice{.kind = Notice::Kind::preempt,
                  .deadline = *seen_ + gcp_.grace,
                  .source = std::string(name),
                  .text = "Google Cloud preempts this VM"};
  }

 private:
  Gcp gcp_;
  MetadataClient& client_;
  std::optional<std::chrono::system_clock::time_point> seen_;
};

static_assert(NoticeProvider<Gcp>);

}  // namespace frugal

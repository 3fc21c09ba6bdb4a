// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/policy/spot/metadata_answer.hpp>
#include <frugal/policy/spot/metadata_client.hpp>
#include <frugal/policy/spot/notice.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace frugal {

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
      std::optional<std::string> const type = text_of(event, "EventType");
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
    event_id_ = text_of(event, "EventId").value_or("");
    std::string const when = text_of(event, "NotBefore").value_or("");
    std::string text = "Azure evicts " + detail::printable(machine_, 80);
    auto deadline = detail::time_of_rfc1123(when);
    if (text_of(event, "EventStatus") == "Started") {
      text += " now";
      // An event that has begun has no time; use the time of first sight instead.
      if (!started_) started_ = std::chrono::system_clock::now();
      deadline = started_;
    } else {
      text += " not before " + (when.empty() ? "an unknown time" : detail::printable(when, 80));
    }
    if (auto const why = text_of(event, "Description"); why && !why->empty()) {
      text += ": " + detail::printable(*why);
    }
    return {.kind = Notice::Kind::preempt,
            .deadline = deadline,
            .source = std::string(name),
            .text = std::move(text)};
  }

  static std::optional<std::string> text_of(Json const& event, char const* key) {
    Json const* const found = event.find(key);
    if (found == nullptr || !found->is(Json::Kind::text)) return {};
    return found->text();
  }

  Azure azure_;
  MetadataClient& client_;
  std::string machine_;
  std::string event_id_;
  bool answered_ = false;
  std::optional<std::chrono::system_clock::time_point> started_;
};

static_assert(NoticeProvider<Azure>);

}  // namespace frugal

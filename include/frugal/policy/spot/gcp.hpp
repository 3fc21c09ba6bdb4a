// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/spot/metadata_answer.hpp>
#include <frugal/policy/spot/metadata_client.hpp>
#include <frugal/policy/spot/notice.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace frugal {

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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

namespace frugal {

class MetadataClient;

/// What a cloud says about the end of this machine.
struct Notice {
  enum class Kind {
    rebalance,  ///< a hint: the machine is more likely than others to be taken, and may stay
    preempt,    ///< the machine will be taken
  };

  Kind kind = Kind::preempt;
  /// When the machine goes, on the system's clock; nothing if the cloud does not say, or says it in
  /// a form that is not understood.
  std::optional<std::chrono::system_clock::time_point> deadline = {};
  std::string source = {};  ///< the cloud: "aws", "gcp", "azure"
  std::string text = {};    ///< what it said, for the log; printable ASCII
};

/// A cloud that gives notices: Aws, Gcp, Azure, or one of your own. The type is its settings; its
/// Session asks once per poll, and may remember what it has to (a token, the machine's name).
///
/// poll() gives what is announced now, or nothing; it throws when the service cannot be asked or
/// gives no sensible answer. It is called by one thread, and uses the client for all that it asks,
/// since this is what can be interrupted.
template <class P>
concept NoticeProvider =
    std::copyable<P> && std::constructible_from<typename P::Session, P const&, MetadataClient&> &&
    requires(typename P::Session& session) {
      { P::name } -> std::convertible_to<std::string_view>;
      { P::interval } -> std::convertible_to<std::chrono::milliseconds>;
      { session.poll() } -> std::same_as<std::optional<Notice>>;
    };

}  // namespace frugal

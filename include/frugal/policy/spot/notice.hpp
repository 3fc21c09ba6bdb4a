// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

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

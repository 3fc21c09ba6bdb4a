// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <locale>
#include <sstream>
#include <string>

namespace frugal::detail {

/// The exchanges of one Communicator that a rank has begun: messages, which say where it is
/// (ControlFrame), and tensors, which do not. By these two ranks find that each waits for an exchange that
/// the other one cannot begin: what a backend would wait for until its limit.
struct BegunExchanges {
  std::uint64_t look = 0;  ///< how often it has said so
  std::uint64_t messages = 0;
  std::uint64_t tensors = 0;
  std::uint64_t awaited =
      0;               ///< the number of the exchange of tensors that it waits for; 0: a message
  std::string what{};  ///< the one that it waits for

  std::string text() const {
    return std::to_string(look) + ' ' + std::to_string(messages) + ' ' + std::to_string(tensors) +
           ' ' + std::to_string(awaited) + ' ' + what;
  }
  static BegunExchanges parse(std::string const& text) {
    std::istringstream in(text);
    in.imbue(std::locale::classic());  // the program's may group digits
    BegunExchanges begun;
    in >> begun.look >> begun.messages >> begun.tensors >> begun.awaited;
    in.get();
    std::getline(in, begun.what);
    return begun;
  }

  /// Whether it still waits for the same as when it said `before`.
  bool still(BegunExchanges const& before) const {
    return look > before.look && messages == before.messages && tensors == before.tensors &&
           awaited == before.awaited;
  }

  /// Whether this rank waits for tensors of the other one, which has not begun to send them, and waits for a
  /// message of this one, which has not begun that: neither can. However slow the network is.
  bool blocks(BegunExchanges const& other) const {
    return awaited != 0 && other.awaited == 0 && other.tensors < awaited &&
           messages < other.messages;
  }
};

}  // namespace frugal::detail

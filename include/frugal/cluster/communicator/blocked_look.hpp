// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator/c10d.hpp>
#include <frugal/error.hpp>

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

/// The looks of a wait that takes long at what the others wait for (BegunExchanges).
class BlockedLook {
 public:
  explicit BlockedLook(std::chrono::milliseconds first = std::chrono::seconds(1)) : pause_(first) {}

  struct Found {
    int rank = 0;
    std::string waits_in{};
  };
  /// The rank for which a wait for all cannot end, because it is at another place of the run. It must have
  /// said so again since this rank has looked: what it has said before may be of an earlier wait. Throws
  /// Error for a value that is not of this run; without an answer of the store it has seen nothing.
  std::optional<Found> look(c10d::Store& store, int rank, int size, BegunExchanges const& mine) {
    next_ = std::chrono::steady_clock::now() + pause_;
    pause_ = std::min<std::chrono::milliseconds>(2 * pause_, std::chrono::seconds(30));
    auto const key = [](int of) { return "begun/" + std::to_string(of); };
    before_.resize(static_cast<std::size_t>(size));
    std::vector<BegunExchanges> now = before_;
    try {
      store.set(key(rank), mine.text());
      for (int other = 0; other < size; ++other) {
        if (other == rank || !store.check({key(other)})) continue;
        now[static_cast<std::size_t>(other)] = BegunExchanges::parse(store.get_to_str(key(other)));
      }
    } catch (Error const&) {
      throw;
    } catch (std::exception const&) {
      return std::nullopt;  // the watch sees that too
    }
    for (int other = 0; other < size; ++other) {
      BegunExchanges const& there = now[static_cast<std::size_t>(other)];
      BegunExchanges& before = before_[static_cast<std::size_t>(other)];
      bool const stays = before.look != 0 && there.still(before);
      if (!stays) before = there;
      if (stays && mine.blocks(there)) return Found{.rank = other, .waits_in = there.what};
    }
    return std::nullopt;
  }
  bool is_due() const { return std::chrono::steady_clock::now() >= next_; }

 private:
  std::chrono::milliseconds pause_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + pause_;
  std::vector<BegunExchanges> before_{};
};

}  // namespace frugal::detail

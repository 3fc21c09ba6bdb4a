// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include <frugal/cluster/communicator/rendezvous.hpp>

namespace frugal::detail {

/// Where a rank is, as it tells the others at each beat (RankWatch).
struct RankPlace {
  enum class State { joined, runs, left, failed, gone };

  std::uint64_t beats = 0;
  State state = State::joined;  ///< no run has begun
  bool looks = false;           ///< for a verdict, after an exchange has failed
  bool noticed = false;         ///< that the run is over: it has the verdict
  std::uint64_t step = 0;
  std::uint64_t exchanges = 0;  ///< begun
  bool waits = false;           ///< in the last one of them
  std::uint64_t since = 0;      ///< milliseconds in which it has neither begun nor left one
  int busy = 0;                 ///< with how many checkpoints
  std::uint64_t busy_time = 0;  ///< microseconds so far
  std::string what{};           ///< the last exchange, or the error

  /// "at step 7 in the sum of gradients".
  std::string where() const {
    return "at step " + std::to_string(step) + (waits ? " in " : " after ") +
           (what.empty() ? "its start" : what);
  }

  std::string text() const {
    std::ostringstream out;
    // The program's may group digits, and another process reads them.
    out.imbue(std::locale::classic());
    out << beats << ' ' << static_cast<int>(state) << ' ' << noticed << ' ' << looks << ' ' << step
        << ' ' << exchanges << ' ' << waits << ' ' << since << ' ' << std::max(busy, 0) << ' '
        << busy_time << ' ' << what;
    return out.str();
  }
  /// Null if it is not of this form.
  static std::optional<RankPlace> parse(std::string const& said) {
    RankPlace place;
    std::istringstream in(said);
    in.imbue(std::locale::classic());
    int state = 0;
    in >> place.beats >> state >> place.noticed >> place.looks >> place.step >> place.exchanges >>
        place.waits >> place.since >> place.busy >> place.busy_time;
    if (!in || state < 0 || state > static_cast<int>(State::gone)) return std::nullopt;
    place.state = static_cast<State>(state);
    in.get();
    std::getline(in, place.what);
    place.what = printable(std::move(place.what), 300);
    return place;
  }
};

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/communicator/rank_watch.hpp>

#include <frugal/inline.hpp>

#include <cstdio>
#include <cstdlib>
#include <locale>
#include <sstream>
#include <thread>

namespace frugal::detail {

FRUGAL_INLINE std::string RankPlace::text() const {
  std::ostringstream out;
  // The program's may group digits, and another process reads them.
  out.imbue(std::locale::classic());
  out << beats << ' ' << static_cast<int>(state) << ' ' << noticed << ' ' << looks << ' ' << step
      << ' ' << exchanges << ' ' << waits << ' ' << since << ' ' << std::max(busy, 0) << ' '
      << busy_time << ' ' << what;
  return out.str();
}

FRUGAL_INLINE std::optional<RankPlace> RankPlace::parse(std::string const& said) {
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

FRUGAL_INLINE bool WaitLimit::is_over(std::vector<BusyTime> const& now) {
  unseen_ = Time(0);
  bool was_busy = false, is_busy = false;
  for (std::size_t rank = 0; rank < now.size(); ++rank) {
    is_busy = is_busy || now[rank].now;
    was_busy =
        was_busy || (before_.empty() ? now[rank].now : now[rank].total > before_[rank].total);
  }
  if (was_busy) waited_ = Time(0);
  if (!now.empty()) before_ = now;
  // A busy rank whose beat is late may have ended.
  return waited_ >= limit_ + (is_busy ? late_ : Time(0));
}

FRUGAL_INLINE RankWatch::RankWatch(c10::intrusive_ptr<c10d::Store> store, int rank,
                                   std::vector<std::string> hosts, bool serves,
                                   WatchTimes const& times)
    : store_(std::move(store)),
      rank_(rank),
      hosts_(std::move(hosts)),
      serves_(serves),
      times_(times) {
  store_->setTimeout(4 * times_.beat);
  owners_.resize(hosts_.size());
  silence_.resize(hosts_.size());
  write();
  look();
  thread_ = std::make_unique<PeriodicThread>(std::chrono::duration<double>(times_.beat).count(),
                                             [this] { beat(); });
}

FRUGAL_INLINE std::vector<BusyTime> RankWatch::busy_times() {
  try {
    std::vector<BusyTime> all;
    for (Place const& each : read()) all.push_back({each.busy_time, each.busy != 0});
    return all;
  } catch (std::exception const&) {
    return {};
  }
}

FRUGAL_INLINE void RankWatch::fail(std::string const& text) noexcept {
  try {
    std::string const line = text.substr(0, text.find('\n'));
    change([&] {
      here_.state = State::failed;
      here_.what = line;
    });
    write();
    std::string const found =
        agree(name(rank_) + " failed at step " + std::to_string(here_.step) + ": " + line);
    std::scoped_lock const lock(mutex_);
    if (verdict_.empty()) verdict_ = found;  // leave_run() waits until the others have it
  } catch (std::exception const&) {
    // Its beats will stop.
  }
}

FRUGAL_INLINE std::string RankWatch::verdict() {
  std::string found;
  {
    std::scoped_lock const lock(mutex_);
    if (verdict_.empty()) return {};
    here_.noticed = true;
    found = verdict_;
  }
  write();
  linger();
  return found;
}

FRUGAL_INLINE std::string RankWatch::look_for_ended() {
  if (std::string found = seen_verdict(); !found.empty()) return found;
  try {
    std::vector<Place> const now = read();
    std::vector<bool> const ended = ended_in(now);
    std::vector<Place> before = now;
    for (std::size_t rank = 0; rank < ended.size(); ++rank) {
      if (!ended[rank]) --before[rank].beats;
    }
    std::string const found = ended_of(before, now);
    return found.empty() ? std::string() : agree(found);
  } catch (std::exception const& error) {
    return why(error);
  }
}

FRUGAL_INLINE std::string RankWatch::find_ended() {
  try {
    auto const [before, now] = look_twice();
    std::string const ended = ended_of(before, now);
    return ended.empty() ? std::string() : agree(ended);
  } catch (std::exception const& error) {
    return why(error);
  }
}

FRUGAL_INLINE std::string RankWatch::ends_by(std::exception const& error) {
  try {
    return agree(name(rank_) + " ends: " + why(error));
  } catch (std::exception const&) {
    return why(error);
  }
}

FRUGAL_INLINE std::string RankWatch::accuse(int rank, std::string const& what) {
  try {
    return agree(name(rank) + " has not " + what);
  } catch (std::exception const& error) {
    return why(error);
  }
}

FRUGAL_INLINE std::string RankWatch::find() {
  change([this] { here_.looks = true; });
  write();
  try {
    auto const [before, now] = look_twice();
    return noticed(agree(judge(before, now)));
  } catch (std::exception const& error) {
    return why(error);
  }
}

FRUGAL_INLINE std::string RankWatch::why(std::exception const& error) {
  auto const* known = dynamic_cast<Error const*>(&error);
  if (known == nullptr) return std::string(no_store);
  Fault const& fault = known->fault();
  return fault.what + " (" + fault.where + "): " + fault.why;
}

FRUGAL_INLINE std::shared_ptr<void> RankWatch::busier(int by) {
  auto const add = [this](int more) {
    change([&] {
      auto const now = Clock::now();
      if (here_.busy > 0) busy_before_ += now - busy_since_;
      busy_since_ = now;
      here_.busy += more;
    });
    write();
  };
  add(by);
  return {nullptr, [add, by](void*) { add(-by); }};
}

FRUGAL_INLINE std::vector<bool> RankWatch::ended_in(std::vector<Place> const& now) {
  std::vector<bool> ended;
  std::scoped_lock const lock(hosts_mutex_);
  auto const at = Clock::now();
  auto const passed = std::min<Clock::duration>(at - looked_at_, 2 * times_.beat);
  looked_at_ = at;
  for (std::size_t rank = 0; rank < now.size(); ++rank) {
    Silence& silence = silence_[rank];
    bool const beats = now[rank].beats != silence.beats;
    silence.passed = beats ? Clock::duration::zero() : silence.passed + passed;
    silence.beats = now[rank].beats;
    bool const is_dead = silence.passed >= 2 * times_.beat && owners_[rank] &&
                         owners_[rank]->life() == LockOwner::Life::dead;
    State const state = now[rank].state;
    ended.push_back(static_cast<int>(rank) != rank_ &&
                    (state == State::failed || state == State::gone || is_dead ||
                     (now[rank].beats != 0 && silence.passed >= times_.silent)));
  }
  return ended;
}

FRUGAL_INLINE void RankWatch::write() {
  std::scoped_lock const one_text(write_mutex_);
  std::string text;
  {
    std::scoped_lock const lock(mutex_);
    if (store_is_gone_) return;
    auto const now = Clock::now();
    auto const in = [](Clock::duration time) {
      return static_cast<std::uint64_t>(
          std::chrono::duration_cast<std::chrono::microseconds>(time).count());
    };
    here_.since = in(now - moved_) / 1000;
    here_.busy_time = in(busy_before_ + (here_.busy > 0 ? now - busy_since_ : now - now));
    ++here_.beats;
    text = here_.text();
  }
  try {
    store_->set(key(rank_), text);
  } catch (std::exception const& error) {
    lose_store(why(error));
  }
}

FRUGAL_INLINE void RankWatch::linger() {
  if (!serves_) return;
  auto const begun = Clock::now();
  bool meets = false;
  auto until = begun + 20 * times_.beat;
  {
    std::scoped_lock const lock(mutex_);
    meets = !has_met_.load() || connections_ != Connections::rest;
    if (lingers_until_ == Clock::time_point()) lingers_until_ = until;
    until = lingers_until_;
  }
  try {
    std::vector<Place> const first = read();
    std::vector<Place> all = first;
    auto const is_awaited = [&](std::size_t rank) {
      Place const& each = all[rank];
      bool const is_here =
          each.state == State::runs || (each.state == State::joined && each.beats != 0);
      if (static_cast<int>(rank) == rank_ || each.noticed || !is_here) return false;
      auto const now = Clock::now();
      if (each.beats == first[rank].beats && now > begun + 5 * times_.beat) return false;
      bool const waits = each.waits || each.looks || (meets && each.state == State::joined);
      return now < (waits ? until : begun + 2 * times_.beat);
    };
    while (true) {
      bool any = false;
      for (std::size_t rank = 0; rank < all.size(); ++rank) any = any || is_awaited(rank);
      if (!any) return;
      std::this_thread::sleep_for(times_.beat / 5);
      all = read();
    }
  } catch (std::exception const&) {
    return;
  }
}

FRUGAL_INLINE RankWatch::Place RankWatch::place_of(int rank) {
  Place place;
  // Before all have come.
  if (!has_met_.load() && !store_->check({key(rank)})) return place;
  std::optional<Place> const said = Place::parse(store_->get_to_str(key(rank)));
  if (said) return *said;
  throw ClusterError({.what = "what a rank says of itself is damaged",
                      .where = "rank " + std::to_string(rank),
                      .why = "it is not of this version of frugal",
                      .fix = "Use one version of frugal in all processes."});
}

FRUGAL_INLINE void RankWatch::beat() {
  write();
  look();
  look_while_opening();
  end_wait();
  std::string ending;
  {
    std::scoped_lock const lock(mutex_);
    bool const connects = connections_ != Connections::rest;
    auto const grace = connections_ == Connections::open
                           ? std::min<Clock::duration>(times_.grace, 20 * times_.beat)
                           : (here_.busy <= 0 ? 1 : most_busy) * times_.grace;
    bool const ends = !verdict_.empty() && ((!here_.noticed && !here_.looks) || connects) &&
                      (here_.state == State::runs || connects) &&
                      Clock::now() - std::max(found_, moved_) > grace;
    if (ends) ending = verdict_;
  }
  if (ending.empty()) return;
  std::fprintf(stderr, "frugal: rank %d ends, because the run has: %s\n", rank_, ending.c_str());
  std::fflush(stderr);
  std::_Exit(1);
}

/// While gloo connects, the thread that would look at the others waits in gloo, for five times its limit.
FRUGAL_INLINE void RankWatch::look_while_opening() {
  {
    std::scoped_lock const lock(mutex_);
    if (connections_ != Connections::open || store_is_gone_ || !verdict_.empty()) return;
  }
  std::string const ended = look_for_ended();
  if (ended.empty()) return;
  std::scoped_lock const lock(mutex_);
  if (verdict_.empty()) verdict_ = ended;
  found_ = Clock::now();
}

FRUGAL_INLINE void RankWatch::end_wait() {
  std::scoped_lock const waiting(waiting_mutex_);
  if (!waiting_) return;
  bool is_over = false;
  {
    std::scoped_lock const lock(mutex_);
    is_over = !verdict_.empty();
  }
  if (!is_over) {
    auto const now = Clock::now();
    auto const passed = std::min<Clock::duration>(now - passed_, 2 * times_.beat);
    passed_ = now;
    wait_limit_->pass(std::chrono::duration_cast<std::chrono::milliseconds>(passed));
    if (!wait_limit_->wants_look() || !wait_limit_->is_over(busy_times())) return;
  }
  std::exchange(waiting_, nullptr)();
}

FRUGAL_INLINE void RankWatch::look() {
  {
    std::scoped_lock const lock(mutex_);
    if (store_is_gone_ || !verdict_.empty()) return;
  }
  try {
    if (!store_->check({"verdict"})) return;
    std::string const found = printable(store_->get_to_str("verdict"));
    std::scoped_lock const lock(mutex_);
    if (verdict_.empty()) verdict_ = found;
    found_ = Clock::now();
  } catch (std::exception const& error) {
    lose_store(why(error));
  }
}

FRUGAL_INLINE std::pair<std::vector<RankWatch::Place>, std::vector<RankWatch::Place>>
RankWatch::look_twice() {
  std::pair<std::vector<Place>, std::vector<Place>> both{read(), {}};
  std::this_thread::sleep_for(times_.beat * 5 / 2);
  both.second = read();
  std::scoped_lock const lock(hosts_mutex_);
  for (std::size_t rank = 0; rank < owners_.size(); ++rank) {
    // On a busy machine a beat is late: the system knows that its process lives.
    bool const lives = owners_[rank] && owners_[rank]->life() == LockOwner::Life::alive;
    if (lives && both.first[rank].beats == both.second[rank].beats) --both.first[rank].beats;
  }
  return both;
}

FRUGAL_INLINE std::string RankWatch::ended_of(std::vector<Place> const& before,
                                              std::vector<Place> const& now) const {
  State const own = now[static_cast<std::size_t>(rank_)].state;
  std::string ended, left;
  for (std::size_t rank = 0; rank < now.size(); ++rank) {
    Place const& place = now[rank];
    if (place.state == State::failed)
      return name(static_cast<int>(rank)) + " failed at step " + std::to_string(place.step) + ": " +
             place.what;
    if (static_cast<int>(rank) == rank_) continue;
    if (place.state == State::gone || (place.state == State::left && own == State::runs)) {
      left += (left.empty() ? "" : ", ") + name(static_cast<int>(rank));
    } else if (place.beats == before[rank].beats) {
      ended += (ended.empty() ? "" : "; ") + name(static_cast<int>(rank)) +
               " has ended; last seen " + place.where();
    }
  }
  if (!ended.empty() || left.empty()) return ended;
  return left + " left the run before the others";
}

FRUGAL_INLINE std::string RankWatch::judge(std::vector<Place> const& before,
                                           std::vector<Place> const& now) const {
  if (std::string ended = ended_of(before, now); !ended.empty()) return ended;
  State const own = now[static_cast<std::size_t>(rank_)].state;
  std::uint64_t most = 0;
  for (Place const& place : now) most = std::max(most, place.exchanges);
  // A rank that waits for one that hangs, alone or in a group of a few, may have made as few exchanges.
  auto const is_behind = [&](Place const& place) { return place.exchanges != most; };
  bool const any = std::ranges::any_of(now, is_behind);
  auto const works = [&](Place const& place) {
    return place.state == own && !place.waits && (!any || is_behind(place));
  };
  bool const any_works = std::ranges::any_of(now, works);
  std::string behind;
  for (std::size_t rank = 0; rank < now.size(); ++rank) {
    if (!(any_works ? works(now[rank]) : is_behind(now[rank]))) continue;
    behind += (behind.empty() ? "" : "; ") + name(static_cast<int>(rank)) + " hangs " +
              now[rank].where() + ", for " + std::to_string(now[rank].since / 1000) + " s";
  }
  if (!behind.empty()) return behind;
  return "no rank is behind: the network does not carry " + now.front().what;
}

}  // namespace frugal::detail

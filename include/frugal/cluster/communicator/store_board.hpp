// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <frugal/cluster/communicator/c10d.hpp>
#include <frugal/cluster/communicator/rank_watch.hpp>
#include <frugal/cluster/communicator/rendezvous.hpp>
#include <frugal/core/state/save_board.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// The processes' board in their store.
class StoreBoard final : public SaveBoard {
 public:
  /// `store` must be this object's own: it is used while others wait in theirs.
  StoreBoard(c10::intrusive_ptr<c10d::Store> store, std::shared_ptr<RankWatch> watch, unsigned rank,
             unsigned count, std::chrono::milliseconds limit)
      : SaveBoard(rank, count), store_(std::move(store)), watch_(std::move(watch)), limit_(limit) {}

  void post(std::string const& key, std::string const& text) override {
    asked([&] { store_->set(key, text); });
  }
  std::string await(unsigned rank, std::string const& key) override {
    using Clock = std::chrono::steady_clock;
    auto const waits = watch_->idle();
    auto const begun = Clock::now();
    auto looked = begun, passed = begun;
    WaitLimit limit = watch_->limit_of(limit_);
    std::chrono::milliseconds pause(1);
    while (!is_there(key)) {
      if (std::string const verdict = watch_->seen_verdict(); !verdict.empty()) refuse(verdict);
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, std::chrono::milliseconds(50));
      // No exchange breaks where all wait here.
      if (Clock::now() - looked > std::chrono::milliseconds(500)) {
        std::string const ended = watch_->look_for_ended();
        if (is_there(key)) break;
        if (!ended.empty()) refuse(ended);
        looked = Clock::now();
      }
      auto const now = Clock::now();
      // Not more: this process may have been stopped.
      auto const more = std::chrono::duration_cast<std::chrono::milliseconds>(now - passed);
      passed += more;
      limit.pass(std::min<std::chrono::milliseconds>(more, std::chrono::seconds(2)));
      if (limit.wants_look() && limit.is_over(watch_->busy_times()) && !is_there(key)) {
        refuse(watch_->accuse(
            static_cast<int>(rank),
            "written its part of a checkpoint for " +
                seconds_text(
                    std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun))));
      }
    }
    std::string text;
    asked([&] { text = store_->get_to_str(key); });
    return text;
  }
  void forget(std::string const& key) override {
    asked([&] { store_->deleteKey(key); });
  }

 private:
  bool is_there(std::string const& key) {
    bool there = false;
    asked([&] { there = store_->check({key}); });
    return there;
  }
  template <class Ask>
  void asked(Ask&& ask) {
    try {
      ask();
    } catch (std::exception const& error) {
      refuse(std::string("the store does not answer: ") + first_line(error));
    }
  }
  [[noreturn]] void refuse(std::string const& why) const {
    throw ClusterError(
        {.what = "the processes could not write a checkpoint together",
         .where = "rank " + std::to_string(rank()) + " of " + std::to_string(count()),
         .why = why,
         .fix = "Read the output of the rank that is named, and start all again."});
  }

  c10::intrusive_ptr<c10d::Store> store_;
  std::shared_ptr<RankWatch> watch_;
  std::chrono::milliseconds limit_;  ///< of a wait
};

}  // namespace frugal::detail

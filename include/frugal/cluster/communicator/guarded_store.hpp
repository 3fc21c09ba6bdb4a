// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <frugal/base/hash.hpp>
#include <frugal/cluster/communicator/c10d.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// A store that is open to anyone on the network: what a process of this run has put there is told from
/// everything else by a tag of its key and value under the run's token.
///
/// LibTorch's store has no authentication, and lists all keys to anyone. The token never travels; who
/// listens can repeat what a process has said under the same key, also in an earlier run with the same
/// token, or remove it, and can say nothing new.
///
/// Errors  ClusterError for a value without the tag, one that is too long, and one that does not come.
class GuardedStore final : public c10d::Store {
 public:
  /// Bytes of a value: LibTorch's store takes no longer one.
  static constexpr std::size_t most = std::size_t{8} << 20;

  GuardedStore(c10::intrusive_ptr<c10d::Store> store, std::string const& token)
      : GuardedStore(std::move(store), SipHash::of(fixed, token)) {}
  GuardedStore(c10::intrusive_ptr<c10d::Store> store, SipHash::Key const& key)
      : store_(std::move(store)), key_(key) {}

  /// What all processes with this token have alike; says nothing about it.
  static std::string fingerprint(std::string const& token) {
    return token.empty() ? "none" : SipHash::hex(SipHash::of(SipHash::of(fixed, token), "token"));
  }

  using c10d::Store::compareSet;
  using c10d::Store::set;

  /// Without what is called in a wait.
  c10::intrusive_ptr<c10d::Store> clone() override {
    auto copy = c10::make_intrusive<GuardedStore>(store_->clone(), key_);
    copy->setTimeout(timeout_);
    return copy;
  }
  // setTimeout() is not that of the store below, which others share: all waits are in wait() here.
  /// Called from time to time while a value is awaited; may throw.
  void in_waits(std::function<void()> look) { look_ = std::move(look); }

  void set(std::string const& key, std::vector<std::uint8_t> const& value) override {
    store_->set(key, tagged(key, value));
  }
  std::vector<std::uint8_t> compareSet(std::string const& key,
                                       std::vector<std::uint8_t> const& before,
                                       std::vector<std::uint8_t> const& value) override {
    return checked(key, store_->compareSet(key, before.empty() ? before : tagged(key, before),
                                           tagged(key, value)));
  }
  std::vector<std::uint8_t> get(std::string const& key) override {
    wait({key}, timeout_);
    return checked(key, store_->get(key));
  }
  /// Counters have no tag: they decide nothing but who came twice.
  std::int64_t add(std::string const& key, std::int64_t value) override {
    return store_->add(key, value);
  }
  bool deleteKey(std::string const& key) override { return store_->deleteKey(key); }
  bool check(std::vector<std::string> const& keys) override { return store_->check(keys); }
  std::int64_t getNumKeys() override { return store_->getNumKeys(); }
  void wait(std::vector<std::string> const& keys) override { wait(keys, timeout_); }
  /// Looks again and again: a wait in the store could not end for a reason of this process's.
  void wait(std::vector<std::string> const& keys,
            std::chrono::milliseconds const& timeout) override {
    using Clock = std::chrono::steady_clock;
    auto const end = Clock::now() + timeout;
    auto looked = Clock::now();
    std::chrono::milliseconds pause(1);
    while (!store_->check(keys)) {
      if (Clock::now() > end) {
        throw ClusterError({.what = "another process has not written '" + keys.front() + "'",
                            .where = "the store",
                            .why = "waited " + std::to_string(timeout.count()) + " ms",
                            .fix = "Read the output of the other processes, and start all again."});
      }
      if (look_ && Clock::now() - looked > std::chrono::milliseconds(500)) {
        look_();
        looked = Clock::now();
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, std::chrono::milliseconds(50));
    }
  }

 private:
  /// Without a token everyone has this key.
  static constexpr SipHash::Key fixed{0x66727567616c3a63, 0x6c7573746572};
  static constexpr std::size_t tag_size = sizeof(SipHash::Tag);

  SipHash::Tag tag(std::string const& key, std::uint8_t const* value, std::size_t size) const {
    std::string text = std::to_string(key.size()) + ' ' + key;
    if (size != 0) text.append(reinterpret_cast<char const*>(value), size);
    return SipHash::of(key_, text);
  }
  std::vector<std::uint8_t> tagged(std::string const& key,
                                   std::vector<std::uint8_t> const& value) const {
    if (value.size() > most - tag_size) {
      throw ClusterError({.what = "a value is too long for the store",
                          .where = "'" + key + "'",
                          .why = std::to_string(value.size()) + " bytes, and it takes " +
                                 std::to_string(most - tag_size),
                          .fix = "Please report this: it is a fault of frugal."});
    }
    SipHash::Tag const own = tag(key, value.data(), value.size());
    std::vector<std::uint8_t> all = value;
    all.resize(value.size() + tag_size);
    std::memcpy(all.data() + value.size(), own.data(), tag_size);
    return all;
  }
  std::vector<std::uint8_t> checked(std::string const& key, std::vector<std::uint8_t> all) const {
    bool is_ours = all.size() >= tag_size && all.size() <= most;
    if (is_ours) {
      SipHash::Tag said{};
      std::memcpy(said.data(), all.data() + all.size() - tag_size, tag_size);
      is_ours = said == tag(key, all.data(), all.size() - tag_size);
    }
    if (!is_ours) {
      throw ClusterError(
          {.what = "a value in the store is not of this run",
           .where = "'" + key + "', " + std::to_string(all.size()) + " bytes",
           .why = "no process of this run has written it: another program has "
                  "connected to the store's port",
           .fix = "Close the port to other machines and users, give all processes one "
                  "FRUGAL_CLUSTER_TOKEN, and start all again (docs/cluster/trust.md)."});
    }
    all.resize(all.size() - tag_size);
    return all;
  }

  c10::intrusive_ptr<c10d::Store> store_;
  SipHash::Key key_;
  std::function<void()> look_{};
};

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/damage.hpp>
#include <frugal/inline.hpp>

namespace frugal {

FRUGAL_INLINE void DamageLog::add(std::string name, std::string why) const {
  std::lock_guard const lock(log_->mutex);
  auto const same = [&](Entry const& entry) { return entry.name == name; };
  if (std::any_of(log_->entries.begin(), log_->entries.end(), same)) return;
  ++log_->count;
  if (log_->entries.size() < most_names) {
    log_->entries.push_back({.name = std::move(name), .why = std::move(why)});
  }
}

FRUGAL_INLINE void DamageLog::add(DamageLog const& other) const {
  if (other.log_ == log_) return;
  auto const [all, named] = other.both();
  for (Entry const& entry : named) add(entry.name, entry.why);
  std::lock_guard const lock(log_->mutex);
  log_->count += all - named.size();
}

FRUGAL_INLINE std::uint64_t DamageLog::count() const {
  std::lock_guard const lock(log_->mutex);
  return log_->count;
}

FRUGAL_INLINE std::vector<DamageLog::Entry> DamageLog::entries() const {
  std::lock_guard const lock(log_->mutex);
  return log_->entries;
}

FRUGAL_INLINE std::vector<std::string> DamageLog::names() const {
  std::vector<std::string> names;
  for (Entry& entry : entries()) names.push_back(std::move(entry.name));
  return names;
}

FRUGAL_INLINE std::string DamageLog::text() const {
  std::uint64_t const all = count();
  if (all == 0) return {};
  std::string text = std::to_string(all) + " skipped:";
  std::size_t named = 0;
  for (Entry const& entry : entries()) {
    if (named == 3) break;
    text += (named++ == 0 ? " " : ", ") + entry.name + " (" + entry.why + ")";
  }
  return all > named ? text + ", ..." : text;
}

FRUGAL_INLINE std::pair<std::uint64_t, std::vector<DamageLog::Entry>> DamageLog::both() const {
  std::lock_guard const lock(log_->mutex);
  return {log_->count, log_->entries};
}

}  // namespace frugal

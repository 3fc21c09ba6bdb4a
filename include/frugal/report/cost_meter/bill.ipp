// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/cost_meter/bill.hpp>

#include <frugal/base/io_error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE double Bill::add(double more_seconds, std::optional<double> at) {
  seconds += more_seconds;
  if (!at) unpriced_seconds += more_seconds;
  double const costs = more_seconds / 3600 * at.value_or(0);
  amount += costs;
  return costs;
}

FRUGAL_INLINE void Bill::mark_lost(double more_seconds, double cost) {
  lost_seconds += more_seconds;
  lost_amount += cost;
  if (!price()) lost_unpriced_seconds += more_seconds;
}

FRUGAL_INLINE double Bill::price_the_rest(double at) {
  double const rest = unpriced_seconds;
  amount += rest / 3600 * at;
  lost_amount += lost_unpriced_seconds / 3600 * at;
  unpriced_seconds = lost_unpriced_seconds = 0;
  return rest;
}

FRUGAL_INLINE Cost cost_of(Bill const& bill, bool metered, std::optional<double> grid) {
  Cost cost{.hours = bill.seconds / 3600,
            .per_hour = bill.price(),
            .lost_seconds = bill.lost_seconds,
            .resumes = bill.resumes};
  if (bill.unpriced_seconds == 0 && bill.price()) {
    cost.amount = bill.amount;
    cost.lost_amount = bill.lost_amount;
  }
  if (bill.joules > 0 || metered) {
    cost.kilowatt_hours = bill.joules / 3.6e6;
    if (grid) cost.kg_co2 = *cost.kilowatt_hours * *grid;
  }
  return cost;
}

FRUGAL_INLINE void BillFile::write(Entry entry) const noexcept {
  if (!descriptor_) return;
  std::array<char, heading.size() + fields * width + 1> text;
  text.fill(' ');
  char* at = std::copy(heading.begin(), heading.end(), text.data());
  each(entry, [&](auto const& value) {
    std::to_chars(at + 1, at + width, value);
    at += width;
  });
  *at = '\n';
  // One write of one length at one place: a reader sees the last or the one before it.
  if (::pwrite(descriptor_.get(), text.data(), text.size(), 0) < 0) return;
}

FRUGAL_INLINE std::optional<BillFile::Entry> BillFile::read(std::filesystem::path const& path) {
  std::string const all = read_run_file(path, 512);
  std::string_view text(all);
  if (!text.starts_with(heading)) return std::nullopt;
  text.remove_prefix(heading.size());
  Entry entry;
  bool whole = true;
  each(entry, [&](auto& value) { whole = whole && take(text, value); });
  return whole && text == "\n" ? std::optional(entry) : std::nullopt;
}

FRUGAL_INLINE void RunBill::start(Terms const& terms, double now) {
  terms_ = terms;
  begin_ = now;
}

FRUGAL_INLINE Bill RunBill::total(double now, double joules) const {
  Bill bill = before_;
  bill.add(now - begin_ + terms_.idle, terms_.per_hour);
  bill.per_hour = price();
  bill.joules += joules;
  bill.amount += money_of(joules);
  return bill;
}

FRUGAL_INLINE double RunBill::take_over(std::filesystem::path const& folder, double lost,
                                        double unmetered) {
  auto const paid = BillFile::read(folder / name);
  if (!known_) before_.add(unmetered, std::nullopt);
  if (!known_ && paid && paid->bill.seconds < unmetered) {
    // A meter counted, and processes without one have trained since.
    before_ = paid->bill;
    before_.add(unmetered - before_.seconds, std::nullopt);
    before_.per_hour = -1;
    before_.lose(lost);
  } else if (paid && paid->bill.seconds >= before_.seconds) {
    Bill const saved = std::exchange(before_, paid->bill);
    // The loss of earlier processes is in it.
    before_.mark_lost(before_.seconds - std::max(saved.seconds, paid->safe_seconds),
                      before_.amount - std::max(saved.amount, paid->safe_amount));
  } else {
    before_.lose(lost);
  }
  // Each resume boots a machine once more.
  before_.per_hour = price();
  before_.mark_lost(terms_.idle, terms_.idle / 3600 * terms_.per_hour.value_or(0));
  ++before_.resumes;
  return terms_.per_hour ? before_.price_the_rest(*terms_.per_hour) : 0;
}

FRUGAL_INLINE std::string RunBill::begin(std::filesystem::path const& folder) {
  begun_ = true;
  // The boot of a resumed process is marked as lost already.
  safe_ = before_;
  safe_.add(terms_.idle, terms_.per_hour);
  if (folder.empty()) return {};
  file_.emplace(folder / name);
  return file_->open() ? std::string()
                       : (folder / name).string() + ": " + why_of(folder / name, errno);
}

FRUGAL_INLINE void RunBill::end(double now, double joules) {
  std::scoped_lock const lock(mutex_);
  safe_ = total(now, joules);
}

}  // namespace frugal::detail

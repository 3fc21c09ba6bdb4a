// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/descriptor.hpp>
#include <frugal/base/number_text.hpp>
#include <frugal/checkpoint/run_file.hpp>
#include <frugal/report/energy/meter.hpp>
#include <frugal/report/plan/money.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace frugal {

/// What a run has cost, over all its processes.
struct Cost {
  std::string currency = "USD";
  double hours = 0;                        ///< billed: training, interruptions, CostMeter::idle
  std::optional<double> amount{};          ///< in the currency; nothing if the price is unknown
  std::optional<double> per_hour{};        ///< the price now, of all devices
  std::optional<double> kilowatt_hours{};  ///< nothing if no counter could be read
  std::optional<double> kg_co2{};          ///< nothing without a grid factor
  double lost_seconds = 0;                 ///< work that interruptions have undone
  std::optional<double> lost_amount{};     ///< what that work had cost
  std::uint64_t resumes = 0;

  friend std::ostream& operator<<(std::ostream& out, Cost const& cost) {
    auto const number = [](double value) { return detail::general(value, 6); };
    auto const money = [&](double value) {
      return ", " + plan::amount_text(value) + ' ' + cost.currency;
    };
    out << number(cost.hours) << " h";
    if (cost.amount) out << money(*cost.amount);
    if (cost.kilowatt_hours) out << ", " << number(*cost.kilowatt_hours) << " kWh";
    if (cost.kg_co2) out << ", " << number(*cost.kg_co2) << " kg CO2";
    if (cost.resumes == 0) return out;
    out << "; " << detail::count_text(cost.resumes, "resume") << ", " << number(cost.lost_seconds)
        << " s of paid time lost";
    if (cost.lost_amount) out << money(*cost.lost_amount);
    return out;
  }
};

namespace detail {

/// The sums of a bill. Every process adds its time at its own price.
struct Bill {
  double seconds = 0;           ///< billed, lost work included
  double unpriced_seconds = 0;  ///< of these, without a price
  double amount = 0;
  double joules = 0;
  double lost_seconds = 0;
  double lost_amount = 0;
  double lost_unpriced_seconds = 0;  ///< of the lost ones, without a price
  double per_hour = -1;              ///< of the last process; below 0: unknown
  std::uint64_t resumes = 0;

  /// Time that is billed at a price, if that is known. Returns what it costs.
  double add(double more_seconds, std::optional<double> at);

  /// The price of the last process, if it is known.
  std::optional<double> price() const {
    return per_hour < 0 ? std::nullopt : std::optional(per_hour);
  }

  /// Work that was paid for and is gone with the process that made it, at that one's price. It is
  /// not in the bill yet.
  void lose(double more_seconds) { mark_lost(more_seconds, add(more_seconds, price())); }

  /// Marks a part of what is in the bill as lost.
  void mark_lost(double more_seconds, double cost);

  /// Time without a price gets this one. Returns that time.
  double price_the_rest(double at);

  template <class Archive>
  void persist(Archive& archive) {
    archive("seconds", seconds);
    archive("unpriced_seconds", unpriced_seconds);
    archive("amount", amount);
    archive("joules", joules);
    archive("lost_seconds", lost_seconds);
    archive("lost_amount", lost_amount);
    archive("lost_unpriced_seconds", lost_unpriced_seconds);
    archive("per_hour", per_hour);
    archive("resumes", resumes);
  }
};

/// `metered`: whether energy is counted. `grid`: kg of CO2 per kilowatt-hour.
Cost cost_of(Bill const& bill, bool metered, std::optional<double> grid);

}  // namespace detail
}  // namespace frugal

namespace frugal::detail {

/// The bill of a run between its checkpoints: the file `bill` of its folder, written at each sum. A
/// checkpoint alone would forget what was paid after it, and a run that is killed again and again
/// before its next save would cost nothing. As a heartbeat it is not fsynced, and a failure to
/// write it is ignored.
class BillFile {
 public:
  struct Entry {
    Bill bill;                ///< of all processes, to the last sum
    double safe_seconds = 0;  ///< billed before the work that a kill would undo
    double safe_amount = 0;   ///< likewise, in money
  };

  explicit BillFile(std::filesystem::path const& path)
      : descriptor_(open_run_file(path, O_WRONLY | O_CREAT)) {}

  /// If not, errno says why, after the construction.
  bool open() const { return static_cast<bool>(descriptor_); }

  void write(Entry entry) const noexcept;

  /// Nothing where there is none, or none that write() could have written.
  static std::optional<Entry> read(std::filesystem::path const& path);

 private:
  static constexpr std::string_view heading = "frugal bill 1";
  static constexpr std::size_t width = 32;  ///< a space, and any double or count
  static constexpr std::size_t fields = 11;

  template <class SomeEntry, class F>
  static void each(SomeEntry& entry, F&& f) {
    Bill& bill = entry.bill;
    f(bill.seconds), f(bill.unpriced_seconds), f(bill.amount), f(bill.joules);
    f(bill.lost_seconds), f(bill.lost_amount), f(bill.lost_unpriced_seconds);
    f(bill.per_hour), f(bill.resumes), f(entry.safe_seconds), f(entry.safe_amount);
  }
  template <class Number>
  static bool take(std::string_view& text, Number& number) {
    if (text.size() < width || text.front() != ' ') return false;
    auto const [rest, error] = std::from_chars(text.data() + 1, text.data() + width, number);
    std::string_view const field = text.substr(0, width);
    bool const clean = error == std::errc() &&
                       field.find_first_not_of(' ', static_cast<std::size_t>(rest - text.data())) ==
                           std::string_view::npos;
    text.remove_prefix(width);
    if constexpr (std::is_floating_point_v<Number>) {
      // -1 is a price that is not known; nothing else is below 0.
      return clean && std::isfinite(number) && number >= -1;
    }
    return clean;
  }

  Descriptor descriptor_;
};

/// The bill of a run while one of its processes adds to it. `now` is the time of CostMeter's clock,
/// `joules` the energy of this process. After begin() several threads may call total and note.
class RunBill {
 public:
  struct Terms {
    std::optional<double> per_hour{};  ///< of all devices
    double idle = 0;                   ///< seconds billed before each process
    double per_kilowatt_hour = 0;
  };

  /// The process is paid for from now on.
  void start(Terms const& terms, double now);

  /// The bill of all processes of the run, including this one.
  Bill total(double now, double joules) const;
  double joules_before() const { return before_.joules; }
  double money_of(double joules) const {
    return joules / energy::joules_per_kilowatt_hour * terms_.per_kilowatt_hour;
  }

  /// The run continues from a checkpoint, and was paid for until its process ended. `lost`: what a
  /// heartbeat says of it, for a run whose file is gone. `unmetered`: seconds of training before
  /// there was a meter. Returns the seconds that had no price and get that of now.
  double take_over(std::filesystem::path const& folder, double lost, double unmetered);

  /// Training begins: from here on the file in this folder is kept, if there is a folder.
  /// Returns why it cannot be written, or an empty text.
  std::string begin(std::filesystem::path const& folder);
  bool begun() const { return begun_; }
  /// `now` and `joules` are functions: of two threads the later one writes the later sum.
  template <class Now, class Joules>
  void note(Now const& now, Joules const& joules) const {
    if (!file_) return;
    std::scoped_lock const lock(mutex_);
    file_->write({.bill = total(now(), joules()),
                  .safe_seconds = safe_.seconds,
                  .safe_amount = safe_.amount});
  }
  /// The last checkpoint is on disk: a process that dies from here on loses no work.
  void end(double now, double joules);

  template <class Archive>
  void persist(Archive& archive, double now, double joules) {
    // A dry run saves and loads before the run has begun; its time is counted once. Later loads are
    // those of a Rollback or a move, after which the money is spent all the same.
    Bill bill = begun_ && !Archive::loading ? total(now, joules) : before_;
    if (!begun_ && !Archive::loading) bill.per_hour = price();
    bool counted = begun_;
    archive.scope("bill", [&](auto& inner) { bill.persist(inner); });
    archive("counted", counted);
    if (!Archive::loading || begun_) return;
    before_ = bill;
    known_ = counted;
  }

 private:
  static constexpr char const* name = "bill";

  double price() const { return terms_.per_hour.value_or(-1); }

  Terms terms_;
  double begin_ = 0;
  Bill before_;  ///< of earlier processes
  Bill safe_;    ///< what a kill would not undo
  bool begun_ = false;
  bool known_ = false;  ///< the checkpoint has a bill
  std::optional<BillFile> file_;
  mutable std::mutex mutex_;  ///< of the file and safe_, once training has begun
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/cost_meter/bill.ipp>
#endif

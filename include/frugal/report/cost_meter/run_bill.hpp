// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include <frugal/base/descriptor.hpp>
#include <frugal/checkpoint/run_file.hpp>
#include <frugal/report/cost_meter/bill.hpp>
#include <frugal/report/energy/meter.hpp>

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
#include <frugal/report/cost_meter/run_bill.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>

#include <frugal/report/cost_meter/bill.hpp>
#include <frugal/report/cost_meter/bill_file.hpp>
#include <frugal/report/energy/meter.hpp>

namespace frugal::detail {

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

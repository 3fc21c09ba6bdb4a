// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

#include <frugal/base/descriptor.hpp>
#include <frugal/checkpoint/run_file.hpp>
#include <frugal/report/cost_meter/bill.hpp>

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

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/cost_meter/bill_file.ipp>
#endif

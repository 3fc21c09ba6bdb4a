// SPDX-License-Identifier: Apache-2.0
// torch-free
#include "support/files.hpp"

#include <doctest/doctest.h>

#include <frugal/report/cost_meter/bill.hpp>

#include <fstream>
#include <limits>
#include <string>

namespace frugal_test::policy_cost_meter_run_bill {

using doctest::Approx;
using frugal::detail::Bill;
using frugal::detail::RunBill;
using frugal_test::support::TemporaryFolder;

/// A process that is paid for until it is gone; `saves`: when its last checkpoint is made.
void process(std::filesystem::path const& folder, double price, double until, double saves) {
  RunBill bill;
  bill.start({.per_hour = price}, 0);
  bill.begin(folder);
  if (saves > 0) bill.end(saves, 0);
  bill.note([&] { return until; }, [] { return 0.0; });
}

TEST_CASE("a process that dies behind its last save loses what came after it, and no more") {
  for (double const saves : {0.0, 7200.0}) {
    TemporaryFolder const folder;
    process(folder.path(), 3, 9000, saves);
    RunBill next;
    next.start({.per_hour = 3}, 0);
    CHECK(next.take_over(folder.path(), 0, 0) == 0);
    Bill const bill = next.total(0, 0);
    CHECK(bill.seconds == 9000);
    CHECK(bill.amount == Approx(7.5));
    CHECK(bill.lost_seconds == 9000 - saves);
    CHECK(bill.lost_amount == Approx((9000 - saves) / 1200));
  }
}

TEST_CASE("time of processes without a meter is added to the bill of those before them") {
  TemporaryFolder const folder;
  process(folder.path(), 3, 36000, 36000);
  RunBill next;  // trained for 15 hours, as a checkpoint without a bill says, and 10 minutes more
  next.start({.per_hour = 1}, 0);
  CHECK(next.take_over(folder.path(), 600, 54000) == 18600);
  Bill const bill = next.total(0, 0);
  CHECK(bill.seconds == 54600);
  CHECK(bill.amount == Approx(30 + 18600 / 3600.0));
  CHECK(bill.lost_seconds == 600);
  CHECK(bill.lost_amount == Approx(600 / 3600.0));
  CHECK(bill.resumes == 1);
}

using namespace support;
using frugal::detail::BillFile;

BillFile::Entry entry() {
  return {.bill = {.seconds = 1.0 / 3,
                   .unpriced_seconds = 1e-300,
                   .amount = 123456.789,
                   .joules = std::numeric_limits<double>::max(),
                   .lost_seconds = 4,
                   .lost_amount = 5,
                   .lost_unpriced_seconds = 6,
                   .per_hour = -1,
                   .resumes = std::numeric_limits<std::uint64_t>::max()},
          .safe_seconds = 0.25,
          .safe_amount = 7};
}

TEST_CASE("a bill is read as it was written, to the bit, and the last one counts") {
  TemporaryFolder const folder;
  BillFile const file(folder / "bill");
  file.write({});
  file.write(entry());
  auto const found = BillFile::read(folder / "bill");
  REQUIRE(found);
  CHECK(found->bill.seconds == 1.0 / 3);
  CHECK(found->bill.unpriced_seconds == 1e-300);
  CHECK(found->bill.amount == 123456.789);
  CHECK(found->bill.joules == std::numeric_limits<double>::max());
  CHECK(found->bill.lost_seconds == 4);
  CHECK(found->bill.lost_amount == 5);
  CHECK(found->bill.lost_unpriced_seconds == 6);
  CHECK_FALSE(found->bill.price());
  CHECK(found->bill.resumes == std::numeric_limits<std::uint64_t>::max());
  CHECK(found->safe_seconds == 0.25);
  CHECK(found->safe_amount == 7);
}

TEST_CASE("no file, and one that write() could not have written, are none") {
  TemporaryFolder const folder;
  CHECK_FALSE(BillFile::read(folder / "bill"));
  BillFile(folder / "bill").write(entry());
  std::string const whole = text_of(folder / "bill");
  REQUIRE(BillFile::read(folder / "bill"));
  auto const reads = [&](std::string const& text) {
    std::ofstream(folder / "bill") << text;
    return BillFile::read(folder / "bill").has_value();
  };
  CHECK(reads(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) CHECK_FALSE(reads(whole.substr(0, size)));
  CHECK_FALSE(reads(whole + "x"));
  for (char const* const bad : {"nan", "inf", "-2", "1x", " 1", ""}) {
    std::string text = whole;
    std::string field(bad);
    field.resize(31, ' ');
    text.replace(std::string("frugal bill 1 ").size(), 31, field);
    CHECK_FALSE(reads(text));
  }
}

TEST_CASE("a folder that is missing costs nothing") {
  TemporaryFolder const folder;
  BillFile(folder / "gone/bill").write(entry());
  CHECK_FALSE(BillFile::read(folder / "gone/bill"));
}

}  // namespace frugal_test::policy_cost_meter_run_bill

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/report/cost_meter/run_bill.hpp>

#include "support/files.hpp"

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

}  // namespace frugal_test::policy_cost_meter_run_bill

// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <frugal/base/io_error.hpp>
#include <frugal/data/shards/damage.hpp>

#include <doctest/doctest.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace frugal_test::data_shards_damage {

using frugal::DamageLog;
using frugal::OnDamage;
using frugal::open_or_skip;

[[noreturn]] void cut_off() {
  throw frugal::DataError({.what = "the file is cut off",
                           .where = "b.tar, byte 12",
                           .why = "expected 512 bytes, found 12",
                           .fix = "Fetch it again."});
}

TEST_CASE("damage fails, or is skipped, counted and named") {
  DamageLog const log;
  CHECK(open_or_skip(OnDamage::Skip, log, "a.tar", [] {}));
  CHECK(log.count() == 0);
  CHECK(log.text().empty());
  CHECK_FALSE(open_or_skip(OnDamage::Skip, log, "b.tar", [] { cut_off(); }));
  CHECK_FALSE(open_or_skip(OnDamage::Skip, log, "c.tar", [] {
    throw frugal::StoreError({.what = "the call open failed", .where = "", .why = "", .fix = ""});
  }));
  CHECK(log.count() == 2);
  CHECK(log.names() == std::vector<std::string>{"b.tar", "c.tar"});
  CHECK(log.text() ==
        "2 skipped: b.tar (the file is cut off: expected 512 bytes, found 12), c.tar (the call "
        "open failed)");
  CHECK_THROWS_AS(open_or_skip(OnDamage::Fail, log, "b.tar", [] { cut_off(); }), frugal::DataError);
  CHECK(log.count() == 2);
}

TEST_CASE("other errors are no damage") {
  DamageLog const log;
  CHECK_THROWS_AS(
      open_or_skip(OnDamage::Skip, log, "a.tar", [] { throw std::logic_error("a bug"); }),
      std::logic_error);
  CHECK(log.count() == 0);
}

TEST_CASE("what cannot be read now, and what has changed, is no damage; a missing file is") {
  DamageLog const log;
  auto const failing = [&](int code) {
    return open_or_skip(OnDamage::Skip, log, std::to_string(code),
                        [&] { throw frugal::detail::io_error("open", "a.tar", code); });
  };
  for (int const code : {EMFILE, ENFILE, EACCES, EPERM, EIO, ESTALE, ENETDOWN, ETIMEDOUT, ENOMEM}) {
    CHECK_THROWS_AS(failing(code), frugal::IoError);
  }
  CHECK(log.count() == 0);
  for (int const code : {ENOENT, ENOTDIR, EISDIR}) CHECK_FALSE(failing(code));
  CHECK(log.count() == 3);
  auto const changed = [] { throw frugal::ChangedError({"it has changed", "a.tar", "", ""}); };
  CHECK_THROWS_AS(open_or_skip(OnDamage::Skip, log, "a.tar", changed), frugal::ChangedError);
  CHECK(log.count() == 3);
}

TEST_CASE("names are bounded, the count is not; a name counts once") {
  DamageLog const log;
  for (int i = 0; i < 250; ++i) log.add("shard " + std::to_string(i), "empty");
  log.add("shard 7", "empty");
  CHECK(log.count() == 250);
  CHECK(log.names().size() == DamageLog::most_names);
  CHECK(log.names()[7] == "shard 7");
  CHECK(log.text().ends_with("shard 2 (empty), ..."));
}

TEST_CASE("a log takes over what another one counted and named") {
  DamageLog const log, other;
  log.add("a", "empty");
  other.add("a", "empty");
  for (int i = 0; i < 250; ++i) other.add("shard " + std::to_string(i), "empty");
  log.add(other);
  CHECK(log.count() == 251);
  CHECK(log.names().size() == DamageLog::most_names);
  log.add(log);
  CHECK(log.count() == 251);
}

TEST_CASE("copies share a log, threads may add to it") {
  DamageLog const log;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([copy = log, t] {
      for (int i = 0; i < 20; ++i) copy.add(std::to_string(t) + "/" + std::to_string(i), "");
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(log.count() == 80);
  CHECK(log.names().size() == 80);
}

}  // namespace frugal_test::data_shards_damage

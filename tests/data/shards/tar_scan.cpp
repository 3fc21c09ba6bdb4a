// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive
#include <frugal/data/shards/tar_scan.hpp>

#include "support/files.hpp"
#include "support/tar_files.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace frugal_test::data_shards_tar_scan {

using frugal::OnDamage;
using frugal::detail::PooledFile;
using frugal::detail::scan_tar;
using namespace support;

TEST_CASE("a compressed tar file is known by its first bytes, whatever its name") {
  TemporaryFolder folder;
  for (std::string_view const magic :
       {std::string_view("\x1f\x8b\x08\0", 4), std::string_view("\x28\xb5\x2f\xfd"),
        std::string_view("BZh9"),
        std::string_view("\xfd"
                         "7zXZ\0",
                         6)}) {
    CHECK(frugal::is_compressed(write_bytes(folder / "c.tar", magic)));
  }
  CHECK_FALSE(
      frugal::is_compressed(write_bytes(folder / "t.gz", tar_member("a.txt", "a") + tar_end())));
  CHECK_FALSE(frugal::is_compressed(write_bytes(folder / "e.tar", "")));
  CHECK_THROWS_AS(frugal::is_compressed(folder / "missing.tar"), frugal::StoreError);
}

TEST_CASE("a plain tar file whose first member is named as a compressed file begins is plain") {
  TemporaryFolder folder;
  for (std::string const name : {"BZh91AY.txt", "\x1f\x8b.txt", "\x28\xb5\x2f\xfd.txt"}) {
    CHECK_FALSE(
        frugal::is_compressed(write_bytes(folder / "t.tar", tar_member(name, "a") + tar_end())));
  }
  frugal::DamageLog const log;
  auto const path = write_bytes(folder / "b.tar", tar_member("BZh9.txt", "a") + tar_end());
  CHECK(scan_tar(PooledFile(path), OnDamage::Fail, log).index.key(0) == "BZh9");
}

TEST_CASE("tar files that were joined are read to the last") {
  TemporaryFolder folder;
  std::string const first = tar_member("a.txt", "a") + tar_end() + std::string(8192, '\0');
  std::string const last = tar_member("b.txt", "bb") + tar_member("c.txt", "c") + tar_end();
  frugal::DamageLog const log;
  auto const joined =
      scan_tar(PooledFile(write_bytes(folder / "t.tar", first + last)), OnDamage::Fail, log);
  CHECK(joined.whole);
  REQUIRE(joined.index.samples() == 3);
  CHECK(joined.index.key(2) == "c");
  CHECK(joined.index.member(1).place.offset == first.size() + 512);
  // Without a mark of its end the last one is cut off.
  CHECK_THROWS_AS(
      scan_tar(PooledFile(write_bytes(folder / "c.tar", first + tar_member("b.txt", "b"))),
               OnDamage::Fail, log),
      frugal::DataError);
}

TEST_CASE("what is no member behind the end mark is an error, and costs no sample before it") {
  TemporaryFolder folder;
  // Two samples of unlike fields: a file that is cut off would lose the last.
  std::string const whole =
      tar_member("a.txt", "a") + tar_member("a.cls", "1") + tar_member("b.txt", "b") + tar_end();
  auto const path = write_bytes(folder / "t.tar", whole + std::string(1024, 'x'));
  frugal::DamageLog const log;
  CHECK_THROWS_AS(scan_tar(PooledFile(path), OnDamage::Fail, log), frugal::DataError);
  auto const scanned = scan_tar(PooledFile(path), OnDamage::Skip, log);
  CHECK_FALSE(scanned.whole);
  CHECK(scanned.index.samples() == 2);
  CHECK(log.count() == 1);
  // Zeros that fill no block are no damage.
  auto const odd = write_bytes(folder / "o.tar", whole + std::string(100, '\0'));
  CHECK(scan_tar(PooledFile(odd), OnDamage::Fail, log).whole);
}

TEST_CASE("a scan says whether something was left out, which an index that is kept must not hide") {
  TemporaryFolder folder;
  frugal::DamageLog const log;
  auto const whole = write_bytes(folder / "w.tar", tar_member("a.txt", "a") + tar_end());
  CHECK(scan_tar(PooledFile(whole), OnDamage::Skip, log).whole);
  CHECK(log.count() == 0);
  auto const bad = write_bytes(folder / "b.tar",
                               tar_member("a.txt", "a") + tar_member("../b.txt", "b") + tar_end());
  auto const scanned = scan_tar(PooledFile(bad), OnDamage::Skip, log);
  CHECK_FALSE(scanned.whole);
  CHECK(scanned.index.samples() == 1);
  CHECK(scanned.index.stamp().size == std::filesystem::file_size(bad));
  CHECK(log.count() == 1);
}

TEST_CASE("a file that ends without its blocks of zeros is cut off") {
  TemporaryFolder folder;
  auto const path = write_bytes(folder / "c.tar", tar_member("a.txt", "a"));
  frugal::DamageLog const log;
  CHECK_THROWS_AS(scan_tar(PooledFile(path), OnDamage::Fail, log), frugal::DataError);
  auto const scanned = scan_tar(PooledFile(path), OnDamage::Skip, log);
  CHECK_FALSE(scanned.whole);
  CHECK(scanned.index.samples() == 1);
  CHECK(log.names() == std::vector<std::string>{path.string()});
}

}  // namespace frugal_test::data_shards_tar_scan

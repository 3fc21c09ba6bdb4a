// SPDX-License-Identifier: Apache-2.0
// torch-free
// needs: archive

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/shards/tar_set.hpp>
#include <frugal/data/shards/tar_shard_writer.hpp>

#include "support/files.hpp"
#include "support/no_more_files.hpp"
#include "support/tar_files.hpp"

namespace frugal_test::data_shards_tar_set {

using frugal::DataError;
using frugal::OnDamage;
using frugal::TarSet;
using namespace support;
using frugal::expand_braces;
using frugal::shard_paths;
using Names = std::vector<std::string>;

static_assert(frugal::IdentifiedSet<TarSet>);
static_assert(std::is_same_v<frugal::sample_of<TarSet>, frugal::TarSample>);

frugal::TarSettings const skip{.on_damage = OnDamage::Skip};

std::string content(int i) {
  return std::string(static_cast<std::size_t>(i * 37 % 1100), 'x') + std::to_string(i);
}

/// Samples i of [from, to), each with a text and a label.
void write(std::filesystem::path const& folder, int from, int to, std::uint64_t per_shard,
           std::string const& prefix = "shard") {
  frugal::TarShardWriter writer(folder, {.samples = per_shard}, prefix);
  for (int i = from; i < to; ++i) {
    std::string const text = content(i), label = std::to_string(i % 10);
    writer.add("s" + std::to_string(i), {{"txt", text}, {"cls", label}});
  }
  writer.finish();
}

std::vector<std::string> keys(TarSet const& set) {
  std::vector<std::string> out;
  for (std::uint64_t i = 0; i < set.size(); ++i) out.push_back(set.get(i).key);
  return out;
}

frugal::Fault fault_of(std::filesystem::path const& path,
                       frugal::TarSettings const& settings = {}) {
  try {
    (void)TarSet(path.string(), settings);
  } catch (frugal::Error const& error) {
    return error.fault();
  }
  return {.what = "nothing was thrown", .where = "", .why = "", .fix = ""};
}

TEST_CASE("samples come back from their shards as they were written, at any index") {
  TemporaryFolder folder;
  write(folder / "set", 0, 25, 10);
  CHECK(entries(folder / "set") == 3);
  TarSet const set((folder / "set").string());
  REQUIRE(set.size() == 25);
  CHECK(set.shard_sizes() == std::vector<std::uint64_t>{10, 10, 5});
  for (std::uint64_t const i : {24U, 0U, 10U, 9U, 17U}) {
    auto const sample = set.get(i);
    CHECK(sample.key == "s" + std::to_string(i));
    CHECK(sample["txt"] == content(static_cast<int>(i)));
    CHECK(sample.integer("cls") == static_cast<std::int64_t>(i % 10));
    CHECK(sample.size() == 2);
  }
  CHECK(set.name(10) == (folder / "set" / "shard-000001.tar").string() + ", sample s10");
  CHECK_THROWS_AS(set.get(25), DataError);
}

TEST_CASE("a sample outlives its set") {
  TemporaryFolder folder;
  write(folder / "set", 0, 3, 10);
  auto const sample = TarSet((folder / "set").string()).get(2);
  CHECK(sample["txt"] == content(2));
  CHECK_THROWS_WITH_AS(
      sample["jpg"],
      ("frugal: a sample has no field \"jpg\" (" + (folder / "set" / "shard-000000.tar").string() +
       ", sample s2): its fields are: txt, cls. Name one of them, or leave the "
       "sample out.")
          .c_str(),
      DataError);
}

TEST_CASE("several threads read one set") {
  TemporaryFolder folder;
  write(folder / "set", 0, 60, 7);
  TarSet const set((folder / "set").string());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 60; ++i) {
        std::uint64_t const at = (i * 17 + static_cast<std::uint64_t>(t)) % 60;
        if (set.get(at)["txt"] != content(static_cast<int>(at))) ++wrong;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(wrong == 0);
}

TEST_CASE("patterns, folders and lists name the same shards") {
  TemporaryFolder folder;
  write(folder / "set", 0, 25, 10);
  auto const all = keys(TarSet((folder / "set").string()));
  CHECK(keys(TarSet((folder / "set/shard-{000000..000002}.tar").string())) == all);
  CHECK(keys(TarSet(std::vector{folder / "set/shard-000000.tar", folder / "set/shard-000001.tar",
                                folder / "set/shard-000002.tar"})) == all);
  CHECK(fault_of(folder.path()).what == "the folder holds no shards");
}

TEST_CASE("an index is kept, used again, and made again when the shard has changed") {
  TemporaryFolder folder;
  write(folder / "set", 0, 5, 10);
  auto const shard = folder / "set/shard-000000.tar";
  auto const index = folder / "set/shard-000000.tar.index";
  auto const before = TarSet(shard.string()).identity();
  REQUIRE(std::filesystem::exists(index));
  auto const kept = std::filesystem::last_write_time(index);
  CHECK(TarSet(shard.string()).identity() == before);
  CHECK(std::filesystem::last_write_time(index) == kept);

  // A damaged index is not trusted.
  std::string bytes = text_of(index);
  bytes[100] = static_cast<char>(bytes[100] ^ 1);
  write_bytes(index, bytes);
  CHECK(keys(TarSet(shard.string())).size() == 5);

  // Another shard of the same name, and of the same size.
  std::filesystem::remove(shard);
  write(folder / "set", 5, 10, 10);
  std::filesystem::last_write_time(
      shard, std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  CHECK(keys(TarSet(shard.string())).front() == "s5");
  CHECK(TarSet(shard.string()).identity() != before);
}

TEST_CASE("an index is not used for another shard of the size and the time of the first") {
  TemporaryFolder folder;
  write(folder / "set", 0, 5, 10);
  auto const shard = folder / "set/shard-000000.tar";
  auto const time = std::filesystem::last_write_time(shard);
  auto const size = std::filesystem::file_size(shard);
  CHECK(keys(TarSet(shard.string())).front() == "s0");
  auto const before = frugal::detail::stamp_of(frugal::File::open(shard)).changed;
  std::string bytes = text_of(shard);
  for (std::size_t at = bytes.find("s0."); at != std::string::npos; at = bytes.find("s0.", at)) {
    // Another name, and the checksum that it has: '0' is 0x30, and '7' seven more.
    bytes.replace(at, 2, "s7");
    std::size_t const header = at / 512 * 512;
    unsigned const sum =
        static_cast<unsigned>(std::stoul(bytes.substr(header + 148, 6), nullptr, 8));
    std::snprintf(bytes.data() + header + 148, 7, "%06o", sum + 7);
  }
  do {
    write_bytes(shard, bytes);
    std::filesystem::last_write_time(shard, time);
  } while (frugal::detail::stamp_of(frugal::File::open(shard)).changed == before);
  REQUIRE(std::filesystem::file_size(shard) == size);
  CHECK(keys(TarSet(shard.string())).front() == "s7");
}

TEST_CASE("indexes go to a folder of their own, or nowhere") {
  TemporaryFolder folder;
  write(folder / "set", 0, 5, 2);
  TarSet((folder / "set").string(), {.keep_index = false});
  CHECK(entries(folder / "set") == 3);
  TarSet((folder / "set").string(), {.index_folder = folder / "deep/index"});
  CHECK(entries(folder / "set") == 3);
  CHECK(entries(folder / "deep/index") == 3);
  CHECK(keys(TarSet((folder / "set").string(), {.index_folder = folder / "deep/index"})).size() ==
        5);
}

TEST_CASE("a folder that cannot be written to keeps no index, and that is no error") {
  TemporaryFolder folder;
  write(folder / "set", 0, 5, 10);
  write_bytes(folder / "file", "no folder");
  CHECK(keys(TarSet((folder / "set").string(), {.index_folder = folder / "file/index"})).size() ==
        5);
}

TEST_CASE("a compressed shard is refused, and the fix names frugal_pack") {
  TemporaryFolder folder;
  auto const path = write_bytes(folder / "a.tar.gz", std::string("\x1f\x8b\x08", 3) + "rest");
  auto const fault = fault_of(path);
  CHECK(fault.what == "a compressed tar file cannot be read in any order");
  CHECK(fault.why.starts_with("it is compressed with gzip"));
  CHECK(fault.fix.find("frugal_pack --to FOLDER tar a.tar.gz") != std::string::npos);
  write_bytes(folder / "b.tar.zst", "\x28\xb5\x2f\xfd rest");
  CHECK(fault_of(folder / "b.tar.zst").why.starts_with("it is compressed with zstd"));
}

TEST_CASE(
    "long names of GNU tar and of pax are read whole, and names outside of ASCII as they are") {
  TemporaryFolder folder;
  std::string const name(150, 'n');
  write_bytes(folder / "t.tar", gnu_long_member(name + ".txt", "gnu") +
                                    pax_member("path=" + name + "2.txt", "short.txt", "pax") +
                                    pax_member("path=mod\xc3\xa8le.txt", "m.txt", "accent") +
                                    tar_member("\xc3\xa9.txt", "raw") + tar_end());
  TarSet const set((folder / "t.tar").string());
  CHECK(keys(set) == std::vector<std::string>{name, name + "2", "mod\xc3\xa8le", "\xc3\xa9"});
  CHECK(set.get(0)["txt"] == "gnu");
  CHECK(set.get(1)["txt"] == "pax");
  CHECK(set.get(2)["txt"] == "accent");
}

TEST_CASE("folders, links and names without a dot are passed over") {
  TemporaryFolder folder;
  write_bytes(folder / "t.tar", tar_member("d.d/", "", '5') + tar_member("l.txt", "", '2') +
                                    tar_member("h.txt", "", '1') + tar_member("README", "text") +
                                    tar_member("a.txt", "a") + tar_end());
  CHECK(keys(TarSet((folder / "t.tar").string())) == std::vector<std::string>{"a"});
}

TEST_CASE("hostile names, sizes and duplicates are refused with shard, member and byte") {
  TemporaryFolder folder;
  auto const of = [&](std::string const& bytes) {
    return fault_of(write_bytes(folder / "t.tar", tar_member("a.txt", "a") + bytes + tar_end()));
  };
  auto const up = of(tar_member("../../etc/passwd.txt", "x"));
  CHECK(up.why == "a member's name leads out of its folder (..)");
  CHECK(up.where == (folder / "t.tar").string() + ", member ../../etc/passwd.txt, byte 1536");
  CHECK(of(tar_member("/etc/passwd.txt", "x")).why == "a member's name is an absolute path");
  CHECK(of(tar_member("a.txt", "again")).why == "the sample has a member of that name already");
  CHECK(of(tar_header("b.bin", std::uint64_t{1} << 62))
            .why.find("the member has 4611686018427387904 bytes") == 0);
  CHECK(of(tar_header("b.bin", 4000)).why.find("the member has 4000 bytes from byte 1536 on") == 0);
}

TEST_CASE("a size that pax states and the file does not store gives no bytes of other members") {
  TemporaryFolder folder;
  auto const path = write_bytes(folder / "t.tar",
                                tar_member("a.txt", "a") +
                                    pax_member("GNU.sparse.realsize=1500", "b.txt", "only these") +
                                    tar_member("c.txt", "c") + tar_end());
  CHECK(fault_of(path).why == "it reaches into the member behind it");
  TarSet const set(path.string(), skip);
  CHECK(keys(set) == std::vector<std::string>{"a", "c"});
  CHECK(set.damage().names() == std::vector<std::string>{path.string() + ", member b.txt"});
}

TEST_CASE("files that are no tar files are refused") {
  TemporaryFolder folder;
  CHECK(fault_of(write_bytes(folder / "e.tar", "")).what == "the file is empty");
  CHECK(fault_of(write_bytes(folder / "t.tar", std::string(3000, 'x'))).what ==
        "a tar file is damaged, or is none");
  CHECK(fault_of(folder / "missing.tar").what == "the call open failed");
}

TEST_CASE("a truncated shard is an error, or keeps its whole samples, wherever it is cut") {
  TemporaryFolder folder;
  write(folder / "set", 0, 4, 10);
  std::string const whole = text_of(folder / "set/shard-000000.tar");
  auto const cut = folder / "cut.tar";
  std::size_t most = 0;
  for (std::size_t size = 1; size + 1024 < whole.size(); size += 171) {
    CAPTURE(size);
    write_bytes(cut, whole.substr(0, size));
    CHECK(fault_of(cut).what != "nothing was thrown");
    TarSet const set(cut.string(), skip);
    CHECK(set.damage().count() >= 1);
    CHECK(set.damage().names().front().starts_with(cut.string()));
    // A prefix of the samples, each whole.
    REQUIRE(set.size() <= 4);
    CHECK(set.size() >= most);
    most = std::max<std::size_t>(most, set.size());
    for (std::uint64_t i = 0; i < set.size(); ++i) {
      CHECK(set.get(i)["txt"] == content(static_cast<int>(i)));
      // A first sample has none before it to compare with: it may have lost its label.
      if (set.size() > 1) CHECK(set.get(i).has("cls"));
    }
  }
  CHECK(most == 4);
  CHECK_FALSE(std::filesystem::exists(cut.string() + ".index"));
}

TEST_CASE("a damaged header ends its shard; the samples before it stay") {
  TemporaryFolder folder;
  write(folder / "set", 0, 9, 3);
  auto const middle = folder / "set/shard-000001.tar";
  std::string bytes = text_of(middle);
  std::size_t const header = bytes.find("s4.txt");
  REQUIRE(header != std::string::npos);
  bytes[header] = 'X';
  write_bytes(middle, bytes);
  CHECK(fault_of(folder / "set").what == "a tar file is damaged, or is none");
  TarSet const set((folder / "set").string(), skip);
  CHECK(keys(set) == std::vector<std::string>{"s0", "s1", "s2", "s3", "s6", "s7", "s8"});
  CHECK(set.damage().count() == 1);
}

TEST_CASE("missing and bad members are skipped, counted and named") {
  TemporaryFolder folder;
  write(folder / "set", 0, 2, 10);
  write_bytes(folder / "bad.tar", tar_member("a.txt", "a") + tar_member("../b.txt", "b") +
                                      tar_member("c.txt", "c") + tar_member("c.txt", "twice") +
                                      tar_member("d.txt", "d") + tar_end());
  TarSet const set(
      std::vector{folder / "gone.tar", folder / "bad.tar", folder / "set/shard-000000.tar"}, skip);
  CHECK(keys(set) == std::vector<std::string>{"a", "d", "s0", "s1"});
  CHECK(set.shard_sizes() == std::vector<std::uint64_t>{2, 2});
  CHECK(set.damage().count() == 3);
  CHECK(set.damage().names() ==
        std::vector<std::string>{(folder / "gone.tar").string(),
                                 (folder / "bad.tar").string() + ", member ../b.txt",
                                 (folder / "bad.tar").string() + ", member c.txt"});
}

TEST_CASE("a sample above the limit is refused before memory is allocated for it") {
  TemporaryFolder const folder;
  write(folder / "set", 0, 40, 100);
  TarSet const all((folder / "set").string());
  TarSet const set((folder / "set").string(), {.most_bytes = 2000});
  CHECK(set.get(0).key == all.get(0).key);
  try {
    (void)set.get(29);  // a text of 1075 bytes, a label and a header between them
    FAIL("nothing was thrown");
  } catch (DataError const& error) {
    CHECK(error.fault().what == "a sample is too large");
    CHECK(error.fault().where == set.name(29));
  }
}

TEST_CASE("a shard that shrinks while it is open is an error of the sample") {
  TemporaryFolder folder;
  write(folder / "set", 0, 4, 10);
  TarSet const set((folder / "set").string());
  std::filesystem::resize_file(folder / "set/shard-000000.tar", 600);
  CHECK_THROWS_AS(set.get(3), frugal::ChangedError);
}

TEST_CASE("a shard that is replaced under its set gives no bytes of the other one") {
  TemporaryFolder folder;
  write(folder / "set", 0, 4, 10);
  auto const shard = folder / "set/shard-000000.tar";
  auto const time = std::filesystem::last_write_time(shard);
  TarSet const set(shard.string());
  std::string bytes = text_of(shard);
  auto const before = frugal::detail::stamp_of(frugal::File::open(shard)).changed;
  do {  // until the file system's clock has moved on
    write_bytes(shard, bytes);
    std::filesystem::last_write_time(shard, time);
  } while (frugal::detail::stamp_of(frugal::File::open(shard)).changed == before);
  CHECK_THROWS_AS(set.get(0), frugal::ChangedError);
}

TEST_CASE("a shard that cannot be opened now is an error, and not skipped") {
  TemporaryFolder folder;
  write(folder / "set", 0, 8, 2);
  std::vector<std::filesystem::path> shards;
  for (int i = 0; i < 4; ++i) {
    shards.push_back(folder / ("set/shard-00000" + std::to_string(i) + ".tar"));
  }
  CHECK(frugal_test::support::throws_without_files<frugal::IoError>(
      [&] { return TarSet(shards, skip); }));
  CHECK(TarSet(shards, skip).size() == 8);
}

TEST_CASE("braces expand as in the shell") {
  CHECK(expand_braces("a.tar") == Names{"a.tar"});
  CHECK(expand_braces("s-{8..11}.tar") == Names{"s-8.tar", "s-9.tar", "s-10.tar", "s-11.tar"});
  CHECK(expand_braces("s-{08..11}.tar") == Names{"s-08.tar", "s-09.tar", "s-10.tar", "s-11.tar"});
  CHECK(expand_braces("{000..2}") == Names{"000", "001", "002"});
  CHECK(expand_braces("{0..2}") == Names{"0", "1", "2"});
  CHECK(expand_braces("{2..0}") == Names{"2", "1", "0"});
  CHECK(expand_braces("{a,b,}x") == Names{"ax", "bx", "x"});
  CHECK(expand_braces("{a,b}-{1..2}") == Names{"a-1", "a-2", "b-1", "b-2"});
}

TEST_CASE("braces that are no pattern stand for themselves") {
  for (char const* name : {"a{b.tar", "a{}.tar", "a{x}.tar", "a{1..}.tar", "a}b{"}) {
    CAPTURE(name);
    CHECK(expand_braces(name) == Names{name});
  }
  CHECK(expand_braces("{x}{1..2}") == Names{"{x}1", "{x}2"});
}

TEST_CASE("more than a million shards are a slip of the pen") {
  CHECK_THROWS_AS(expand_braces("{0..1000000}"), frugal::SettingsError);
  CHECK_THROWS_AS(expand_braces("{0..18446744073709551615}"), frugal::SettingsError);
  CHECK_THROWS_AS(expand_braces("{0..9999}{0..9999}"), frugal::SettingsError);
}

TEST_CASE("a folder gives the files with these endings in the order of their names") {
  support::TemporaryFolder folder;
  for (char const* name : {"b.tar", "a.tar", "c.txt", ".d.tar", "a.tar.index"}) {
    support::write_bytes(folder / name, "x");
  }
  CHECK(shard_paths(folder.path().string(), {".tar"}) ==
        std::vector{folder / "a.tar", folder / "b.tar"});
  CHECK_THROWS_AS(shard_paths(folder.path().string(), {".zip", ".gz"}), frugal::DataError);
}

}  // namespace frugal_test::data_shards_tar_set

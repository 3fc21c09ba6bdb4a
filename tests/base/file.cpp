// SPDX-License-Identifier: Apache-2.0
// torch-free
#include "support/checkpoints.hpp"
#include "support/files.hpp"
#include "support/full_disk.hpp"

#include <doctest/doctest.h>

#include <frugal/base/file.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <support/files.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace frugal_test::store_file {

using frugal::File;
using frugal::IoError;
using support::bytes_of;
using support::TemporaryFolder;

/// For its lifetime, no file of this process can grow beyond `bytes`: a write that fails even for
/// root.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit const limit{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  SmallFiles(SmallFiles const&) = delete;
  ~SmallFiles() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

template <class Call>
std::string message_of(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (frugal::StoreError const& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_CASE("a file of many megabytes, with early write-back, has the written contents") {
  TemporaryFolder folder;
  std::string text;
  for (unsigned i = 0; text.size() < (20U << 20U); ++i) text += std::to_string(i * 2654435761U);
  File file = File::create(folder / "file");
  // Pieces that match neither pages nor the step of early write-back, and one larger than that.
  std::string_view rest = text;
  for (std::size_t const piece : {1'000'003U, 7'000'001U, 1U, 9'000'000U}) {
    file.write(support::bytes_of(std::string(rest.substr(0, piece))));
    rest.remove_prefix(piece);
  }
  File moved = std::move(file);
  moved.write(support::bytes_of(std::string(rest)));
  moved.sync();
  moved.close();
  CHECK(support::text_of(folder / "file") == text);
}

TEST_CASE("a large file of known size bypasses the page cache and has the written contents") {
  for (auto const& base :
       {std::filesystem::temp_directory_path(), std::filesystem::path("/dev/shm")}) {
    if (::access(base.c_str(), W_OK) != 0) continue;
    TemporaryFolder folder(base);
    int const probe = ::open((folder / "probe").c_str(), O_CREAT | O_WRONLY | O_DIRECT, 0600);
    if (probe >= 0) ::close(probe);
    // Ends on a block, on a sector, within a sector; and sizes above and below the expected one.
    for (std::size_t const size : {8U << 20U, (8U << 20U) + 4096U, (13U << 20U) + 77U, 5U}) {
      CAPTURE(size);
      std::string text;
      for (unsigned i = 0; text.size() < size; ++i) text += std::to_string(i * 2654435761U);
      text.resize(size);
      std::filesystem::remove(folder / "file");
      File file = File::create(folder / "file");
      file.reserve(std::uint64_t{9} << 20);
      bool const direct = (::fcntl(file.descriptor(), F_GETFL) & O_DIRECT) != 0;
      CHECK(direct == (probe >= 0));
      std::string_view rest = text;
      for (std::size_t const piece : {3U, 5'000'001U, 4096U}) {
        std::string_view const some = rest.substr(0, piece);
        file.write(support::bytes_of(std::string(some)));
        rest.remove_prefix(some.size());
      }
      File moved = std::move(file);
      moved.write(support::bytes_of(std::string(rest)));
      moved.sync();
      CHECK((::fcntl(moved.descriptor(), F_GETFL) & O_DIRECT) == 0);
      CHECK(moved.size() == size);
      moved.write(support::bytes_of("and more"));  // after sync() it is an ordinary file
      moved.close();
      CHECK((support::text_of(folder / "file") == text + "and more"));
    }
  }
}

TEST_CASE("close() writes what was not synced") {
  TemporaryFolder folder;
  File file = File::create(folder / "file");
  file.reserve(std::uint64_t{9} << 20);
  file.write(support::bytes_of("few"));
  file.close();
  CHECK(support::text_of(folder / "file") == "few");
}

TEST_CASE("a file written in pieces reads back in others") {
  TemporaryFolder folder;
  File file = File::create(folder / "a");
  file.write(bytes_of("one "));
  file.write({});
  file.write(bytes_of("two"));
  file.sync();
  file.close();

  File in = File::open(folder / "a");
  CHECK(in.size() == 7);
  std::array<std::byte, 5> first{};
  std::array<std::byte, 5> second{};
  CHECK(in.read(first) == 5);
  CHECK(in.read(second) == 2);
  CHECK(in.read(second) == 0);
  CHECK(support::text_of(folder / "a") == "one two");
}

TEST_CASE("an existing file is not opened as a new one, and the error names call, file and cause") {
  TemporaryFolder folder;
  support::write_text(folder / "a", "precious");
  std::string const message = message_of([&] { File::create(folder / "a"); });
  CHECK(message.find("the call open failed (" + (folder / "a").string() + "): File exists") !=
        std::string::npos);
  CHECK(support::text_of(folder / "a") == "precious");
}

TEST_CASE("a file that is missing is an error with the errno of the call") {
  TemporaryFolder folder;
  try {
    File::open(folder / "none");
    FAIL("opened");
  } catch (IoError const& error) {
    CHECK(error.code == ENOENT);
    CHECK(error.fault().fix ==
          "Check the path, and whether something else removed the file or folder.");
  }
}

TEST_CASE("a failed write is final: nothing makes the file good again") {
  TemporaryFolder folder;
  File file = File::create(folder / "a");
  std::string first;
  {
    SmallFiles const limit(4);
    first = message_of([&] { file.write(bytes_of("longer than four")); });
  }
  CHECK(first.find("the call write failed") != std::string::npos);
  CHECK(first.find("ulimit -f") != std::string::npos);
  CHECK(message_of([&] { file.write(bytes_of("x")); }) == first);
  CHECK(message_of([&] { file.sync(); }) == first);
  CHECK(message_of([&] { file.close(); }) == first);
  CHECK(support::text_of(folder / "a") == "long");
}

TEST_CASE("space for a file can be reserved without changing its size") {
  TemporaryFolder folder;
  File file = File::create(folder / "a");
  file.reserve(1 << 20);
  CHECK(file.size() == 0);
  file.write(bytes_of("x"));
  file.close();
  CHECK(support::text_of(folder / "a") == "x");
}

TEST_CASE("missing space shows before anything is written") {
  TemporaryFolder folder;
  File file = File::create(folder / "a");
  CHECK_THROWS_AS(file.reserve(std::uint64_t{1} << 60), IoError);  // more than any disk holds
  CHECK_THROWS_AS(file.write(bytes_of("x")), IoError);
}

TEST_CASE("a started program does not inherit the file") {
  TemporaryFolder folder;
  File const file = File::create(folder / "a");
  CHECK((::fcntl(file.descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a moved file is closed once") {
  TemporaryFolder folder;
  File file = File::create(folder / "a");
  int const descriptor = file.descriptor();
  {
    File other = std::move(file);
    CHECK(other.descriptor() == descriptor);
    other.write(bytes_of("x"));
  }
  CHECK(::fcntl(descriptor, F_GETFD) == -1);
}

TEST_CASE("each errno of a disk has its own recommendation") {
  for (int const code : {ENOSPC, EDQUOT, EROFS, EACCES, EIO, ESTALE, EMFILE, EFBIG, ENAMETOOLONG}) {
    CAPTURE(code);
    CHECK(frugal::detail::fix_of(code) != frugal::detail::fix_of(0));
  }
}

}  // namespace frugal_test::store_file

namespace frugal_test::store_mapped_file {

using frugal::MappedFile;
using support::TemporaryFolder;

std::string content(MappedFile const& file) {
  return {reinterpret_cast<char const*>(file.bytes().data()), file.bytes().size()};
}

std::filesystem::path written(std::filesystem::path const& path, std::string const& text) {
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

/// Three pages and a part, all different.
std::string pages() {
  std::string text;
  while (text.size() < 3 * 4096 + 17) text += std::to_string(text.size()) + '\n';
  return text;
}

frugal::Fault fault_of(std::filesystem::path const& path) {
  try {
    MappedFile const file(path);
  } catch (frugal::StoreError const& error) {
    return error.fault();
  }
  return {.what = "nothing was thrown", .where = "", .why = "", .fix = ""};
}

TEST_CASE("a mapped file has the bytes of the file, to the last") {
  TemporaryFolder const folder;
  CHECK(content(MappedFile(written(folder / "file", pages()))) == pages());
}

TEST_CASE("an empty file is mapped to no bytes") {
  TemporaryFolder const folder;
  CHECK(MappedFile(written(folder / "empty", "")).bytes().empty());
  CHECK(MappedFile().bytes().empty());
}

TEST_CASE("a mapping moves with its owner, and its bytes keep their address") {
  TemporaryFolder const folder;
  MappedFile first(written(folder / "first", pages()));
  auto const* const place = first.bytes().data();
  MappedFile second(std::move(first));
  CHECK(second.bytes().data() == place);
  MappedFile third(written(folder / "third", "another"));
  third = std::move(second);
  CHECK(third.bytes().data() == place);
  CHECK(content(third) == pages());
}

TEST_CASE("a mapped file is unchanged when another takes its name, or it is removed") {
  TemporaryFolder const folder;
  MappedFile const file(written(folder / "file", pages()));
  std::filesystem::rename(written(folder / "new", "new"), folder / "file");
  CHECK(content(file) == pages());
  std::filesystem::remove(folder / "file");
  CHECK(content(file) == pages());
}

TEST_CASE("no descriptor stays open after a mapping, or after a refused file") {
  auto const open = [] {
    auto const folder = std::filesystem::directory_iterator("/proc/self/fd");
    return std::distance(begin(folder), end(folder));
  };
  TemporaryFolder const folder;
  auto const before = open();
  MappedFile const file(written(folder / "file", pages()));
  (void)fault_of(folder.path());
  CHECK(open() == before);
}

TEST_CASE("a missing file is refused by name and with the system's reason") {
  TemporaryFolder const folder;
  auto const fault = fault_of(folder / "absent");
  CHECK(fault.what == "the call open failed");
  CHECK(fault.where == (folder / "absent").string());
  CHECK(fault.why == "No such file or directory");
}

TEST_CASE("a folder is refused as a folder") {
  TemporaryFolder const folder;
  CHECK(fault_of(folder.path()).why == "it is a folder");
}

TEST_CASE("a pipe is refused, without waiting for its writer") {
  TemporaryFolder const folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(fault_of(folder / "pipe").why == "it is not a regular file");
  CHECK(fault_of("/dev/zero").why == "it is not a regular file");
}

}  // namespace frugal_test::store_mapped_file

namespace frugal_test::store_whole_file {

using frugal::detail::Durable;
using frugal::detail::read_whole_file;
using frugal::detail::write_whole_file;

TEST_CASE("a file is replaced as a whole, and nothing is left next to it") {
  for (Durable const durable : {Durable::yes, Durable::no}) {
    support::TemporaryFolder folder;
    std::ofstream(folder / "a.new") << "of a process that was killed";
    for (std::string const& text :
         {std::string("first"), std::string("\0second\n", 8), std::string()}) {
      write_whole_file(folder / "a", text, durable);
      CHECK(read_whole_file(folder / "a") == text);
      CHECK(support::entries(folder.path()) == 1);
    }
  }
}

TEST_CASE("a full disk keeps the old file, and nothing is left next to it") {
  for (Durable const durable : {Durable::yes, Durable::no}) {
    support::TemporaryFolder folder;
    std::ofstream(folder / "a") << "old";
    {
      support::FullDisk const full;
      CHECK_THROWS_AS(write_whole_file(folder / "a", "new", durable), frugal::StoreError);
    }
    CHECK(read_whole_file(folder / "a") == "old");
    CHECK(support::entries(folder.path()) == 1);
  }
}

TEST_CASE("a folder that is not there, and a file that is missing, are StoreErrors") {
  support::TemporaryFolder folder;
  CHECK_THROWS_AS(write_whole_file(folder / "none/a", "x", Durable::no), frugal::StoreError);
  CHECK_THROWS_AS(static_cast<void>(read_whole_file(folder / "a")), frugal::StoreError);
  std::filesystem::create_directory(folder / "d");
  CHECK_THROWS_AS(write_whole_file(folder / "d", "x", Durable::no), frugal::StoreError);
  CHECK(support::entries(folder.path()) == 1);
}

}  // namespace frugal_test::store_whole_file

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/damage.hpp>
#include <frugal/data/shards/tar_index_builder.hpp>
#include <frugal/data/shards/tar_members.hpp>
#include <frugal/error.hpp>
#include <frugal/store/file.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

// Needs libarchive: FRUGAL_ARCHIVE=ON, and the target frugal::archive.
namespace frugal::detail {

inline TarStamp stamp_of(File const& file) {
  struct stat status{};
  if (::fstat(file.descriptor(), &status) != 0) throw io_error("fstat", file.path(), errno);
  return {.size = static_cast<std::uint64_t>(status.st_size),
          .time = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

/// The compression of a file by its first bytes; empty for none that is known.
inline std::string compression_of(std::span<std::byte const> head) {
  auto const begins = [&](std::initializer_list<unsigned> magic) {
    return head.size() >= magic.size() &&
           std::equal(magic.begin(), magic.end(), head.begin(),
                      [](unsigned a, std::byte b) { return a == std::to_integer<unsigned>(b); });
  };
  if (begins({0x1f, 0x8b})) return "gzip";
  if (begins({0x28, 0xb5, 0x2f, 0xfd})) return "zstd";
  if (begins({'B', 'Z', 'h'})) return "bzip2";
  if (begins({0xfd, '7', 'z', 'X', 'Z', 0})) return "xz";
  return {};
}

/// Refuses what is no plain file of tar: empty, compressed, a folder.
inline void require_plain_tar(File& file, TarStamp const& stamp) {
  std::array<std::byte, 6> head{};
  std::span const got(head.data(), file.read(head));
  if (stamp.size == 0 || got.empty()) {
    throw DataError({.what = "the file is empty",
                     .where = file.path().string(),
                     .why = "a tar file has 1,024 bytes at least",
                     .fix = "Fetch the file again."});
  }
  if (std::string const compression = compression_of(got); !compression.empty()) {
    throw DataError({.what = "a compressed tar file cannot be read in any order",
                     .where = file.path().string(),
                     .why = "it is compressed with " + compression +
                            ", and to read one sample all before it would be unpacked",
                     .fix = "Pack it once without compression: frugal_pack --to FOLDER tar " +
                            file.path().filename().string() + "."});
  }
}

/// Does the file hold a block of zeros there? It is the mark of the end.
inline bool ends_with_mark(File const& file, std::uint64_t at) {
  std::array<std::byte, 512> block{};
  ssize_t const got =
      ::pread(file.descriptor(), block.data(), block.size(), static_cast<off_t>(at));
  return got == static_cast<ssize_t>(block.size()) &&
         std::all_of(block.begin(), block.end(), [](std::byte b) { return b == std::byte{0}; });
}

struct ScannedTar {
  TarIndex index;
  bool whole = true;  ///< nothing was left out
};

/// Reads the headers of a tar file and makes its index. It reads no content: a member costs one
/// read of 512 bytes and a seek.
///
/// OnDamage::Fail  a DataError for the first fault.
/// OnDamage::Skip  logs each fault, and keeps the samples that are whole: those before a damaged
///                 header or the end of a truncated file, and those around a bad member.
inline ScannedTar scan_tar(std::filesystem::path const& path, OnDamage on_damage,
                           DamageLog const& log) {
  File file = File::open(path);
  TarStamp const stamp = stamp_of(file);
  require_plain_tar(file, stamp);
  TarIndexBuilder builder(path.string(), stamp);
  TarMembers members(path, TarMembers::Filters::none);
  std::uint64_t end = 0;
  bool whole = true;  // up to the end of the file
  bool undamaged = true;
  auto const tolerate = [&](std::string const& name, auto&& what) {
    bool const good = open_or_skip(on_damage, log, name, what);
    undamaged = undamaged && good;
    return good;
  };
  struct Plain {
    std::string name;
    MemberPlace at;
    bool sparse;
  };
  std::optional<Plain> last;
  // A member is added when the next header is known: pax can state a size that is not the stored
  // one (GNU.sparse.realsize), and its content would then be what follows.
  auto const settle = [&](std::uint64_t next) {
    if (!last) return;
    auto const [name, at, sparse] = *std::exchange(last, std::nullopt);
    tolerate(path.string() + ", member " + shown_name(name), [&] {
      if (sparse) builder.lose_member(name, at, "it is a sparse file, stored in pieces");
      if (at.end() > next) builder.lose_member(name, at, "it reaches into the member behind it");
      builder.add(name, at);
    });
  };
  constexpr std::uint64_t unknown = std::numeric_limits<std::uint64_t>::max();
  for (bool more = true; more;) {
    std::string const place = path.string() + ", byte " + std::to_string(members.position());
    bool const read = tolerate(place, [&] { more = members.next(); });
    if (!read || !more) {
      whole = read;
      break;
    }
    TarMembers::Member const& member = members.current();
    MemberPlace const at{.offset = members.position(), .size = member.size};
    settle(at.offset - 512);
    if (outside_of_file(at, stamp.size).empty()) end = (at.end() + 511) / 512 * 512;
    if (!member.plain) continue;
    last = {member.name, at, member.sparse};
    // Nothing can follow what leaves the file.
    if (at.end() > stamp.size || at.end() < at.offset) {
      whole = false;
      break;
    }
  }
  settle(unknown);
  if (whole && !ends_with_mark(file, end)) {
    tolerate(path.string(), [&] {
      throw DataError({.what = "a tar file is cut off",
                       .where = path.string() + ", byte " + std::to_string(end),
                       .why = "the blocks of zeros that end a tar file are missing",
                       .fix = "Fetch the file again; OnDamage::Skip keeps its whole samples."});
    });
    whole = false;
  }
  if (!whole) builder.cut_off();
  return {.index = builder.finish(), .whole = undamaged};
}

}  // namespace frugal::detail

namespace frugal {

/// Whether a tar file is compressed, by its first bytes: then TarSet refuses it, and TarStream
/// reads it. StoreError for a file that cannot be read.
inline bool is_compressed(std::filesystem::path const& path) {
  File file = File::open(path);
  std::array<std::byte, 6> head{};
  return !detail::compression_of(std::span(head.data(), file.read(head))).empty();
}

}  // namespace frugal

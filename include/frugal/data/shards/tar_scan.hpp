// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/data/shards/damage.hpp>
#include <frugal/data/shards/open_files.hpp>
#include <frugal/data/shards/tar_index.hpp>
#include <frugal/data/shards/tar_stream.hpp>
#include <frugal/error.hpp>

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

// Needs libarchive: FRUGAL_ARCHIVE=ON, and the target frugal::archive.
namespace frugal::detail {

inline TarStamp stamp_of(PooledFile const& file) {
  FileStamp const& stamp = file.stamp();
  return {.size = stamp.size, .time = stamp.modified, .changed = stamp.changed};
}

/// One block of a tar file; shorter at the end of the file.
inline std::string tar_block(PooledFile const& file, std::uint64_t at) {
  std::string block(512, '\0');
  block.resize(file.read_some(at, block));
  return block;
}

/// Whether a block is the header of a member, by its checksum: the sum of its bytes, its own eight
/// taken as blanks, in octal digits at byte 148 (POSIX.1-1988).
inline bool is_tar_header(std::string_view block) {
  if (block.size() != 512) return false;
  unsigned sum = 8 * ' ';
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (i < 148 || i >= 156) sum += static_cast<unsigned char>(block[i]);
  }
  unsigned claimed = 0;
  std::size_t at = 148;
  while (at < 156 && block[at] == ' ') ++at;
  for (; at < 156 && block[at] >= '0' && block[at] <= '7'; ++at) {
    claimed = 8 * claimed + static_cast<unsigned>(block[at] - '0');
  }
  return claimed == sum;
}

/// The compression of a file by its first block; empty for none that is known. A member of a plain
/// tar file may have a name that begins as a compressed file does, such as "BZh.txt".
inline std::string compression_of(std::string_view head) {
  using namespace std::string_view_literals;
  if (is_tar_header(head)) return {};
  if (head.starts_with("\x1f\x8b")) return "gzip";
  if (head.starts_with("\x28\xb5\x2f\xfd")) return "zstd";
  if (head.starts_with("BZh")) return "bzip2";
  if (head.starts_with("\xfd\x37zXZ\0"sv)) return "xz";
  return {};
}

/// Refuses what is no plain file of tar: empty or compressed.
inline void require_plain_tar(PooledFile const& file) {
  std::string const head = tar_block(file, 0);
  if (head.empty()) {
    throw DataError({.what = "the file is empty",
                     .where = file.path().string(),
                     .why = "a tar file has 1,024 bytes at least",
                     .fix = "Fetch the file again."});
  }
  if (std::string const compression = compression_of(head); !compression.empty()) {
    throw DataError({.what = "a compressed tar file cannot be read in any order",
                     .where = file.path().string(),
                     .why = "it is compressed with " + compression +
                            ", and to read one sample all before it would be unpacked",
                     .fix = "Pack it once without compression: frugal_pack --to FOLDER tar " +
                            file.path().filename().string() + "."});
  }
}

/// Does the file hold a block of zeros there? It is the mark of the end.
inline bool ends_with_mark(PooledFile const& file, std::uint64_t at) {
  std::string const block = tar_block(file, at);
  return block.size() == 512 && block.find_first_not_of('\0') == std::string::npos;
}

/// Whether there is nothing but zeros from there on.
inline bool is_blank(PooledFile const& file, std::uint64_t at) {
  std::string block(std::size_t{1} << 16, '\0');
  for (;; at += block.size()) {
    block.resize(file.read_some(at, block));
    if (block.find_first_not_of('\0') != std::string::npos) return false;
    if (block.size() < std::size_t{1} << 16) return true;
  }
}

struct ScannedTar {
  TarIndex index;
  bool whole = true;  ///< nothing was left out
};

/// Reads the headers of a tar file and makes its index. It reads no content: a member costs one
/// read of 512 bytes and a seek. Joined tar files (`cat a.tar b.tar`) are read to the last.
///
/// OnDamage::Fail  a DataError for the first fault.
/// OnDamage::Skip  logs each fault, and keeps the samples that are whole: those before a damaged
///                 header or the end of a truncated file, and those around a bad member.
inline ScannedTar scan_tar(PooledFile const& file, OnDamage on_damage, DamageLog const& log) {
  std::filesystem::path const& path = file.path();
  TarStamp const stamp = stamp_of(file);
  require_plain_tar(file);
  TarIndexBuilder builder(path.string(), stamp);
  TarMembers members(file, TarMembers::Filters::none);
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
    bool const read = tolerate(place, [&] {
      try {
        more = members.next();
      } catch (DataError const&) {
        // Zeros that are no whole block are what is left of a record of a tape.
        if (end == 0 || !is_blank(file, end)) throw;
        more = false;
      }
    });
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
  bool const marked = ends_with_mark(file, end);
  if (whole && !marked) {
    tolerate(path.string(), [&] {
      throw DataError({.what = "a tar file is cut off",
                       .where = path.string() + ", byte " + std::to_string(end),
                       .why = "the blocks of zeros that end a tar file are missing",
                       .fix = "Fetch the file again; OnDamage::Skip keeps its whole samples."});
    });
    whole = false;
  }
  // Behind a mark of the end, whatever is damaged there, the last sample is whole.
  if (!whole && !marked) builder.cut_off();
  return {.index = builder.finish(), .whole = undamaged};
}

}  // namespace frugal::detail

namespace frugal {

/// Whether a tar file is compressed, by its first bytes: then TarSet refuses it, and TarStream
/// reads it. StoreError for a file that cannot be read.
inline bool is_compressed(std::filesystem::path const& path) {
  return !detail::compression_of(detail::tar_block(detail::PooledFile(path), 0)).empty();
}

}  // namespace frugal

namespace frugal::detail {

/// Where the index of a tar file is kept: next to it, or in `folder` under a name made of its path.
inline std::filesystem::path index_path(std::filesystem::path const& tar,
                                        std::filesystem::path const& folder) {
  if (folder.empty()) return tar.string() + ".index";
  std::string const path = std::filesystem::absolute(tar).lexically_normal().string();
  std::uint64_t const hash = Hash::of(std::as_bytes(std::span(path)));
  return folder / (tar.filename().string() + "-" + hex_of(hash) + ".index");
}

/// The index that is kept, if it is sound and the tar file still has that stamp.
inline std::optional<TarIndex> load_index(std::filesystem::path const& path,
                                          TarStamp const& stamp) {
  try {
    auto const file = std::make_shared<MappedFile const>(path, MappedFile::Access::normal);
    TarIndex index = TarIndex::parse(file->bytes(), path.string(), file);
    if (index.stamp() == stamp) return index;
  } catch (StoreError const&) {  // none is there
  } catch (DataError const&) {   // damaged, or of another version
  }
  return std::nullopt;
}

/// Keeps an index for the next time, if that can be. Another process may do the same: whoever is
/// last wins, and both are right. Not fsynced: a damaged index is made again.
inline void save_index(TarIndex const& index, std::filesystem::path const& path) {
  static std::atomic<unsigned> count{0};
  std::filesystem::path const temporary =
      path.string() + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
  try {
    if (path.has_parent_path()) create_folders(path.parent_path());
    File file = File::create(temporary);
    file.write(index.bytes());
    file.close();
    rename_path(temporary, path);
  } catch (StoreError const&) {  // a folder that is read-only, a full disk: it is only slower
    std::error_code ignored;
    std::filesystem::remove(temporary, ignored);
  }
}

/// The index of a tar file: the one that is kept if `keep`, or a new one.
inline TarIndex tar_index_of(PooledFile const& tar, OnDamage on_damage, DamageLog const& log,
                             bool keep, std::filesystem::path const& folder) {
  std::filesystem::path const path = index_path(tar.path(), folder);
  if (keep) {
    if (auto index = load_index(path, stamp_of(tar))) return *std::move(index);
  }
  ScannedTar scanned = scan_tar(tar, on_damage, log);
  // A damaged file is read again each time, so that its damage is reported each time.
  if (keep && scanned.whole) save_index(scanned.index, path);
  return std::move(scanned.index);
}

}  // namespace frugal::detail

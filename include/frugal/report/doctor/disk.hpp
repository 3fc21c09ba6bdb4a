// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/descriptor.hpp>
#include <frugal/base/file.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/error.hpp>

#include <fcntl.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <new>
#include <span>
#include <string>
#include <system_error>

namespace frugal::doctor {

/// The speed of the disk below a folder.
struct Disk {
  std::string folder = {};
  std::string file_system = {};  ///< "ext4", "nfs", or a number in hexadecimal
  std::uint64_t free = 0;        ///< bytes that this user may still write
  std::uint64_t bytes = 0;       ///< written and read
  double write_seconds = 0;      ///< with the fsync
  double read_seconds = 0;
  bool read_past_cache = false;  ///< false: the page cache may have answered
  std::string why_not = {};      ///< why nothing was measured; empty if it was

  double write_rate() const {
    return write_seconds > 0 ? static_cast<double>(bytes) / write_seconds : 0;
  }
  double read_rate() const {
    return read_seconds > 0 ? static_cast<double>(bytes) / read_seconds : 0;
  }
};

struct DiskProbe {
  std::uint64_t bytes = std::uint64_t{64} << 20;  ///< at least 8 MiB bypass the page cache
  double seconds = 3;                             ///< a slow disk gets fewer bytes
};

namespace detail {

/// From statfs(2) and include/uapi/linux/magic.h.
inline std::string file_system_name(std::uint64_t magic) {
  struct Known {
    std::uint64_t magic;
    char const* name;
  };
  static constexpr std::array known{
      Known{0xEF53, "ext4"},        Known{0x58465342, "xfs"},    Known{0x9123683E, "btrfs"},
      Known{0x794C7630, "overlay"}, Known{0x01021994, "tmpfs"},  Known{0x858458F6, "ramfs"},
      Known{0x6969, "nfs"},         Known{0xFF534D42, "cifs"},   Known{0xFE534D42, "smb2"},
      Known{0x65735546, "fuse"},    Known{0x0BD00BD0, "lustre"}, Known{0x2FC12FC1, "zfs"},
      Known{0x47504653, "gpfs"},    Known{0x01021997, "9p"},     Known{0x6A656A63, "virtiofs"},
      Known{0x00C36400, "ceph"},    Known{0xF2F52010, "f2fs"},   Known{0x73717368, "squashfs"}};
  for (Known const& each : known) {
    if (each.magic == magic) return each.name;
  }
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(magic));
  return text;
}

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Memory that O_DIRECT can read into.
class Aligned {
 public:
  static constexpr std::size_t size = std::size_t{4} << 20;
  Aligned() : data_(static_cast<std::byte*>(::operator new(size, std::align_val_t{4096}))) {}
  Aligned(Aligned const&) = delete;
  Aligned& operator=(Aligned const&) = delete;
  ~Aligned() { ::operator delete(data_, std::align_val_t{4096}); }
  std::span<std::byte> span() const { return {data_, size}; }

  /// Bytes that no disk compresses (xorshift64, Marsaglia 2003).
  void fill() const {
    std::uint64_t state = 0x9E3779B97F4A7C15U;
    for (std::byte& each : span()) {
      state ^= state << 13U;
      state ^= state >> 7U;
      state ^= state << 17U;
      each = static_cast<std::byte>(state & 0xFFU);
    }
  }

 private:
  std::byte* data_;
};

inline void write_probe(Disk& disk, File& file, DiskProbe const& probe, Aligned const& buffer) {
  auto const begin = std::chrono::steady_clock::now();
  file.reserve(probe.bytes);
  while (disk.bytes < probe.bytes && seconds_since(begin) < probe.seconds) {
    std::size_t const count =
        static_cast<std::size_t>(std::min<std::uint64_t>(Aligned::size, probe.bytes - disk.bytes));
    file.write(buffer.span().first(count));
    disk.bytes += count;
  }
  file.sync();
  disk.write_seconds = seconds_since(begin);
}

inline void read_probe(Disk& disk, std::filesystem::path const& path, int descriptor,
                       Aligned const& buffer) {
  auto const begin = std::chrono::steady_clock::now();
  std::uint64_t got = 0;
  while (got < disk.bytes) {
    ssize_t const read = ::read(descriptor, buffer.span().data(), Aligned::size);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) throw frugal::detail::io_error("read", path, errno);
    if (read == 0) break;
    got += static_cast<std::uint64_t>(read);
  }
  disk.read_seconds = seconds_since(begin);
}

}  // namespace detail

/// Writes a file with an fsync into a folder and reads it back, bypassing the page cache where the
/// file system can. The file has no name while it is used, so that an interrupted program leaves
/// nothing. For a folder that cannot be measured, `why_not` has the reason.
inline Disk probe_disk(std::filesystem::path const& folder, DiskProbe probe = {}) {
  Disk disk{.folder = folder.string()};
  struct statfs status{};
  if (::statfs(folder.c_str(), &status) != 0) {
    disk.why_not = frugal::detail::why_of(folder, errno);
    return disk;
  }
  disk.file_system =
      detail::file_system_name(static_cast<std::uint64_t>(status.f_type) & 0xFFFFFFFF);
  disk.free =
      static_cast<std::uint64_t>(status.f_bavail) * static_cast<std::uint64_t>(status.f_bsize);
  if (std::error_code ignored; !std::filesystem::is_directory(folder, ignored)) {
    disk.why_not = "it is not a folder";
    return disk;
  }
  probe.bytes = std::max<std::uint64_t>(probe.bytes, 4096);
  if (disk.free < 2 * probe.bytes) {
    disk.why_not = "only " + std::to_string(disk.free >> 20U) + " MiB are free";
    return disk;
  }
  std::filesystem::path const path = folder / (".frugal_doctor-" + std::to_string(::getpid()));
  try {
    detail::Aligned const buffer;
    buffer.fill();
    File file = File::create(path);
    frugal::detail::Descriptor reader(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
    disk.read_past_cache = static_cast<bool>(reader);
    if (!reader) {
      reader = frugal::detail::Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    }
    int const code = errno;
    ::unlink(path.c_str());
    if (!reader) throw frugal::detail::io_error("open", path, code);
    detail::write_probe(disk, file, probe, buffer);
    if (!disk.read_past_cache) {
      (void)::posix_fadvise(reader.get(), 0, 0, POSIX_FADV_DONTNEED);
    }
    detail::read_probe(disk, path, reader.get(), buffer);
    file.close();
  } catch (StoreError const& error) {
    disk.why_not = error.fault().why;
  }
  return disk;
}

}  // namespace frugal::doctor

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/lock.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/inline.hpp>

#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <limits>
#include <locale>
#include <span>
#include <sstream>
#include <utility>

namespace frugal {

FRUGAL_INLINE std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

FRUGAL_INLINE LockOwner LockOwner::here() {
  std::time_t const now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> since{};
  std::strftime(since.data(), since.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {.pid = ::getpid(),
          .host = host_name(),
          .boot = boot_id(),
          .started = start_of(::getpid()).value_or(0),
          .since = since.data()};
}

FRUGAL_INLINE std::string LockOwner::text() const {
  // Not by a stream: the program's locale may group the digits of a number.
  return "pid " + std::to_string(pid) + "\nhost " + host + "\nboot " + boot + "\nstarted " +
         std::to_string(started) + "\nsince " + since + "\n";
}

FRUGAL_INLINE std::optional<LockOwner> LockOwner::parse(std::string const& text) {
  LockOwner owner;
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  std::array<std::string, 5> key;
  in >> key[0] >> owner.pid >> key[1] >> owner.host >> key[2] >> owner.boot >> key[3] >>
      owner.started >> key[4] >> owner.since;
  std::array<std::string, 5> const expected{"pid", "host", "boot", "started", "since"};
  if (!in || key != expected || owner.pid < 1) return std::nullopt;
  return owner;
}

FRUGAL_INLINE LockOwner::Life LockOwner::life() const {
  if (host != host_name() || pid > std::numeric_limits<pid_t>::max()) return Life::unknown;
  if (boot != boot_id()) return Life::dead;  // the machine has rebooted since
  if (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return Life::dead;
  auto const now = start_of(pid);
  return now && *now != started ? Life::dead : Life::alive;
}

FRUGAL_INLINE std::string LockOwner::boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id.empty() ? "unknown" : id;
}

FRUGAL_INLINE std::optional<std::uint64_t> LockOwner::start_of(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  auto const name_end = line.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(name_end + 1));
  fields.imbue(std::locale::classic());
  std::string skipped;
  fields >> skipped;
  if (skipped == "Z" || skipped == "X") return 0;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  std::uint64_t ticks = 0;
  if (!(fields >> ticks)) return std::nullopt;
  return ticks;
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE void write_small_file(std::filesystem::path const& path, std::string const& text) {
  ::unlink(path.c_str());  // left by an earlier process with this id
  File file = File::create(path);
  file.write(std::as_bytes(std::span<char const>(text.data(), text.size())));
  file.sync();
  file.close();
}

FRUGAL_INLINE LockError lock_refusal(std::filesystem::path const& lock,
                                     std::optional<LockOwner> const& owner,
                                     std::string const& hint) {
  std::string fix = "Stop that trainer, or set another run directory.";
  if (!hint.empty()) fix += " " + hint;
  return LockError({.what = "another trainer works in this run directory",
                    .where = lock.string(),
                    .why = owner ? "it is " + owner->words() : "the lock does not name it",
                    .fix = std::move(fix)});
}

FRUGAL_INLINE std::string removal_hint(std::initializer_list<std::filesystem::path> files) {
  std::string names;
  for (auto const& file : files) names += (names.empty() ? "" : " and ") + file.string();
  return "If that process is gone for certain, remove " + names + ".";
}

FRUGAL_INLINE void require_same_file(std::filesystem::path const& path, FileId const& held) {
  auto const now = FileId::of(path);
  if (now == held) return;
  if (!now && errno != ENOENT && errno != ENOTDIR) throw io_error("lstat", path, errno);
  throw LockError(
      {.what = "this run has lost its run directory",
       .where = path.string(),
       .why =
           now ? "the lock file is not the one that was locked: the folder was renamed or replaced"
               : "the lock file is gone: the folder was renamed or removed",
       .fix = "Start again with the right folder; nothing was written to this one, or deleted in "
              "it, since."});
}

FRUGAL_INLINE void OwnerFile::require_dead(std::filesystem::path const& path,
                                           std::filesystem::path const& lock) {
  auto const owner = read_owner(path);
  if (owner && owner->life() == LockOwner::Life::dead) return;
  bool const both = owner && read_owner(lock) == owner;
  throw lock_refusal(lock, owner, both ? removal_hint({path, lock}) : removal_hint({path}));
}

FRUGAL_INLINE OwnerFile::OwnerFile(std::filesystem::path const& lock)
    : lock_(lock), path_(path_of(lock)) {
  auto mine = lock;
  mine += "." + host_name() + "." + std::to_string(::getpid());
  try {
    write_small_file(mine, LockOwner::here().text());
    auto const id = FileId::of(mine);
    if (!id) throw io_error("lstat", mine, errno);
    id_ = *id;
    // link() is atomic also over networks, where O_EXCL was not always. Over a network it may
    // also return EEXIST after its own success, if the reply to the first attempt was lost.
    if (::link(mine.c_str(), path_.c_str()) != 0) {
      int const code = errno;
      if (FileId::of(path_) != id) {
        if (code != EEXIST) throw io_error("link", path_, code);
        replace_dead_owner(mine);
      }
    }
  } catch (...) {
    ::unlink(mine.c_str());
    throw;
  }
  ::unlink(mine.c_str());
}

FRUGAL_INLINE void OwnerFile::replace_dead_owner(std::filesystem::path const& mine) {
  auto door = lock_;
  door += ".takeover";
  require_dead(path_, lock_);
  if (::mkdir(door.c_str(), 0777) != 0) {
    throw lock_refusal(lock_, std::nullopt,
                       "If nobody else is starting right now, remove " + door.string() + ".");
  }
  try {
    require_dead(path_, lock_);  // still the dead one's?
    if (::rename(mine.c_str(), path_.c_str()) != 0) throw io_error("rename", path_, errno);
  } catch (...) {
    ::rmdir(door.c_str());
    throw;
  }
  ::rmdir(door.c_str());
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE RunLock::RunLock(std::filesystem::path path, LockBy by) : path_(std::move(path)) {
  open();
  try {
    take(by);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

FRUGAL_INLINE RunLock::~RunLock() {
  // A failure here cannot be handled; a non-empty file only costs the next owner a note.
  if (::ftruncate(descriptor_, 0) != 0) errno = 0;
  owner_file_.reset();
  ::close(descriptor_);
}

FRUGAL_INLINE void RunLock::require_held() const {
  detail::require_same_file(path_, id_);
  if (owner_file_) owner_file_->require_held();
}

FRUGAL_INLINE void RunLock::open() {
  descriptor_ = detail::open_run_file(path_, O_RDWR | O_CREAT);
  if (descriptor_ < 0 && errno == ELOOP) {
    throw StoreError({.what = "the lock of a run directory is a symbolic link",
                      .where = path_.string(),
                      .why = "it would be written to where it leads",
                      .fix = "Remove the link, and see who made it."});
  }
  struct stat status{};
  if (descriptor_ < 0) throw detail::io_error("open", path_, errno);
  if (::fstat(descriptor_, &status) != 0) {
    int const code = errno;
    ::close(descriptor_);
    throw detail::io_error("fstat", path_, code);
  }
  id_ = detail::FileId::of(status);
}

FRUGAL_INLINE void RunLock::take(LockBy by) {
  bool const by_kernel = by != LockBy::owner_file && take_kernel_lock(by);
  if (!by_kernel) owner_file_.emplace(path_);
  left_by_ = detail::read_owner(path_);
  if (left_by_) require_gone(*left_by_, by_kernel);
  write(LockOwner::here().text());
  auto const other = detail::OwnerFile::path_of(path_);
  if (!by_kernel || !detail::FileId::of(other)) return;
  try {
    detail::OwnerFile::require_dead(other, path_);
  } catch (...) {
    write(left_by_ ? left_by_->text() : "");
    throw;
  }
}

FRUGAL_INLINE void RunLock::require_gone(LockOwner const& owner, bool by_kernel) const {
  auto const life = owner.life();
  bool gone = life == LockOwner::Life::dead;
  // A kernel lock proves that an owner on another machine is gone; a file does not.
  gone = gone || (life == LockOwner::Life::unknown && by_kernel);
  // A program that restarted itself with exec() lost the kernel's lock and kept its process id.
  gone = gone || (owner.pid == ::getpid() && by_kernel);
  if (!gone) throw detail::lock_refusal(path_, owner, detail::removal_hint({path_}));
}

FRUGAL_INLINE bool RunLock::take_kernel_lock(LockBy by) {
  int result = 0;
  do {
    result = ::flock(descriptor_, LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return true;
  if (errno == EWOULDBLOCK) throw detail::lock_refusal(path_, detail::read_owner(path_), "");
  bool const unknown = errno == ENOLCK || errno == EOPNOTSUPP || errno == ENOSYS;
  if (by == LockBy::automatic && unknown) return false;
  throw detail::io_error("flock", path_, errno);
}

FRUGAL_INLINE void RunLock::write(std::string const& text) {
  // Only for other processes' error text; on a full disk the lock holds all the same.
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    errno = 0;
  }
}

}  // namespace frugal

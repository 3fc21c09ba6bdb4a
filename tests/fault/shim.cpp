// SPDX-License-Identifier: Apache-2.0
// Injects a fault into the k-th call to the file system of any program:
// LD_PRELOAD=libfrugal_fault.so.
//
//  FRUGAL_FAULT_UNDER=DIR    count only calls on paths in this folder
//  FRUGAL_FAULT_CALLS=a,b    count only these calls (the names below, "create" for an open
//                            that may create a file; default: all)
//  FRUGAL_FAULT_FROM=TEXT    start counting at the first call whose path contains TEXT
//  FRUGAL_FAULT_AT=K         the call to fail, from 1; 0 or unset: none
//  FRUGAL_FAULT_DO=WHAT      kill: SIGKILL instead of the call; tear: write half, then SIGKILL;
//                            short: write half and report that; term: SIGTERM before the call;
//                            clock: set the wall clock back by an hour; or the name of an errno,
//                            with which the call fails
//  FRUGAL_FAULT_TIMES=N      the number of faulty calls from K on (default 1; 0: all that follow)
//  FRUGAL_FAULT_ALWAYS=a:E,b:E   in addition, always fail these calls with these errnos, as a file
//                            system without them does
//  FRUGAL_FAULT_LOG=FILE     write "number call path" for every counted call, one per line
//  FRUGAL_FAULT_LATER=1      do nothing until the program calls frugal_fault_arm(), which it finds
//                            with dlsym and calls in a fork with its own settings
//
// A call is counted when it reaches the C library through its symbol. Calls inside the C library
// (fopen's open) are not seen; std::ofstream's writes are.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace {

struct Name {
  char const* name;
  int code;
};

constexpr Name errnos[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EINTR", EINTR},
                           {"EDQUOT", EDQUOT}, {"EROFS", EROFS},   {"EACCES", EACCES},
                           {"EINVAL", EINVAL}, {"ENOLCK", ENOLCK}, {"EOPNOTSUPP", EOPNOTSUPP},
                           {"EMFILE", EMFILE}, {"ENOSYS", ENOSYS}, {"ESTALE", ESTALE},
                           {"EPERM", EPERM},   {"EAGAIN", EAGAIN}};

enum class Act { pass, kill, tear, shorten, term, clock, fail };

struct Settings {
  char under[PATH_MAX] = "";
  std::size_t under_size = 0;
  char const* calls = nullptr;
  char const* from = nullptr;
  char const* always = nullptr;
  long at = 0;
  long times = 1;
  Act act = Act::pass;
  int code = 0;
  int log = -1;
};

Settings settings;
std::atomic<bool> ready{false};
std::atomic<bool> begun{false};
std::atomic<long> counted{0};
std::atomic<long> hours_back{0};

[[noreturn]] void refuse(char const* what, char const* value) {
  fprintf(stderr, "fault: %s is not known: %s\n", what, value);
  _exit(121);
}

[[noreturn]] void die() {
  syscall(SYS_kill, getpid(), SIGKILL);
  for (;;) pause();
}

void set_up() {
  char const* under = getenv("FRUGAL_FAULT_UNDER");
  if (under == nullptr || realpath(under, settings.under) == nullptr) {
    refuse("FRUGAL_FAULT_UNDER", under == nullptr ? "unset" : under);
  }
  settings.under_size = strlen(settings.under);
  settings.calls = getenv("FRUGAL_FAULT_CALLS");
  settings.from = getenv("FRUGAL_FAULT_FROM");
  settings.always = getenv("FRUGAL_FAULT_ALWAYS");
  if (char const* at = getenv("FRUGAL_FAULT_AT")) settings.at = atol(at);
  if (char const* times = getenv("FRUGAL_FAULT_TIMES")) settings.times = atol(times);
  char const* act = getenv("FRUGAL_FAULT_DO");
  if (settings.at > 0) {
    if (act == nullptr) refuse("FRUGAL_FAULT_DO", "unset");
    if (strcmp(act, "kill") == 0) settings.act = Act::kill;
    if (strcmp(act, "tear") == 0) settings.act = Act::tear;
    if (strcmp(act, "short") == 0) settings.act = Act::shorten;
    if (strcmp(act, "term") == 0) settings.act = Act::term;
    if (strcmp(act, "clock") == 0) settings.act = Act::clock;
    for (Name const& each : errnos) {
      if (strcmp(act, each.name) == 0) {
        settings.act = Act::fail;
        settings.code = each.code;
      }
    }
    if (settings.act == Act::pass) refuse("FRUGAL_FAULT_DO", act);
  }
  if (char const* log = getenv("FRUGAL_FAULT_LOG")) {
    settings.log = static_cast<int>(
        syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (settings.log < 0) refuse("FRUGAL_FAULT_LOG", log);
  }
  ready = true;
}

// Separate from main, which may never run: constructors of other libraries open files too.
__attribute__((constructor)) void begin() {
  if (getenv("FRUGAL_FAULT_LATER") == nullptr) set_up();
}

/// Writes the absolute path of `name`, relative to `folder` (a descriptor or AT_FDCWD), without
/// following it.
bool absolute(int folder, char const* name, char (&out)[2 * PATH_MAX]) {
  char base[PATH_MAX] = "";
  if (name[0] != '/') {
    if (folder == AT_FDCWD) {
      if (getcwd(base, sizeof base) == nullptr) return false;
    } else {
      char link[64];
      snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
      ssize_t const size = readlink(link, base, sizeof base - 1);
      if (size < 0) return false;
      base[size] = '\0';
    }
  }
  if (name[0] == '\0') {
    snprintf(out, sizeof out, "%s", base);
  } else {
    snprintf(out, sizeof out, "%s%s%s", base, name[0] == '/' ? "" : "/", name);
  }
  return true;
}

/// The errno for a call in FRUGAL_FAULT_ALWAYS; 0 if none.
int always_of(char const* call) {
  if (settings.always == nullptr) return 0;
  std::size_t const size = strlen(call);
  char const* const end = settings.always + strlen(settings.always);
  for (char const* at = settings.always; at < end; ++at) {
    std::size_t const length = strcspn(at, ",");
    if (length > size && strncmp(at, call, size) == 0 && at[size] == ':') {
      for (Name const& each : errnos) {
        std::size_t const name = strlen(each.name);
        if (length == size + 1 + name && strncmp(at + size + 1, each.name, name) == 0) {
          return each.code;
        }
      }
      refuse("FRUGAL_FAULT_ALWAYS", settings.always);
    }
    at += length;
  }
  return 0;
}

bool listed(char const* names, char const* name) {
  std::size_t const size = strlen(name);
  for (char const* at = names; (at = strstr(at, name)) != nullptr; at += size) {
    bool const starts = at == names || at[-1] == ',';
    if (starts && (at[size] == ',' || at[size] == '\0')) return true;
  }
  return false;
}

/// Counts a call, and performs the fault as far as it does not depend on the call's arguments.
Act met(char const* call, int folder, char const* name) {
  if (!ready) return Act::pass;
  int const before = errno;
  char path[2 * PATH_MAX];
  if (!absolute(folder, name, path) || strncmp(path, settings.under, settings.under_size) != 0 ||
      (path[settings.under_size] != '/' && path[settings.under_size] != '\0') ||
      (settings.calls != nullptr && !listed(settings.calls, call))) {
    errno = before;
    return Act::pass;
  }
  if (settings.from != nullptr && !begun) {
    if (strstr(path, settings.from) == nullptr) {
      errno = before;
      return Act::pass;
    }
    begun = true;
  }
  long const number = ++counted;
  if (settings.log >= 0) {
    char line[3 * PATH_MAX];
    int const size = snprintf(line, sizeof line, "%ld %s %s\n", number, call, path);
    if (syscall(SYS_write, settings.log, line, static_cast<std::size_t>(size)) != size) die();
  }
  errno = before;
  bool const hit = settings.at > 0 && number >= settings.at &&
                   (settings.times == 0 || number < settings.at + settings.times);
  if (!hit) {
    int const code = always_of(call);
    if (code == 0) return Act::pass;
    errno = code;
    return Act::fail;
  }
  if (settings.act == Act::kill) die();
  if (settings.act == Act::term) {
    syscall(SYS_kill, getpid(), SIGTERM);  // to the process: this thread may block signals
    return Act::pass;
  }
  if (settings.act == Act::clock) {
    ++hours_back;
    return Act::pass;
  }
  if (settings.act == Act::fail) errno = settings.code;
  return settings.act;
}

Act met(char const* call, int descriptor) { return met(call, descriptor, ""); }
Act met(char const* call, char const* name) { return met(call, AT_FDCWD, name); }

template <class Function>
Function* next_of(char const* symbol) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, symbol));
}

/// The real function of a symbol, and the fault of a call.
#define NEXT(symbol) static auto* const next = next_of<decltype(::symbol)>(#symbol)

/// A write of `size` bytes; `half` writes the first half.
template <class Whole, class Half>
ssize_t writing(Act act, std::size_t size, Whole whole, Half half) {
  if (act == Act::fail) return -1;
  if (act == Act::tear) {
    half(size / 2);
    die();
  }
  // Half of one byte is nothing, which is no short write.
  if (act == Act::shorten && size > 1) return half(size / 2);
  return whole();
}

/// Whether a call fails. Faults that only apply to writes do not affect other calls.
bool fails(Act act) { return act == Act::fail; }

}  // namespace

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // there are also structs named flock and stat

extern "C" {

__attribute__((visibility("default"))) void frugal_fault_arm() { set_up(); }

int clock_gettime(clockid_t clock, struct timespec* out) noexcept {
  NEXT(clock_gettime);
  int const result = next(clock, out);
  if (result == 0 && clock == CLOCK_REALTIME) out->tv_sec -= 3600 * hours_back;
  return result;
}

int gettimeofday(struct timeval* out, void* zone) noexcept {
  static auto* const next = next_of<int(struct timeval*, void*)>("gettimeofday");
  int const result = next(out, zone);
  if (result == 0) out->tv_sec -= 3600 * hours_back;
  return result;
}

time_t time(time_t* out) noexcept {
  NEXT(time);
  time_t const now = next(nullptr) - 3600 * hours_back;
  if (out != nullptr) *out = now;
  return now;
}

ssize_t write(int fd, void const* data, size_t size) {
  NEXT(write);
  return writing(
      met("write", fd), size, [&] { return next(fd, data, size); },
      [&](std::size_t part) { return next(fd, data, part); });
}

ssize_t pwrite(int fd, void const* data, size_t size, off_t at) {
  NEXT(pwrite);
  return writing(
      met("pwrite", fd), size, [&] { return next(fd, data, size, at); },
      [&](std::size_t part) { return next(fd, data, part, at); });
}

ssize_t pwrite64(int fd, void const* data, size_t size, off64_t at) {
  NEXT(pwrite64);
  return writing(
      met("pwrite", fd), size, [&] { return next(fd, data, size, at); },
      [&](std::size_t part) { return next(fd, data, part, at); });
}

ssize_t writev(int fd, iovec const* parts, int count) {
  NEXT(writev);
  std::size_t size = 0;
  for (int i = 0; i < count; ++i) size += parts[i].iov_len;
  return writing(
      met("writev", fd), size, [&] { return next(fd, parts, count); },
      [&](std::size_t part) {
        if (count == 0) return ssize_t{0};
        iovec first = parts[0];
        if (first.iov_len > part) first.iov_len = part;
        return next(fd, &first, 1);
      });
}

int fsync(int fd) {
  NEXT(fsync);
  return fails(met("fsync", fd)) ? -1 : next(fd);
}

int fdatasync(int fd) {
  NEXT(fdatasync);
  return fails(met("fdatasync", fd)) ? -1 : next(fd);
}

int close(int fd) {
  NEXT(close);
  // Linux closes the descriptor even when close fails.
  Act const act = met("close", fd);
  int const code = errno;
  int const result = next(fd);
  if (!fails(act)) return result;
  errno = code;
  return -1;
}

int fallocate(int fd, int mode, off_t at, off_t size) {
  NEXT(fallocate);
  return fails(met("fallocate", fd)) ? -1 : next(fd, mode, at, size);
}

int fallocate64(int fd, int mode, off64_t at, off64_t size) {
  NEXT(fallocate64);
  return fails(met("fallocate", fd)) ? -1 : next(fd, mode, at, size);
}

int ftruncate(int fd, off_t size) noexcept {
  NEXT(ftruncate);
  return fails(met("ftruncate", fd)) ? -1 : next(fd, size);
}

int ftruncate64(int fd, off64_t size) noexcept {
  NEXT(ftruncate64);
  return fails(met("ftruncate", fd)) ? -1 : next(fd, size);
}

int flock(int fd, int operation) noexcept {
  static auto* const next = next_of<int(int, int)>("flock");
  return fails(met("flock", fd)) ? -1 : next(fd, operation);
}

int rename(char const* from, char const* to) noexcept {
  NEXT(rename);
  return fails(met("rename", to)) ? -1 : next(from, to);
}

int renameat(int from_folder, char const* from, int to_folder, char const* to) noexcept {
  NEXT(renameat);
  return fails(met("rename", to_folder, to)) ? -1 : next(from_folder, from, to_folder, to);
}

int renameat2(int from_folder, char const* from, int to_folder, char const* to,
              unsigned flags) noexcept {
  NEXT(renameat2);
  return fails(met("renameat2", to_folder, to)) ? -1
                                                : next(from_folder, from, to_folder, to, flags);
}

int link(char const* from, char const* to) noexcept {
  NEXT(link);
  return fails(met("link", to)) ? -1 : next(from, to);
}

int mkdir(char const* path, mode_t mode) noexcept {
  NEXT(mkdir);
  return fails(met("mkdir", path)) ? -1 : next(path, mode);
}

int mkdirat(int folder, char const* path, mode_t mode) noexcept {
  NEXT(mkdirat);
  return fails(met("mkdir", folder, path)) ? -1 : next(folder, path, mode);
}

int unlink(char const* path) noexcept {
  NEXT(unlink);
  return fails(met("unlink", path)) ? -1 : next(path);
}

int unlinkat(int folder, char const* path, int flags) noexcept {
  NEXT(unlinkat);
  return fails(met("unlink", folder, path)) ? -1 : next(folder, path, flags);
}

int rmdir(char const* path) noexcept {
  NEXT(rmdir);
  return fails(met("rmdir", path)) ? -1 : next(path);
}

int remove(char const* path) noexcept {
  NEXT(remove);
  return fails(met("unlink", path)) ? -1 : next(path);
}

ssize_t read(int fd, void* data, size_t size) {
  NEXT(read);
  return fails(met("read", fd)) ? -1 : next(fd, data, size);
}

int stat(char const* path, struct stat* out) noexcept {
  static auto* const next = next_of<int(char const*, struct stat*)>("stat");
  return fails(met("stat", path)) ? -1 : next(path, out);
}

int fstat(int fd, struct stat* out) noexcept {
  static auto* const next = next_of<int(int, struct stat*)>("fstat");
  return fails(met("fstat", fd)) ? -1 : next(fd, out);
}

dirent* readdir(DIR* folder) {
  NEXT(readdir);
  return fails(met("readdir", dirfd(folder))) ? nullptr : next(folder);
}

dirent64* readdir64(DIR* folder) {
  NEXT(readdir64);
  return fails(met("readdir", dirfd(folder))) ? nullptr : next(folder);
}

// An open counts as "create" if it can create or change a file, otherwise as "open".
#define OPENING(symbol, folder, path, ...)                                         \
  mode_t mode = 0;                                                                 \
  if ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE) {                \
    va_list rest;                                                                  \
    va_start(rest, flags);                                                         \
    mode = va_arg(rest, mode_t);                                                   \
    va_end(rest);                                                                  \
  }                                                                                \
  char const* const call = (flags & (O_CREAT | O_TRUNC)) != 0 ? "create" : "open"; \
  NEXT(symbol);                                                                    \
  return fails(met(call, folder, path)) ? -1 : next(__VA_ARGS__, flags, mode)

int open(char const* path, int flags, ...) { OPENING(open, AT_FDCWD, path, path); }
int open64(char const* path, int flags, ...) { OPENING(open64, AT_FDCWD, path, path); }
int openat(int folder, char const* path, int flags, ...) {
  OPENING(openat, folder, path, folder, path);
}
int openat64(int folder, char const* path, int flags, ...) {
  OPENING(openat64, folder, path, folder, path);
}

}  // extern "C"

#pragma GCC diagnostic pop

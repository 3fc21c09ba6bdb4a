// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>

#include <frugal/base/io_error.hpp>
#include <frugal/checkpoint/run_file.hpp>
#include <frugal/error.hpp>

namespace frugal::detail {

/// The least length of a token: 16 characters of a good source have 64 bits or more.
inline constexpr std::size_t least_token = 16;

inline std::string new_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw io_error("getrandom", "a new token", errno);
  }
  std::string text;
  for (unsigned char const byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

/// A new file with a new token, which this user alone can read. Another process may be quicker.
inline void make_token_file(std::filesystem::path const& path) {
  std::filesystem::path made = path;
  made += ".new-" + std::to_string(::getpid());
  int const file = ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) throw io_error("open", made, errno);
  std::string const token = new_token() + '\n';
  bool const written =
      ::write(file, token.data(), token.size()) == static_cast<ssize_t>(token.size()) &&
      ::fsync(file) == 0;
  int code = written ? 0 : errno;
  ::close(file);
  // Whole or not there: another process may be reading it.
  if (written && ::link(made.c_str(), path.c_str()) != 0 && errno != EEXIST) code = errno;
  ::unlink(made.c_str());
  if (code != 0) throw io_error("link", path, code);
}

/// The token in a file. If there is none: `makes` makes one, others wait for it for so long.
/// SettingsError for a file that others can read or write, or that is not this user's.
inline std::string token_in_file(std::filesystem::path const& path, bool makes,
                                 std::chrono::milliseconds patience) {
  auto const refuse = [&](std::string what, std::string why, std::string fix) {
    throw SettingsError({.what = std::move(what),
                         .where = "FRUGAL_CLUSTER_TOKEN_FILE, " + path.string(),
                         .why = std::move(why),
                         .fix = std::move(fix)});
  };
  auto const end = std::chrono::steady_clock::now() + patience;
  while (true) {
    // Not blocking: it may be a pipe.
    int const file = open_run_file(path, O_RDONLY | O_NONBLOCK);
    int const code = file < 0 ? errno : 0;
    if (file < 0 && code == ENOENT) {
      if (makes) {
        make_token_file(path);
        continue;
      }
      if (std::chrono::steady_clock::now() > end) {
        refuse("there is no file with the token of the run",
               "rank 0 makes it, and this machine does not see it",
               "Name a file in a folder that all machines share, or set FRUGAL_CLUSTER_TOKEN.");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      continue;
    }
    if (file < 0) throw io_error("open", path, code);
    struct stat status{};
    std::array<char, 4097> text{};
    bool const known = ::fstat(file, &status) == 0;
    ssize_t const got =
        known && S_ISREG(status.st_mode) ? ::read(file, text.data(), text.size()) : 0;
    ::close(file);
    if (!known || !S_ISREG(status.st_mode)) {
      refuse("it is not a plain file", "a token is read from one", "Name another file.");
    }
    if (status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
      refuse("others can read or change the token of the run",
             status.st_uid != ::geteuid() ? "the file belongs to another user"
                                          : "its mode lets the group or all users in",
             "Make it yours alone: chmod 600, or remove it, and rank 0 makes a new one.");
    }
    std::string token(text.data(), got < 0 ? 0 : static_cast<std::size_t>(got));
    while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
    if (token.size() > 4095)
      refuse("the token is too long", "4,095 bytes are enough", "Shorten it.");
    return token;
  }
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/sink/log_file.hpp>

#include <frugal/base/hash.hpp>
#include <frugal/base/signals.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <span>

namespace frugal::detail {

FRUGAL_INLINE LogFile::LogFile(std::filesystem::path const& path, Links links) {
  struct stat status{};
  // To read what stands before a mark. A pipe that were open for reading as well would never
  // break, and would block when it is full.
  bool const readable = ::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
  constexpr int flags = O_CREAT | O_APPEND;
  if (readable) descriptor_ = Descriptor(open_run_file(path, flags | O_RDWR, links));
  if (!descriptor_) descriptor_ = Descriptor(open_run_file(path, flags | O_WRONLY, links));
  regular_ = open() && ::fstat(descriptor_.get(), &status) == 0 && S_ISREG(status.st_mode);
}

FRUGAL_INLINE bool LogFile::removed() const {
  struct stat status{};
  return regular_ && ::fstat(descriptor_.get(), &status) == 0 && status.st_nlink == 0;
}

FRUGAL_INLINE std::uint64_t LogFile::size() const {
  struct stat status{};
  if (!regular_ || ::fstat(descriptor_.get(), &status) != 0) return 0;
  return static_cast<std::uint64_t>(status.st_size);
}

FRUGAL_INLINE LogFile::Place LogFile::place(Mark const& base) const {
  Place here{.mark = mark()};
  if (base.size > here.mark.size || !fits(base)) return here;
  here.base = base;
  here.since = read(base.size, here.mark.size - base.size);
  return here;
}

FRUGAL_INLINE bool LogFile::append(std::string_view lines) {
  std::optional<SigpipeGuard> quiet;
  if (!regular_) quiet.emplace();
  std::uint64_t const before = size();
  while (!lines.empty()) {
    ssize_t const written = ::write(descriptor_.get(), lines.data(), lines.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      int const why = errno;
      // The next line would otherwise begin after half of one.
      if (regular_ && size() > before) truncate(before);
      errno = why;
      return false;
    }
    lines.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

FRUGAL_INLINE std::string LogFile::read(std::uint64_t from, std::uint64_t count) const {
  std::string bytes(count, '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    ssize_t const read = ::pread(descriptor_.get(), bytes.data() + got, bytes.size() - got,
                                 static_cast<off_t>(from + got));
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) break;
    got += static_cast<std::size_t>(read);
  }
  bytes.resize(got);
  return bytes;
}

FRUGAL_INLINE std::uint64_t LogFile::tail_before(std::uint64_t size) const {
  std::uint64_t const count = std::min(size, tail_size);
  std::string const bytes = regular_ ? read(size - count, count) : std::string();
  if (count == 0 || bytes.size() != count) return 0;
  return Hash::of(std::as_bytes(std::span(bytes.data(), bytes.size())));
}

FRUGAL_INLINE bool LogFile::put(std::string_view bytes, std::uint64_t at) const {
  while (!bytes.empty()) {
    ssize_t const written =
        ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    at += static_cast<std::uint64_t>(written);
  }
  return true;
}

FRUGAL_INLINE bool is_event(std::string_view line, std::string_view event) {
  constexpr std::string_view begin = R"({"event":")";
  return line.starts_with(begin) && line.substr(begin.size()).starts_with(event) &&
         line.substr(begin.size() + event.size()).starts_with('"');
}

FRUGAL_INLINE bool is_repeated(std::string_view line) {
  return std::any_of(repeated_events.begin(), repeated_events.end(),
                     [&](std::string_view event) { return is_event(line, event); });
}

FRUGAL_INLINE bool WaitingLines::add(std::string_view lines, std::size_t most) {
  if (text_.size() + lines.size() > most) return false;
  text_ += lines;
  return true;
}

FRUGAL_INLINE void WaitingLines::go_back(std::string_view saved) {
  bool const still = text_.starts_with(saved);
  std::string out(still ? saved : "");
  if (!still) append(saved, true, out);
  append(std::string_view(text_).substr(still ? saved.size() : 0), false, out);
  text_ = std::move(out);
}

FRUGAL_INLINE void WaitingLines::append(std::string_view lines, bool repeated, std::string& out) {
  while (!lines.empty()) {
    std::string_view const line = lines.substr(0, lines.find('\n') + 1);
    if (line.empty()) return;
    if (is_repeated(line) == repeated) out += line;
    lines.remove_prefix(line.size());
  }
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <frugal/base/descriptor.hpp>
#include <frugal/checkpoint/run_file.hpp>

namespace frugal::detail {

/// The file of a log: lines are appended whole, and what is beyond a mark is cut off when the run
/// goes back to it. A pipe or a terminal is only appended to.
class LogFile {
 public:
  /// A length of the file, and what stands before it: another file of that name, such as the new
  /// one after a rotation, is not cut.
  struct Mark {
    std::uint64_t size = 0;  ///< bytes
    std::uint64_t tail = 0;  ///< hash of the last bytes before it; 0 where there are none
  };

  /// A place to which a run may come back, by a return within it (Rollback) or by a resume.
  ///
  /// A return cuts the file, perhaps to before a checkpoint, and the run writes another branch over
  /// the lines that this checkpoint counts on. If the run is killed then, it resumes the branch
  /// that is gone. So a checkpoint has the lines since the last place to which the run could
  /// return.
  struct Place {
    Mark mark{};
    Mark base{};          ///< where the run could return to; no size if it could not
    std::string since{};  ///< the lines from there to the mark

    template <class Archive>
    void persist(Archive& archive) {
      archive("size", mark.size);
      archive("tail", mark.tail);
      if constexpr (Archive::loading) {
        if (!archive.holds("base_size")) return;
      } else {
        if (base.size == 0) return;
      }
      archive("base_size", base.size);
      archive("base_tail", base.tail);
      archive("since", since);
    }
  };

  /// Opens or makes the file. Where it is not open() then, errno says why.
  explicit LogFile(std::filesystem::path const& path, Links links = Links::follow);

  bool open() const { return static_cast<bool>(descriptor_); }
  /// Whether it is a regular file, which keeps what is written and can be cut.
  bool regular() const { return regular_; }

  /// Whether it was deleted. What is written after that is lost when it is closed.
  bool removed() const;
  /// In bytes; 0 of a pipe.
  std::uint64_t size() const;

  /// The mark of the file's end; that of a pipe cuts nothing.
  Mark mark() const { return mark_at(size()); }
  /// The mark of any place, from its length alone.
  Mark mark_at(std::uint64_t length) const { return {.size = length, .tail = tail_before(length)}; }

  /// Whether this stands before the mark. False for a mark before which there is nothing.
  bool fits(Mark const& mark) const {
    return mark.tail != 0 && tail_before(mark.size) == mark.tail;
  }
  /// Its end, for a run that can return to `base` meanwhile.
  Place place(Mark const& base) const;

  /// All of the lines, or none of them where the file is a regular one; false with the reason in
  /// errno.
  bool append(std::string_view lines);

  /// Cuts off what is beyond the place, but for those lines of which `keep(line)` is true. Where
  /// another branch of the run stands at the place, its own lines replace that. False with the
  /// reason in errno. Nothing is done to another file, nor for a mark before which there is
  /// nothing.
  template <class Keep>
  bool cut(Place const& to, Keep&& keep) {
    bool const there = fits(to.mark);
    if (there ? size() <= to.mark.size : !fits(to.base)) return true;
    std::uint64_t const from = there ? to.mark.size : to.base.size;
    std::string const again = there ? std::string() : to.since;
    std::string const beyond = read(from, size() - from);
    std::string kept = again;
    for (std::size_t begin = 0, end = 0; begin < beyond.size(); begin = end) {
      end = std::min(beyond.find('\n', begin), beyond.size() - 1) + 1;
      std::string_view const line = std::string_view(beyond).substr(begin, end - begin);
      if (line.back() != '\n' || again.find(line) != std::string::npos) continue;
      if (keep(line)) kept += line;
    }
    // Over what goes, and only then is the rest cut off: a kill in between loses no kept line. A
    // descriptor that appends would write them to the end.
    int const flags = ::fcntl(descriptor_.get(), F_GETFL);
    if (flags < 0 || ::fcntl(descriptor_.get(), F_SETFL, flags & ~O_APPEND) != 0) return false;
    bool const done = put(kept, from) && truncate(from + kept.size());
    int const why = errno;
    bool const appends = ::fcntl(descriptor_.get(), F_SETFL, flags) == 0;
    errno = done ? errno : why;
    return done && appends;
  }

 private:
  static constexpr std::uint64_t tail_size = 256;  // a line or two, with the time in them

  std::string read(std::uint64_t from, std::uint64_t count) const;

  std::uint64_t tail_before(std::uint64_t size) const;

  bool put(std::string_view bytes, std::uint64_t at) const;

  bool truncate(std::uint64_t size) const {
    return ::ftruncate(descriptor_.get(), static_cast<off_t>(size)) == 0;
  }

  Descriptor descriptor_;
  bool regular_ = false;
};

/// Whether a line of a log is an event of that name.
bool is_event(std::string_view line, std::string_view event);

/// The events that a run which has gone back writes again: those of the log itself, and the marks
/// of Audit.
inline constexpr std::array<std::string_view, 6> repeated_events{"begin", "step", "validation",
                                                                 "epoch", "end",  "audit"};

bool is_repeated(std::string_view line);

/// The lines of a log that could not be written yet.
class WaitingLines {
 public:
  std::string const& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  void clear() { text_.clear(); }

  /// All of `lines`, or none of them if they became more than `most` bytes. True if they are kept.
  bool add(std::string_view lines, std::size_t most);

  /// A resume has those that waited when the checkpoint was made.
  void resume(std::string saved) { text_ = std::move(saved); }

  /// A return within the run has them too, but no event happens again: those after the checkpoint
  /// still wait, and those that were written meanwhile do not.
  void go_back(std::string_view saved);

 private:
  static void append(std::string_view lines, bool repeated, std::string& out);

  std::string text_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/report/sink/log_file.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file_stamp.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/base/mapped_file.hpp>
#include <frugal/data/data_identity.hpp>
#include <frugal/data/file_identity.hpp>
#include <frugal/data/sample_set.hpp>
#include <frugal/data/shards/damage.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal {

/// What one sample of a text file is.
enum class TextUnit {
  line,       ///< without its line feed, or carriage return and line feed; empty lines, too
  paragraph,  ///< lines up to an empty one or one of blanks; with the line feeds within it
  file,       ///< all of it
};

struct TextSettings {
  TextUnit unit = TextUnit::line;
  OnDamage on_damage = OnDamage::Fail;  ///< of a file that is missing, or is none
};

/// The lines, paragraphs or whole of text files, read in any order and by any number of threads.
///
/// The files are mapped into memory and read once when the set is made; that notes where every 32nd
/// unit begins. Bytes are given as they are, without a byte order mark at the start of a file.
///
/// Cost    memory: a quarter of a byte for a sample. A read looks through 16 units on average.
/// Errors  StoreError for a file that is missing or is none, unless OnDamage::Skip leaves it out;
///         IoError for one that cannot be opened now.
class TextLines {
 public:
  explicit TextLines(std::vector<std::filesystem::path> const& paths, TextSettings settings = {})
      : unit_(settings.unit), files_(open(paths, settings, damage_)) {}
  explicit TextLines(std::filesystem::path const& path, TextSettings settings = {})
      : TextLines(std::vector{path}, settings) {}

  std::uint64_t size() const { return files_->empty() ? 0 : files_->back().end; }

  std::string get(std::uint64_t index) const { return std::string(view(index)); }

  /// The line without a copy; valid as long as a copy of the set lives.
  FRUGAL_INLINE std::string_view view(std::uint64_t index) const {
    TextFile const& file = file_of(index);
    std::string_view const text = file.text();
    return unit_at(text, place(file, index), unit_).text;
  }

  /// "kjv.txt, byte 4711".
  FRUGAL_INLINE std::string name(std::uint64_t index) const {
    TextFile const& file = file_of(index);
    return file.path + ", byte " + std::to_string(file.skipped + place(file, index));
  }

  /// Changes when a file has another size or time, or the unit is another.
  FRUGAL_INLINE std::string identity() const {
    Hash all;
    for (TextFile const& file : *files_) {
      std::uint64_t const words[] = {
          Hash::of(std::as_bytes(std::span(file.path))), file.bytes.bytes().size(),
          static_cast<std::uint64_t>(file.time), static_cast<std::uint64_t>(unit_)};
      all.update(std::as_bytes(std::span(words)));
    }
    return "text " + hex_of(all.digest());
  }

  /// Wherever the files lie, and whenever they were fetched.
  FRUGAL_INLINE void identify(DataIdentity& to) const {
    detail::FilesIdentity files(files_->size());
    for (TextFile const& file : *files_) files.add(file.path);
    files.identify(to);
    to.add("unit", std::string(unit_ == TextUnit::line        ? "line"
                               : unit_ == TextUnit::paragraph ? "paragraph"
                                                              : "file"));
  }

  /// Samples of each file.
  FRUGAL_INLINE std::vector<std::uint64_t> shard_sizes() const {
    std::vector<std::uint64_t> sizes;
    for (TextFile const& file : *files_) {
      sizes.push_back(file.end - (sizes.empty() ? 0 : (*files_)[sizes.size() - 1].end));
    }
    return sizes;
  }

  /// What OnDamage::Skip has left out.
  DamageLog const& damage() const { return damage_; }

 private:
  static constexpr std::uint64_t stride = 32;

  struct TextFile {
    std::string path;
    MappedFile bytes;
    std::int64_t time = 0;              // of its last change, in nanoseconds
    std::size_t skipped = 0;            // bytes of a byte order mark
    std::uint64_t end = 0;              // samples of the set up to its last
    std::uint64_t begin = 0;            // before its first
    std::vector<std::uint64_t> starts;  // of every 32nd unit

    FRUGAL_INLINE std::string_view text() const {
      return std::string_view(reinterpret_cast<char const*>(bytes.bytes().data()),
                              bytes.bytes().size())
          .substr(skipped);
    }
  };

  struct Unit {
    std::string_view text;
    std::size_t next = 0;  // where the search for the next one begins
    bool found = false;
  };

  /// The line that begins at `at`, with where the next begins.
  FRUGAL_INLINE static Unit line_at(std::string_view text, std::size_t at) {
    if (at >= text.size()) return {};
    std::size_t const end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (end != text.size() && line.ends_with('\r')) line.remove_suffix(1);
    return {.text = line, .next = end + 1, .found = true};
  }

  static bool blank(std::string_view line) {
    return line.find_first_not_of(" \t\r\f\v") == std::string_view::npos;
  }

  /// The first unit at or after `at`.
  FRUGAL_INLINE static Unit unit_at(std::string_view text, std::size_t at, TextUnit unit) {
    if (unit == TextUnit::line) return line_at(text, at);
    if (unit == TextUnit::file) {
      return {.text = text, .next = text.size() + 1, .found = at <= text.size()};
    }
    Unit line = line_at(text, at);
    for (; line.found && blank(line.text); line = line_at(text, at)) at = line.next;
    if (!line.found) return {};
    std::size_t end = at;
    std::size_t next = at;
    for (; line.found && !blank(line.text); line = line_at(text, next)) {
      end = static_cast<std::size_t>(line.text.data() - text.data()) + line.text.size();
      next = line.next;
    }
    return {.text = text.substr(at, end - at), .next = next, .found = true};
  }

  FRUGAL_INLINE std::size_t place(TextFile const& file, std::uint64_t index) const {
    std::uint64_t const within = index - file.begin;
    std::size_t at = file.starts[within / stride];
    for (std::uint64_t i = 0; i < within % stride; ++i) at = unit_at(file.text(), at, unit_).next;
    if (unit_ != TextUnit::paragraph) return at;
    return static_cast<std::size_t>(unit_at(file.text(), at, unit_).text.data() -
                                    file.text().data());
  }

  FRUGAL_INLINE TextFile const& file_of(std::uint64_t index) const {
    detail::require_sample(index, size(), "a TextLines");
    return *std::partition_point(files_->begin(), files_->end(),
                                 [&](TextFile const& each) { return each.end <= index; });
  }

  FRUGAL_INLINE static TextFile read(std::filesystem::path const& path, TextUnit unit,
                                     std::uint64_t begin) {
    TextFile file;
    file.path = path.string();
    file.bytes = MappedFile(path, MappedFile::Access::normal);
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) throw detail::io_error("stat", path, errno);
    file.time = detail::FileStamp::of(status).modified;
    if (file.text().starts_with("\xef\xbb\xbf")) file.skipped = 3;
    file.begin = file.end = begin;
    std::string_view const text = file.text();
    std::size_t at = 0;
    for (Unit each = unit_at(text, at, unit); each.found; each = unit_at(text, at, unit)) {
      if ((file.end++ - begin) % stride == 0) file.starts.push_back(at);
      at = each.next;
    }
    return file;
  }

  FRUGAL_INLINE static std::shared_ptr<std::vector<TextFile> const> open(
      std::vector<std::filesystem::path> const& paths, TextSettings const& settings,
      DamageLog const& damage) {
    auto files = std::make_shared<std::vector<TextFile>>();
    for (std::filesystem::path const& path : paths) {
      open_or_skip(settings.on_damage, damage, path.string(), [&] {
        files->push_back(read(path, settings.unit, files->empty() ? 0 : files->back().end));
      });
    }
    return files;
  }

  DamageLog damage_;
  TextUnit unit_;
  std::shared_ptr<std::vector<TextFile> const> files_;
};

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/shards/damage.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
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
  std::string_view view(std::uint64_t index) const;

  /// "kjv.txt, byte 4711".
  std::string name(std::uint64_t index) const;

  /// Changes when a file has another size or time, or the unit is another.
  std::string identity() const;

  /// Wherever the files lie, and whenever they were fetched.
  void identify(DataIdentity& to) const;

  /// Samples of each file.
  std::vector<std::uint64_t> shard_sizes() const;

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

    std::string_view text() const;
  };

  struct Unit {
    std::string_view text;
    std::size_t next = 0;  // where the search for the next one begins
    bool found = false;
  };

  /// The line that begins at `at`, with where the next begins.
  static Unit line_at(std::string_view text, std::size_t at);

  static bool blank(std::string_view line) {
    return line.find_first_not_of(" \t\r\f\v") == std::string_view::npos;
  }

  /// The first unit at or after `at`.
  static Unit unit_at(std::string_view text, std::size_t at, TextUnit unit);

  std::size_t place(TextFile const& file, std::uint64_t index) const;

  TextFile const& file_of(std::uint64_t index) const;

  static TextFile read(std::filesystem::path const& path, TextUnit unit, std::uint64_t begin);

  static std::shared_ptr<std::vector<TextFile> const> open(
      std::vector<std::filesystem::path> const& paths, TextSettings const& settings,
      DamageLog const& damage);

  DamageLog damage_;
  TextUnit unit_;
  std::shared_ptr<std::vector<TextFile> const> files_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/shards/text_lines.ipp>
#endif

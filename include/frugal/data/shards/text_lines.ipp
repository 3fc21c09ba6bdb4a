// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/text_lines.hpp>

#include <frugal/base/file_id.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/data/file_identity.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

namespace frugal {

FRUGAL_INLINE std::string_view TextLines::view(std::uint64_t index) const {
  TextFile const& file = file_of(index);
  std::string_view const text = file.text();
  return unit_at(text, place(file, index), unit_).text;
}

FRUGAL_INLINE std::string TextLines::name(std::uint64_t index) const {
  TextFile const& file = file_of(index);
  return file.path + ", byte " + std::to_string(file.skipped + place(file, index));
}

FRUGAL_INLINE std::string TextLines::identity() const {
  Hash all;
  for (TextFile const& file : *files_) {
    std::uint64_t const words[] = {Hash::of(std::as_bytes(std::span(file.path))),
                                   file.bytes.bytes().size(), static_cast<std::uint64_t>(file.time),
                                   static_cast<std::uint64_t>(unit_)};
    all.update(std::as_bytes(std::span(words)));
  }
  return "text " + hex_of(all.digest());
}

FRUGAL_INLINE void TextLines::identify(DataIdentity& to) const {
  detail::FilesIdentity files(files_->size());
  for (TextFile const& file : *files_) files.add(file.path);
  files.identify(to);
  to.add("unit", std::string(unit_ == TextUnit::line        ? "line"
                             : unit_ == TextUnit::paragraph ? "paragraph"
                                                            : "file"));
}

FRUGAL_INLINE std::vector<std::uint64_t> TextLines::shard_sizes() const {
  std::vector<std::uint64_t> sizes;
  for (TextFile const& file : *files_) {
    sizes.push_back(file.end - (sizes.empty() ? 0 : (*files_)[sizes.size() - 1].end));
  }
  return sizes;
}

FRUGAL_INLINE std::string_view TextLines::TextFile::text() const {
  return std::string_view(reinterpret_cast<char const*>(bytes.bytes().data()), bytes.bytes().size())
      .substr(skipped);
}

FRUGAL_INLINE TextLines::Unit TextLines::line_at(std::string_view text, std::size_t at) {
  if (at >= text.size()) return {};
  std::size_t const end = std::min(text.find('\n', at), text.size());
  std::string_view line = text.substr(at, end - at);
  if (end != text.size() && line.ends_with('\r')) line.remove_suffix(1);
  return {.text = line, .next = end + 1, .found = true};
}

FRUGAL_INLINE TextLines::Unit TextLines::unit_at(std::string_view text, std::size_t at,
                                                 TextUnit unit) {
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

FRUGAL_INLINE std::size_t TextLines::place(TextFile const& file, std::uint64_t index) const {
  std::uint64_t const within = index - file.begin;
  std::size_t at = file.starts[within / stride];
  for (std::uint64_t i = 0; i < within % stride; ++i) at = unit_at(file.text(), at, unit_).next;
  if (unit_ != TextUnit::paragraph) return at;
  return static_cast<std::size_t>(unit_at(file.text(), at, unit_).text.data() - file.text().data());
}

FRUGAL_INLINE TextLines::TextFile const& TextLines::file_of(std::uint64_t index) const {
  detail::require_sample(index, size(), "a TextLines");
  return *std::partition_point(files_->begin(), files_->end(),
                               [&](TextFile const& each) { return each.end <= index; });
}

FRUGAL_INLINE TextLines::TextFile TextLines::read(std::filesystem::path const& path, TextUnit unit,
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

FRUGAL_INLINE std::shared_ptr<std::vector<TextLines::TextFile> const> TextLines::open(
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

}  // namespace frugal

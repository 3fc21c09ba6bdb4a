// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/cost_meter/bill_file.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace frugal::detail {

FRUGAL_INLINE void BillFile::write(Entry entry) const noexcept {
  if (!descriptor_) return;
  std::array<char, heading.size() + fields * width + 1> text;
  text.fill(' ');
  char* at = std::copy(heading.begin(), heading.end(), text.data());
  each(entry, [&](auto const& value) {
    std::to_chars(at + 1, at + width, value);
    at += width;
  });
  *at = '\n';
  // One write of one length at one place: a reader sees the last or the one before it.
  if (::pwrite(descriptor_.get(), text.data(), text.size(), 0) < 0) return;
}

FRUGAL_INLINE std::optional<BillFile::Entry> BillFile::read(std::filesystem::path const& path) {
  std::string const all = read_run_file(path, 512);
  std::string_view text(all);
  if (!text.starts_with(heading)) return std::nullopt;
  text.remove_prefix(heading.size());
  Entry entry;
  bool whole = true;
  each(entry, [&](auto& value) { whole = whole && take(text, value); });
  return whole && text == "\n" ? std::optional(entry) : std::nullopt;
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/file_identity.hpp>
#include <frugal/data/shards/damage.hpp>
#include <frugal/data/shards/open_files.hpp>
#include <frugal/data/shards/tar_sample.hpp>
#include <frugal/data/shards/tar_scan.hpp>
#include <frugal/error.hpp>

namespace frugal {

namespace detail {

/// The most shards that one pattern may give; more are taken for a typing error.
constexpr std::size_t most_shards = 1'000'000;

/// The numbers of "000..146", as wide as the wider of the two if one begins with 0; nothing for
/// other texts.
inline std::vector<std::string> numbers_between(std::string_view range) {
  std::size_t const dots = range.find("..");
  if (dots == std::string_view::npos) return {};
  auto const number = [](std::string_view text, std::uint64_t& out) {
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return !text.empty() && error == std::errc() && end == text.data() + text.size();
  };
  std::string_view const from = range.substr(0, dots);
  std::string_view const to = range.substr(dots + 2);
  std::uint64_t first = 0, last = 0;
  if (!number(from, first) || !number(to, last)) return {};
  bool const padded =
      (from.size() > 1 && from.front() == '0') || (to.size() > 1 && to.front() == '0');
  std::size_t const width = padded ? std::max(from.size(), to.size()) : 1;
  std::uint64_t const count = (first < last ? last - first : first - last);
  if (count >= most_shards) {
    throw SettingsError({.what = "a pattern gives too many shards",
                         .where = "{" + std::string(range) + "}",
                         .why = "at most " + std::to_string(most_shards) + " are read",
                         .fix = "Correct the numbers."});
  }
  std::vector<std::string> out;
  for (std::uint64_t i = 0; i <= count; ++i) {
    std::string digits = std::to_string(first < last ? first + i : first - i);
    out.push_back(std::string(width - std::min(width, digits.size()), '0') + digits);
  }
  return out;
}

}  // namespace detail

/// The names that a pattern with braces stands for, in the order of the shell:
/// "train-{000..002}.tar", "{a,b}-{0..9}.tar". Braces do not nest. A brace without an end, or with
/// neither a comma nor a range, stands for itself.
inline std::vector<std::string> expand_braces(std::string const& pattern) {
  for (std::size_t open = pattern.find('{'); open != std::string::npos;
       open = pattern.find('{', open + 1)) {
    std::size_t const close = pattern.find('}', open);
    if (close == std::string::npos) break;
    std::string const inside = pattern.substr(open + 1, close - open - 1);
    std::vector<std::string> choices = detail::numbers_between(inside);
    if (choices.empty() && inside.find(',') != std::string::npos) {
      for (std::size_t at = 0; at <= inside.size();) {
        std::size_t const end = std::min(inside.find(',', at), inside.size());
        choices.push_back(inside.substr(at, end - at));
        at = end + 1;
      }
    }
    if (choices.empty()) continue;
    std::vector<std::string> const rests = expand_braces(pattern.substr(close + 1));
    if (choices.size() > detail::most_shards / rests.size()) {
      throw SettingsError({.what = "a pattern gives too many shards",
                           .where = pattern,
                           .why = "at most " + std::to_string(detail::most_shards) + " are read",
                           .fix = "Correct the numbers."});
    }
    std::vector<std::string> out;
    for (std::string const& choice : choices) {
      for (std::string const& rest : rests) out.push_back(pattern.substr(0, open) + choice + rest);
    }
    return out;
  }
  return {pattern};
}

/// The shards that a text names: a file, a pattern with braces, or a folder, whose files with one
/// of the endings are taken in the order of their names.
///
/// Errors  DataError for a folder without such files.
inline std::vector<std::filesystem::path> shard_paths(
    std::string const& pattern, std::initializer_list<std::string_view> endings) {
  std::error_code ignored;
  std::vector<std::filesystem::path> out;
  if (!std::filesystem::is_directory(pattern, ignored)) {
    for (std::string& each : expand_braces(pattern)) out.emplace_back(std::move(each));
    return out;
  }
  for (std::filesystem::path const& each : entries_of(pattern)) {
    std::string const name = each.filename().string();
    bool const fits = std::any_of(endings.begin(), endings.end(),
                                  [&](std::string_view ending) { return name.ends_with(ending); });
    if (fits && !name.starts_with('.')) out.push_back(each);
  }
  if (out.empty()) {
    std::string all;
    for (std::string_view const ending : endings) {
      all += (all.empty() ? "" : ", ") + std::string(ending);
    }
    throw DataError({.what = "the folder holds no shards",
                     .where = pattern,
                     .why = "no name ends in one of: " + all,
                     .fix = "Check the path, or name the files."});
  }
  return out;
}

}  // namespace frugal

// Needs libarchive: FRUGAL_ARCHIVE=ON, and the target frugal::archive.
namespace frugal {

struct TarSettings {
  OnDamage on_damage = OnDamage::Fail;   ///< of a missing, truncated or damaged shard
  bool keep_index = true;                ///< write each shard's index to a file, and use it again
  std::filesystem::path index_folder{};  ///< of these files; empty: each is next to its shard
  std::uint64_t most_bytes = std::uint64_t{1} << 32;  ///< of a sample: it is read into memory whole
};

/// The samples of tar files in WebDataset's layout, read in any order and by any number of threads.
///
/// The first opening reads all headers of a shard and keeps them as an index, `x.tar.index`; an
/// index of a shard with another size, time or ctime is made again. A sample is then one read: the
/// bytes from its first member to the end of its last.
///
/// Cost    memory: none for indexes that were kept, whose pages the kernel can drop; else 40 bytes
///         and the key for a sample, and 24 for a member. At most 256 files of all sets of the
///         process are open between reads. A read asks the system once for the file's stamp.
/// Errors  DataError naming shard, member and byte: a compressed, truncated or damaged shard, a
///         member with an unsafe name, two of one name. StoreError for a shard that is missing.
///         With OnDamage::Skip these are left out, and in damage(). In either case IoError for a
///         shard that cannot be opened or read now, and ChangedError for one that is not the file
///         any more that the set was made of.
/// Source  the layout: github.com/webdataset/webdataset, version 1.0.
class TarSet {
 public:
  /// A file, a folder of .tar files, or a pattern: "train-{000000..000146}.tar".
  explicit TarSet(std::string const& shards, TarSettings settings = {})
      : TarSet(shard_paths(shards, {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2"}),
               std::move(settings)) {}
  explicit TarSet(std::vector<std::filesystem::path> const& shards, TarSettings settings = {})
      : damage_(), held_(hold(shards, settings, damage_)) {}

  /// Samples of all shards, in the order of the shards.
  std::uint64_t size() const { return held_->begins.back(); }

  TarSample get(std::uint64_t index) const {
    auto const [shard, sample] = place(index);
    detail::TarIndex const& samples = held_->indexes[shard];
    std::uint64_t const first = samples.first_member(sample);
    std::uint64_t const end = samples.end_member(sample);
    std::uint64_t const begin = samples.member(first).place.offset;
    std::size_t const size = samples.member(end - 1).place.end() - begin;
    if (size > held_->most_bytes) {
      throw DataError({.what = "a sample is too large",
                       .where = name(index),
                       .why = "it takes " + std::to_string(size) +
                              " bytes of the shard, from its " +
                              "first member to its last, and at most " +
                              std::to_string(held_->most_bytes) + " are read",
                       .fix = "Raise TarSettings::most_bytes, or leave the sample out."});
    }
    auto bytes = std::make_shared_for_overwrite<char[]>(size);
    held_->files[shard].read(begin, {bytes.get(), size});
    std::vector<TarSample::Field> fields;
    fields.reserve(end - first);
    for (std::uint64_t m = first; m < end; ++m) {
      detail::TarIndex::Member const member = samples.member(m);
      fields.push_back({.extension = std::string(member.extension),
                        .begin = member.place.offset - begin,
                        .size = member.place.size});
    }
    return {std::string(samples.key(sample)),
            std::shared_ptr<std::string const>(held_, &held_->names[shard]), std::move(bytes),
            std::move(fields)};
  }

  std::string name(std::uint64_t index) const {
    auto const [shard, sample] = place(index);
    return held_->names[shard] + ", sample " + std::string(held_->indexes[shard].key(sample));
  }

  /// Changes when a shard has another size or time, or holds other samples.
  std::string identity() const {
    Hash all;
    for (std::size_t i = 0; i < held_->names.size(); ++i) {
      std::uint64_t const words[] = {Hash::of(std::as_bytes(std::span(held_->names[i]))),
                                     held_->indexes[i].hash()};
      all.update(std::as_bytes(std::span(words)));
    }
    return "tar " + hex_of(all.digest());
  }

  /// Wherever the shards lie, and whenever they were fetched.
  void identify(DataIdentity& to) const {
    detail::FilesIdentity files(held_->names.size());
    for (std::string const& name : held_->names) files.add(name);
    files.identify(to);
  }

  /// Samples of each shard, for an order that keeps those of one shard together.
  std::vector<std::uint64_t> shard_sizes() const {
    std::vector<std::uint64_t> sizes;
    for (detail::TarIndex const& index : held_->indexes) sizes.push_back(index.samples());
    return sizes;
  }

  /// What OnDamage::Skip has left out.
  DamageLog const& damage() const { return damage_; }

 private:
  struct Held {
    std::vector<detail::PooledFile> files;
    std::vector<std::string> names;
    std::vector<detail::TarIndex> indexes;
    std::vector<std::uint64_t> begins{0};  // samples before each shard, and of all
    std::uint64_t most_bytes = 0;          // of a sample
  };

  static std::shared_ptr<Held const> hold(std::vector<std::filesystem::path> const& shards,
                                          TarSettings const& settings, DamageLog const& damage) {
    auto out = std::make_shared<Held>();
    out->most_bytes = settings.most_bytes;
    for (std::filesystem::path const& shard : shards) {
      open_or_skip(settings.on_damage, damage, shard.string(), [&] {
        detail::PooledFile file(shard);
        out->indexes.push_back(detail::tar_index_of(file, settings.on_damage, damage,
                                                    settings.keep_index, settings.index_folder));
        out->files.push_back(std::move(file));
        out->names.push_back(shard.string());
        out->begins.push_back(out->begins.back() + out->indexes.back().samples());
      });
    }
    return out;
  }

  struct Place {
    std::size_t shard;
    std::uint64_t sample;
  };
  Place place(std::uint64_t index) const {
    detail::require_sample(index, size(), "a TarSet");
    auto const after = std::upper_bound(held_->begins.begin(), held_->begins.end(), index);
    auto const shard = static_cast<std::size_t>(after - held_->begins.begin()) - 1;
    return {shard, index - held_->begins[shard]};
  }

  DamageLog damage_;
  std::shared_ptr<Held const> held_;
};

}  // namespace frugal

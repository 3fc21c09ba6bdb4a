// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/file_identity.hpp>
#include <frugal/data/shards/damage.hpp>
#include <frugal/data/shards/open_files.hpp>
#include <frugal/data/shards/shard_paths.hpp>
#include <frugal/data/shards/tar_sample.hpp>
#include <frugal/data/shards/tar_scan.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

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

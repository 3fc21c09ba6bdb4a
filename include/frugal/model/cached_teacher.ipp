// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/model/cached_teacher.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/io_error.hpp>
#include <frugal/data/cache/cache_settings.hpp>
#include <frugal/data/shards/record_layout.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE std::uint64_t entry_of_key(SampleKey const& key, std::uint64_t draws) {
  return draws == 1 ? key.index : key.index * draws + variant_of(key, draws);
}

FRUGAL_INLINE SampleKey key_of_entry(std::uint64_t entry, std::uint64_t draws) {
  SampleKey key{.index = entry / draws};
  while (entry_of_key(key, draws) != entry) ++key.epoch;
  return key;
}

FRUGAL_INLINE TeacherCacheFolder::TeacherCacheFolder(std::filesystem::path const& all,
                                                     std::string key)
    : key_(std::move(key)), path_(all / hex_of(Hash::of(std::as_bytes(std::span(key_))))) {
  create_folders(all);
  std::error_code ignored;
  if (!std::filesystem::exists(path_ / ShardList::file_name, ignored)) return;
  lock_ = std::make_shared<CacheFolderLock>(CacheFolderLock::shared(path_));
  complete_ = std::filesystem::exists(path_ / ShardList::file_name, ignored);
  if (complete_) require_key();
}

FRUGAL_INLINE void TeacherCacheFolder::publish(std::filesystem::path const& partial) {
  std::error_code ignored;
  if (std::filesystem::is_empty(path_, ignored)) std::filesystem::remove(path_, ignored);
  if (rename_to_free(partial, path_)) {  // the lock is on the folder, not on its name
    sync_folder(path_.parent_path());
    return;
  }
  lock_ = std::make_shared<CacheFolderLock>(CacheFolderLock::shared(path_));
  remove_tree(partial);
}

FRUGAL_INLINE std::filesystem::path TeacherCacheFolder::partial_path() const {
  std::uint64_t drawn = 0;
  if (::getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) {
    throw io_error("getrandom", path_, errno);
  }
  return path_.string() + "-" + hex_of(drawn) + partial_suffix_of_folders;
}

FRUGAL_INLINE void TeacherCacheFolder::remove_abandoned() const {
  std::string const begin = path_.filename().string() + "-";
  for (auto const& each : entries_of(path_.parent_path())) {
    std::string const name = each.filename().string();
    if (!name.starts_with(begin) || !name.ends_with(partial_suffix_of_folders)) continue;
    if (auto const alone = CacheFolderLock::alone(each)) remove_tree(each);
  }
}

FRUGAL_INLINE void TeacherCacheFolder::require_key() const {
  File file = File::open(path_ / "key.txt");
  std::vector<std::byte> bytes(file.size());
  bytes.resize(file.read(bytes));
  if (std::string(reinterpret_cast<char const*>(bytes.data()), bytes.size()) == key_) return;
  throw DataError({.what = "the cache belongs to something else",
                   .where = path_.string(),
                   .why = "its key is not that of this set and teacher, although both have one "
                          "hash",
                   .fix = "Remove that folder, or set another TeacherCacheSettings::folder."});
}

FRUGAL_INLINE void refuse_cut(std::string what, std::string why, std::string fix) {
  throw SettingsError({.what = std::move(what),
                       .where = "TeacherCacheSettings",
                       .why = std::move(why),
                       .fix = std::move(fix)});
}

FRUGAL_INLINE std::map<std::string, at::Tensor> kept_outputs(at::Tensor const& all_BJC,
                                                             TeacherCacheSettings const& settings) {
  auto const stored = [&](at::Tensor const& exact) {
    at::Tensor kept = exact.to(settings.type);
    if (exact.isfinite().equal(kept.isfinite())) return kept.cpu().contiguous();
    throw DataError({.what = "an output of the teacher does not fit the type of the cache",
                     .where = "TeacherCacheSettings::type",
                     .why = std::string(at::toString(settings.type)) + " ends before " +
                            std::to_string(exact.abs().max().item<double>()),
                     .fix = "Set kBFloat16, or kFloat."});
  };
  if (settings.top_k == 0) return {{"teacher", stored(all_BJC)}};
  if (all_BJC.dim() < 3 || settings.top_k >= all_BJC.size(2)) {
    refuse_cut("top_k is " + std::to_string(settings.top_k),
               "the teacher has " + std::to_string(all_BJC.dim() < 3 ? 1 : all_BJC.size(2)) +
                   " classes, and those that are left are one outcome more",
               "Give fewer, or 0 for all of them.");
  }
  at::Tensor const log = at::log_softmax(at_least_float(all_BJC) / settings.temperature, 2);
  auto const [values, classes] = log.topk(settings.top_k, 2);
  at::Tensor const others = log.scatter(2, classes, -std::numeric_limits<double>::infinity())
                                .logsumexp({2}, /*keepdim=*/true);
  return {{"classes", classes.to(at::kInt).cpu().contiguous()},
          {"teacher", at::cat({values, others}, 2).to(settings.type).cpu().contiguous()}};
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/checkpoint.hpp>

#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/in_order.hpp>
#include <frugal/base/signal_free_thread.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/inline.hpp>

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <exception>
#include <memory>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

namespace frugal::detail {

FRUGAL_INLINE FormatError damaged(std::filesystem::path const& file, std::string why) {
  return FormatError({.what = "a file of a checkpoint is damaged",
                      .where = file.string(),
                      .why = std::move(why),
                      .fix = "Use another checkpoint, or restore this one from a copy."});
}

FRUGAL_INLINE bool is_damage(StoreError const& error) {
  if (auto const* call = dynamic_cast<IoError const*>(&error)) {
    return call->code == EIO || call->code == ENOENT || call->code == ENOTDIR ||
           call->code == EISDIR || call->code == ELOOP;
  }
  return dynamic_cast<FormatError const*>(&error) != nullptr &&
         dynamic_cast<NewerFormatError const*>(&error) == nullptr;
}

FRUGAL_INLINE File open_file_of(SavedCheckpoint const& checkpoint, FileEntry const& entry) {
  auto const path = checkpoint.folder / entry.name;
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) throw io_error("stat", path, errno);
  // Opening a pipe would block for ever.
  if (!S_ISREG(status.st_mode)) throw damaged(path, "it is not a file");
  File file = File::open(path);
  if (std::uint64_t const size = file.size(); size != entry.size) {
    throw damaged(path, "it has " + std::to_string(size) + " bytes, and the manifest says " +
                            std::to_string(entry.size));
  }
  return file;
}

FRUGAL_INLINE void verify_file(SavedCheckpoint const& checkpoint, FileEntry const& entry) {
  File file = open_file_of(checkpoint, entry);
  // Uninitialised, and no larger than the file: clearing 1 MiB took nine tenths of a small check.
  std::size_t const size = std::min<std::size_t>(read_size, entry.size + 1);
  auto const buffer = std::make_unique_for_overwrite<std::byte[]>(size);
  Hash hash;
  while (std::size_t const got = file.read({buffer.get(), size})) {
    hash.update({buffer.get(), got});
  }
  if (hash.digest() != entry.hash) {
    throw damaged(file.path(), "its hash is " + hex_of(hash.digest()) + ", and the manifest says " +
                                   hex_of(entry.hash));
  }
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE void verify(SavedCheckpoint const& checkpoint) {
  std::vector<std::exception_ptr> faults(checkpoint.manifest.files.size());
  auto const read = [&](std::size_t i) noexcept {
    try {
      detail::verify_file(checkpoint, checkpoint.manifest.files[i]);
    } catch (...) {
      faults[i] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(faults.size());
  std::vector<std::size_t> here;
  here.reserve(faults.size());
  for (std::size_t i = 0; i < faults.size(); ++i) {
    try {
      if (checkpoint.manifest.files[i].size >= detail::worth_a_thread) {
        threads.push_back(detail::signal_free_thread([&read, i] { read(i); }));
        continue;
      }
    } catch (std::system_error const&) {
      // No thread available.
    }
    here.push_back(i);
  }
  for (std::size_t const i : here) read(i);
  for (std::thread& thread : threads) thread.join();
  for (std::exception_ptr const& fault : faults) {
    if (fault) std::rethrow_exception(fault);
  }
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE std::optional<std::uint64_t> step_of_name(std::string_view name) {
  constexpr std::string_view prefix = "step-";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::uint64_t step = 0;
  auto const [rest, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  name.remove_prefix(static_cast<std::size_t>(rest - name.data()));
  bool const numbered = name.size() > 1 && name.front() == '.' &&
                        name.find_first_not_of("0123456789", 1) == std::string_view::npos;
  if (error != std::errc() || !(name.empty() || numbered)) return std::nullopt;
  return step;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE SavedCheckpoint read_checkpoint(std::filesystem::path const& folder) {
  auto const path = folder / Manifest::file_name;
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) throw detail::io_error("stat", path, errno);
  if (!S_ISREG(status.st_mode)) throw detail::damaged(path, "it is not a file");
  File file = File::open(path);
  if (file.size() > Manifest::largest) {
    throw detail::damaged(file.path(), "no manifest has " + std::to_string(file.size()) + " bytes");
  }
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  text.resize(file.read(std::as_writable_bytes(std::span(text.data(), text.size()))));
  Manifest manifest = parse_manifest(text, file.path());
  auto const named = detail::step_of_name(folder.filename().string());
  if (named && *named != manifest.step) {
    throw detail::damaged(file.path(), "it is of step " + std::to_string(manifest.step) +
                                           ", and the folder's name says " +
                                           std::to_string(*named));
  }
  std::error_code ignored;
  return {.folder = folder,
          .manifest = std::move(manifest),
          .gold = std::filesystem::exists(folder / detail::gold_name, ignored)};
}

FRUGAL_INLINE CheckpointList list_checkpoints(std::filesystem::path const& folder) {
  CheckpointList list;
  std::error_code ignored;
  for (auto const& path : entries_of(folder)) {
    if (path.filename().string().starts_with('.')) continue;
    // If this fails, the read below reports why.
    auto const status = std::filesystem::status(path, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) continue;
    try {
      list.whole.push_back(read_checkpoint(path));
    } catch (StoreError const& error) {
      if (!detail::is_damage(error)) throw;
      // A trainer's retention may have deleted it since the directory was listed.
      if (std::filesystem::exists(path, ignored)) list.damaged.push_back({path, error.what()});
    }
  }
  detail::put_in_order(list.whole, [](SavedCheckpoint const& a, SavedCheckpoint const& b) {
    if (detail::newer(a.manifest, b.manifest)) return true;
    return !detail::newer(b.manifest, a.manifest) && a.folder < b.folder;
  });
  return list;
}

}  // namespace frugal

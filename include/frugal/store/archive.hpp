// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/archive_index.hpp>
#include <frugal/store/cold_storage.hpp>
#include <frugal/store/pack.hpp>
#include <frugal/store/run_directory.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// Needs libarchive: FRUGAL_ARCHIVE=ON, and the target frugal::archive.
namespace frugal {

struct ArchiveSettings {
  std::chrono::seconds older_than = std::chrono::hours(24 * 90);  ///< by the manifest's saved_at
  bool dry_run = true;                                            ///< only say what would be moved
  int level = 3;                                                  ///< of zstd, 1 to 19
};

struct ArchiveReport {
  std::vector<SavedCheckpoint> moved;  ///< or that would be, in a dry run; oldest first
  std::vector<Damage> damaged;         ///< not moved, for they are not whole
};

/// Moves old checkpoints of a run to cold storage, and brings them back.
///
/// A checkpoint is packed (tar, zstd), put there, read back and compared; then it is entered into
/// archive/index.json of the run, and only then deleted here. After a crash at any moment it is
/// here, or there, or both; the next move() goes on. Gold never moves, and neither does the newest
/// that is valid.
class Archive {
 public:
  /// SettingsError for storage that could not be verified, and for settings without sense.
  Archive(RunDirectory& run, ColdStorage storage, ArchiveSettings settings = {})
      : run_(run), storage_(std::move(storage)), settings_(settings) {
    detail::require_usable(storage_);
    if (settings_.level < 1 || settings_.level > 19 || settings_.older_than.count() < 0) {
      throw SettingsError({.what = "these settings make no archive",
                           .where = "ArchiveSettings",
                           .why = "level is not 1 to 19, or older_than is negative",
                           .mend = "Begin with the defaults."});
    }
  }

  std::vector<ArchivedCheckpoint> list() const { return ArchiveIndex(index_path()).entries(); }

  /// Which checkpoints are to be moved at the time `now`, oldest first.
  std::vector<SavedCheckpoint> plan(std::chrono::system_clock::time_point now) {
    auto const newest = run_.newest_valid().checkpoint;
    std::int64_t const limit = seconds(now) - settings_.older_than.count();
    std::vector<SavedCheckpoint> out;
    // Without a valid one, nothing here is so good that it could be spared.
    if (!newest) return out;
    for (SavedCheckpoint& checkpoint : run_.list().whole) {
      if (checkpoint.gold || checkpoint.folder == newest->folder) continue;
      // Newer than the newest valid: damaged, and worth more attention than cold storage gives.
      if (detail::newer(checkpoint.manifest, newest->manifest)) continue;
      if (checkpoint.manifest.saved_at <= limit) out.push_back(std::move(checkpoint));
    }
    std::reverse(out.begin(), out.end());
    return out;
  }

  /// Moves them; only says which, as long as settings.dry_run stands. Damaged ones stay and are
  /// reported. StoreError if storage fails: what was moved before is moved, the rest is untouched.
  ArchiveReport move(std::chrono::system_clock::time_point now = std::chrono::system_clock::now()) {
    ArchiveReport report;
    for (SavedCheckpoint& checkpoint : plan(now)) {
      try {
        if (!settings_.dry_run) move_one(checkpoint, now);
      } catch (FormatError const& error) {
        try {
          verify(checkpoint);
        } catch (StoreError const&) {
          report.damaged.push_back({checkpoint.folder, error.what()});
          continue;
        }
        throw;  // the damage happened in cold storage
      }
      report.moved.push_back(std::move(checkpoint));
    }
    return report;
  }

  /// Brings a checkpoint back; its copy in cold storage stays. If it is here already, that is
  /// what is returned. StoreError if the index has no such step.
  SavedCheckpoint restore(std::uint64_t step) {
    for (SavedCheckpoint const& checkpoint : run_.list().whole) {
      if (checkpoint.step() == step && run_.holds(checkpoint)) return checkpoint;
    }
    for (ArchivedCheckpoint const& entry : list()) {
      if (entry.step != step) continue;
      detail::ColdObject const object{entry.name, entry.size, entry.hash};
      SavedCheckpoint restored;
      with_object(object, [&](std::filesystem::path const& file) {
        detail::verify_packed(file, object);
        restored = detail::unpack_to(file, run_.checkpoints_folder());
      });
      return restored;
    }
    throw StoreError({.what = "step " + std::to_string(step) + " is not in cold storage",
                      .where = index_path().string(),
                      .why = "the index has no checkpoint of it",
                      .mend = "Look at the index for the steps that it has."});
  }

 private:
  std::filesystem::path index_path() const { return run_.folder() / "archive" / "index.json"; }

  static std::int64_t seconds(std::chrono::system_clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  }

  /// Where packed files are made: in the folder where they will stay, if it is one.
  std::filesystem::path staging() const {
    auto const* folder = std::get_if<ColdFolder>(&storage_);
    return folder != nullptr ? folder->folder : run_.folder() / "archive";
  }

  void move_one(SavedCheckpoint const& checkpoint, std::chrono::system_clock::time_point now) {
    run_.require_lock();
    create_folders(staging());
    create_folders(index_path().parent_path());
    // The same name in every attempt, so that a crash leaves one file and not many.
    auto const packed =
        staging() / (std::string(detail::temporary_prefix) + run_.folder().filename().string() +
                     "-" + detail::step_name(checkpoint.step()));
    remove_tree(packed);
    Removing const guard{packed};
    detail::ColdObject const object = detail::pack(checkpoint, packed, settings_.level);
    put(packed, object);
    check(packed, object);
    ArchiveIndex index(index_path());
    index.put({.name = object.name,
               .step = checkpoint.step(),
               .size = object.size,
               .hash = object.hash,
               .saved_at = checkpoint.manifest.saved_at,
               .moved_at = seconds(now)});
    run_.remove({checkpoint});
  }

  void put(std::filesystem::path const& packed, detail::ColdObject const& object) const {
    if (std::holds_alternative<ColdFolder>(storage_)) {
      rename_path(packed, staging() / object.name);
      sync_folder(staging());
    } else {
      detail::run_command(detail::for_object(std::get<ColdCommand>(storage_).put, packed, object));
    }
  }

  /// Throws unless cold storage has what was put there.
  void check(std::filesystem::path const& packed, detail::ColdObject const& object) const {
    auto const* command = std::get_if<ColdCommand>(&storage_);
    if (command != nullptr && !command->verify.empty()) {
      // The packed file is what it will be compared with, so that has to be right itself.
      detail::verify_packed(packed, object);
      detail::run_command(detail::for_object(command->verify, packed, object));
    } else {
      with_object(object,
                  [&](std::filesystem::path const& file) { detail::verify_packed(file, object); });
    }
  }

  /// Calls `use` with a file that holds what cold storage has.
  template <class Use>
  void with_object(detail::ColdObject const& object, Use&& use) const {
    if (std::holds_alternative<ColdFolder>(storage_)) return use(staging() / object.name);
    auto const& command = std::get<ColdCommand>(storage_);
    if (command.get.empty()) {
      throw SettingsError({.what = "cold storage gives nothing back",
                           .where = "ColdCommand::get",
                           .why = "it is empty",
                           .mend = "Write the command that fetches {name} to {file}."});
    }
    create_folders(staging());
    auto const fetched =
        staging() / (std::string(detail::temporary_prefix) + "fetched-" + object.name);
    remove_tree(fetched);
    Removing const guard{fetched};
    detail::run_command(detail::for_object(command.get, fetched, object));
    use(fetched);
  }

  struct Removing {
    std::filesystem::path path;
    ~Removing() { detail::try_remove_tree(path); }
  };

  RunDirectory& run_;
  ColdStorage storage_;
  ArchiveSettings settings_;
};

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/archive_index.hpp>
#include <frugal/store/cold_storage.hpp>
#include <frugal/store/hash.hpp>
#include <frugal/store/pack.hpp>
#include <frugal/store/run_directory.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
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
  /// Old enough and not moved: they are not whole, or have files that the manifest does not list
  /// and that the archive would therefore lose. A dry run does not look for the first.
  std::vector<Damage> stayed;
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
                           .fix = "Begin with the defaults."});
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

  /// Moves them; only says which, as long as settings.dry_run stands. StoreError if storage fails:
  /// what was moved before is moved, the rest is untouched.
  ArchiveReport move(std::chrono::system_clock::time_point now = std::chrono::system_clock::now()) {
    ArchiveReport report;
    if (!settings_.dry_run) {
      require_storage();
      remove_temporaries();
    }
    for (SavedCheckpoint& checkpoint : plan(now)) {
      if (std::string why = stray(checkpoint); !why.empty()) {
        report.stayed.push_back({checkpoint.folder, std::move(why)});
        continue;
      }
      if (!settings_.dry_run) {
        try {
          copy(checkpoint, now);
        } catch (StoreError const& error) {
          if (is_whole(checkpoint)) throw;  // it is storage that fails
          report.stayed.push_back({checkpoint.folder, error.what()});
          continue;
        }
        Removal removal = run_.remove({checkpoint});
        for (Damage& left : removal.left) report.stayed.push_back(std::move(left));
        if (removal.removed.empty()) continue;  // or it is gold since a moment ago
      }
      report.moved.push_back(std::move(checkpoint));
    }
    return report;
  }

  /// Brings a checkpoint back, of two saves of one step the later; its copy in cold storage stays.
  /// One that is here already and whole is what is returned. StoreError if the index has no such
  /// step, FormatError if what cold storage gives is not what was put there.
  ///
  /// It is as old as it was, so the next move() takes it away again, unless it is marked gold.
  SavedCheckpoint restore(std::uint64_t step) {
    for (SavedCheckpoint const& checkpoint : run_.list().whole) {
      if (checkpoint.step() == step && run_.holds(checkpoint)) return checkpoint;
    }
    run_.require_lock();
    require_storage();
    for (ArchivedCheckpoint const& entry : list()) {
      if (entry.step != step) continue;
      detail::ColdObject const object{entry.name, entry.size, entry.hash};
      SavedCheckpoint restored;
      with_object(object, [&](std::filesystem::path const& file) {
        require_entry(detail::verify_packed(file, object), entry, file);
        run_.require_lock();  // fetching it may have taken hours
        restored = detail::unpack_to(file, run_.checkpoints_folder());
      });
      return restored;
    }
    throw StoreError({.what = "step " + std::to_string(step) + " is not in cold storage",
                      .where = index_path().string(),
                      .why = "the index has no checkpoint of it",
                      .fix = "Look at the index for the steps that it has."});
  }

 private:
  /// More than a file that is fetched has, for what a program writes besides.
  static constexpr std::uint64_t spare_bytes = std::uint64_t{16} << 20;

  /// StoreError for a folder that is missing.
  void require_storage() const {
    auto const* const cold = std::get_if<ColdFolder>(&storage_);
    std::error_code ignored;
    if (cold == nullptr || std::filesystem::is_directory(cold->folder, ignored)) return;
    throw StoreError({.what = "the folder of cold storage is not there",
                      .where = cold->folder.string(),
                      .why = "its disk may not be mounted",
                      .fix = "Mount the disk. If this is a new place, make the folder."});
  }

  /// What is fetched may be whole and still be another checkpoint than the index says.
  static void require_entry(Manifest const& manifest, ArchivedCheckpoint const& entry,
                            std::filesystem::path const& file) {
    if (manifest.step == entry.step && manifest.serial == entry.serial) return;
    throw FormatError({.what = "an archived checkpoint is not the one that the index names",
                       .where = file.string(),
                       .why = "it has step " + std::to_string(manifest.step) + " and serial " +
                              std::to_string(manifest.serial) + ", and the index says " +
                              std::to_string(entry.step) + " and " + std::to_string(entry.serial),
                       .fix = "Look at archive/index.json of the run, and at who changed it."});
  }

  std::filesystem::path index_path() const { return run_.folder() / "archive" / "index.json"; }

  static std::int64_t seconds(std::chrono::system_clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  }

  /// Where packed files are made: in the folder where they will stay, if it is one.
  std::filesystem::path staging() const {
    auto const* folder = std::get_if<ColdFolder>(&storage_);
    return folder != nullptr ? folder->folder : run_.folder() / "archive";
  }

  /// Names of files that are being made, for this run and no other that shares the folder; the same
  /// in every attempt, so that a crash leaves one and the next move() finds it.
  std::string temporary_prefix() const {
    std::error_code ignored;
    auto const where = std::filesystem::weakly_canonical(run_.folder(), ignored).string();
    return std::string(detail::temporary_prefix) + hex_of(Hash::of(detail::bytes_of(where))) + "-";
  }

  void remove_temporaries() const {
    run_.require_lock();
    for (auto const& path : entries_of(staging())) {
      if (path.filename().string().starts_with(temporary_prefix())) remove_tree(path);
    }
  }

  /// What moving the folder would lose; empty if nothing.
  static std::string stray(SavedCheckpoint const& checkpoint) {
    for (auto const& path : entries_of(checkpoint.folder)) {
      std::string const name = path.filename().string();
      auto const& files = checkpoint.manifest.files;
      if (name != Manifest::file_name &&
          std::none_of(files.begin(), files.end(),
                       [&](FileEntry const& entry) { return entry.name == name; })) {
        return "\"" + name + "\" lies in it, and the manifest does not list it";
      }
    }
    return "";
  }

  static bool is_whole(SavedCheckpoint const& checkpoint) {
    try {
      verify(checkpoint);
    } catch (StoreError const& error) {
      if (!detail::is_damage(error)) throw;
      return false;
    }
    return true;
  }

  /// Brings it to cold storage, looks at it there, and enters it into the index.
  void copy(SavedCheckpoint const& checkpoint, std::chrono::system_clock::time_point now) {
    run_.require_lock();
    if (std::holds_alternative<ColdCommand>(storage_)) create_folders(staging());
    create_folders(index_path().parent_path());
    auto const packed = staging() / (temporary_prefix() + detail::step_name(checkpoint.step()));
    Removing const guard{packed};
    detail::ColdObject const object = detail::pack(checkpoint, packed, settings_.level);
    put(packed, object);
    check(packed, object);
    ArchiveIndex index(index_path());
    index.put({.name = object.name,
               .step = checkpoint.step(),
               .serial = checkpoint.manifest.serial,
               .size = object.size,
               .hash = object.hash,
               .saved_at = checkpoint.manifest.saved_at,
               .moved_at = seconds(now)});
  }

  void put(std::filesystem::path const& packed, detail::ColdObject const& object) const {
    if (std::holds_alternative<ColdFolder>(storage_)) {
      rename_path(packed, staging() / object.name);
      sync_folder(staging());
    } else {
      auto const& command = std::get<ColdCommand>(storage_);
      detail::run_command(detail::for_object(command.put, packed, object),
                          {.patience = command.patience});
    }
  }

  /// Throws unless cold storage has what was put there.
  void check(std::filesystem::path const& packed, detail::ColdObject const& object) const {
    auto const* command = std::get_if<ColdCommand>(&storage_);
    if (command != nullptr && !command->verify.empty()) {
      // The packed file is what it will be compared with, so that has to be right itself.
      detail::verify_packed(packed, object);
      detail::run_command(detail::for_object(command->verify, packed, object),
                          {.patience = command->patience});
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
                           .fix = "Write the command that fetches {name} to {file}."});
    }
    create_folders(staging());
    auto const fetched = staging() / (temporary_prefix() + "fetched-" + object.name);
    remove_tree(fetched);  // of a restore that crashed
    Removing const guard{fetched};
    // What is in cold storage may not be what was put there, and must not fill the disk.
    detail::run_command(detail::for_object(command.get, fetched, object),
                        {.patience = command.patience, .largest_file = object.size + spare_bytes});
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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/in_order.hpp>
#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/checkpoint/cold_storage.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/checkpoint/pack.hpp>
#include <frugal/checkpoint/run_directory.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace frugal {

/// A checkpoint in cold storage.
struct ArchivedCheckpoint {
  std::string name;           ///< of the file in cold storage
  std::uint64_t step = 0;     ///< optimizer steps done
  std::uint64_t serial = 0;   ///< counts the saves of the run
  std::uint64_t size = 0;     ///< of that file, in bytes
  std::uint64_t hash = 0;     ///< of that file: XXH3, 64 bits
  std::int64_t saved_at = 0;  ///< of the checkpoint: seconds since 1970, UTC
  std::int64_t moved_at = 0;  ///< of the move: seconds since 1970, UTC
};

/// archive/index.json of a run: the checkpoints in cold storage. Replaced atomically by a rename.
class ArchiveIndex {
 public:
  /// Empty if the file does not exist yet; FormatError if it is not an index.
  explicit ArchiveIndex(std::filesystem::path path) : path_(std::move(path)) {
    std::error_code failure;
    if (!std::filesystem::exists(path_, failure) && !failure) return;
    File file = File::open(path_);
    std::string text(static_cast<std::size_t>(file.size()), '\0');
    text.resize(file.read(std::as_writable_bytes(std::span(text.data(), text.size()))));
    detail::JsonFields const fields(
        {.what = "the index of the archive is damaged",
         .where = path_.string(),
         .why = "",
         .fix = "Move the index away; the archived files themselves are not affected."});
    auto const all = fields.parse(text, "frugal archive");
    if (fields.version(all) > newest_version) {
      throw NewerFormatError({.what = "the index of the archive has a newer format",
                              .where = path_.string(),
                              .why = "this library reads versions up to 1",
                              .fix = "Update frugal."});
    }
    fields.only(all, {"format", "version", "checkpoints"});
    for (detail::Json const& each : fields.array(all, "checkpoints")) {
      entries_.push_back({.name = fields.text(each, "name"),
                          .step = fields.number(each, "step"),
                          .serial = fields.number(each, "serial"),
                          .size = fields.number(each, "size"),
                          .hash = fields.hash(each, "xxh3"),
                          .saved_at = fields.time(each, "saved_at"),
                          .moved_at = fields.time(each, "moved_at")});
      fields.only(each, {"name", "step", "serial", "size", "xxh3", "saved_at", "moved_at"});
      if (!detail::is_file_name(entries_.back().name)) {
        fields.fail(each, "a file has an invalid name");
      }
    }
  }

  /// Newest first.
  std::vector<ArchivedCheckpoint> const& entries() const noexcept { return entries_; }

  /// Adds an entry, or replaces the one with this name. Durable on return.
  void put(ArchivedCheckpoint entry) {
    auto const same = [&](ArchivedCheckpoint const& other) { return other.name == entry.name; };
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), same), entries_.end());
    entries_.push_back(std::move(entry));
    detail::put_in_order(entries_, [](ArchivedCheckpoint const& a, ArchivedCheckpoint const& b) {
      return std::tie(a.step, a.serial, a.name) > std::tie(b.step, b.serial, b.name);
    });
    detail::JsonWriter out;
    out.object(detail::JsonLayout::lines).add("format", "frugal archive");
    out.add("version", newest_version).key("checkpoints").array();
    for (ArchivedCheckpoint const& each : entries_) {
      out.object(detail::JsonLayout::spaced).add("name", each.name).add("step", each.step);
      out.add("serial", each.serial).add("size", each.size).add("xxh3", hex_of(each.hash));
      out.add("saved_at", each.saved_at);
      out.add("moved_at", std::max<std::int64_t>(each.moved_at, 0)).end();
    }
    std::string const text = out.str("\n");
    auto partial = path_;
    partial += ".partial";
    remove_tree(partial);  // left by a crash
    File file = File::create(partial);
    file.write(detail::bytes_of(text));
    file.sync();
    file.close();
    rename_path(partial, path_);
    sync_folder(path_.parent_path());
  }

 private:
  static constexpr std::uint64_t newest_version = 1;

  std::filesystem::path path_;
  std::vector<ArchivedCheckpoint> entries_;
};

}  // namespace frugal

// Needs libarchive: FRUGAL_ARCHIVE=ON, and the target frugal::archive.
namespace frugal {

struct ArchiveSettings {
  std::chrono::seconds older_than = std::chrono::hours(24 * 90);  ///< age by the manifest's
                                                                  ///< saved_at
  bool dry_run = true;                                            ///< only report what would be
                                                                  ///< moved
  int level = 3;                                                  ///< zstd level, 1 to 19
};

struct ArchiveReport {
  std::vector<SavedCheckpoint> moved;  ///< moved, or in a dry run would be moved; oldest first
  /// Old enough but not moved: damaged, or with files that the manifest does not list and the
  /// archive would therefore lose. A dry run does not look for damage.
  std::vector<Damage> stayed;
};

/// Moves old checkpoints of a run to cold storage, and restores them.
///
/// move() packs a checkpoint (tar, zstd), uploads it, reads it back and compares it. Then it adds
/// an entry to the run's archive/index.json, and only then deletes the local copy. After a crash at
/// any moment the checkpoint exists here, there, or in both; the next move() continues. Gold
/// checkpoints never move, and neither does the newest valid one.
class Archive {
 public:
  /// SettingsError for storage that cannot be verified, and for invalid settings.
  Archive(RunDirectory& run, ColdStorage storage, ArchiveSettings settings = {})
      : run_(run), storage_(std::move(storage)), settings_(settings) {
    detail::require_usable(storage_);
    if (settings_.level < 1 || settings_.level > 19 || settings_.older_than.count() < 0) {
      throw SettingsError({.what = "the settings of the archive are out of range",
                           .where = "ArchiveSettings",
                           .why = "level is not 1 to 19, or older_than is negative",
                           .fix = "Start from the defaults."});
    }
  }

  std::vector<ArchivedCheckpoint> list() const { return ArchiveIndex(index_path()).entries(); }

  /// The checkpoints that move() would move at time `now`, oldest first.
  std::vector<SavedCheckpoint> plan(std::chrono::system_clock::time_point now) {
    auto const newest = run_.newest_valid().checkpoint;
    std::int64_t const limit = seconds(now) - settings_.older_than.count();
    std::vector<SavedCheckpoint> out;
    // Without a valid checkpoint, nothing may leave this disk.
    if (!newest) return out;
    for (SavedCheckpoint& checkpoint : run_.list().whole) {
      if (checkpoint.gold || checkpoint.folder == newest->folder) continue;
      // Newer than the newest valid checkpoint: damaged. Leave it here for inspection.
      if (detail::newer(checkpoint.manifest, newest->manifest)) continue;
      if (checkpoint.manifest.saved_at <= limit) out.push_back(std::move(checkpoint));
    }
    std::reverse(out.begin(), out.end());
    return out;
  }

  /// Moves the checkpoints; with settings.dry_run only reports them. StoreError if storage fails:
  /// checkpoints moved before the failure stay moved, the rest are untouched.
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
          if (is_whole(checkpoint)) throw;  // the checkpoint is whole, so storage failed
          report.stayed.push_back({checkpoint.folder, error.what()});
          continue;
        }
        Removal removal = run_.remove({checkpoint});
        for (Damage& left : removal.left) report.stayed.push_back(std::move(left));
        if (removal.removed.empty()) continue;  // or it was marked gold a moment ago
      }
      report.moved.push_back(std::move(checkpoint));
    }
    return report;
  }

  /// Restores a checkpoint; of two saves of one step, the later. The copy in cold storage stays. If
  /// the checkpoint is here already and whole, returns that one. StoreError if the index has no
  /// such step, FormatError if cold storage returns other bytes than were stored.
  ///
  /// The restored checkpoint keeps its age, so the next move() moves it again unless it is marked
  /// gold.
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
        run_.require_lock();  // fetching may have taken hours
        restored = detail::unpack_to(file, run_.checkpoints_folder());
      });
      return restored;
    }
    throw StoreError({.what = "step " + std::to_string(step) + " is not in cold storage",
                      .where = index_path().string(),
                      .why = "the index has no checkpoint of it",
                      .fix = "Read the index for the steps that it has."});
  }

 private:
  /// Slack in the size limit of a fetched file, for anything else that the program writes.
  static constexpr std::uint64_t spare_bytes = std::uint64_t{16} << 20;

  /// StoreError if the folder is missing.
  void require_storage() const {
    auto const* const cold = std::get_if<ColdFolder>(&storage_);
    std::error_code ignored;
    if (cold == nullptr || std::filesystem::is_directory(cold->folder, ignored)) return;
    throw StoreError({.what = "the folder of cold storage does not exist",
                      .where = cold->folder.string(),
                      .why = "its disk may not be mounted",
                      .fix = "Mount the disk. If the place is new, create the folder."});
  }

  /// Throws if a fetched file, which may be whole, is another checkpoint than the index says.
  static void require_entry(Manifest const& manifest, ArchivedCheckpoint const& entry,
                            std::filesystem::path const& file) {
    if (manifest.step == entry.step && manifest.serial == entry.serial) return;
    throw FormatError({.what = "an archived checkpoint is not the one that the index names",
                       .where = file.string(),
                       .why = "it has step " + std::to_string(manifest.step) + " and serial " +
                              std::to_string(manifest.serial) + ", and the index says " +
                              std::to_string(entry.step) + " and " + std::to_string(entry.serial),
                       .fix = "Check archive/index.json of the run, and what changed it."});
  }

  std::filesystem::path index_path() const { return run_.folder() / "archive" / "index.json"; }

  static std::int64_t seconds(std::chrono::system_clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  }

  /// Where packed files are made: directly in the destination if it is a folder.
  std::filesystem::path staging() const {
    auto const* folder = std::get_if<ColdFolder>(&storage_);
    return folder != nullptr ? folder->folder : run_.folder() / "archive";
  }

  /// Prefix of the names of partial files. It is unique to this run, because runs may share the
  /// folder, and the same in every attempt, so that the next move() finds what a crash left.
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

  /// The files that moving the folder would lose; empty if none.
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

  /// Uploads the checkpoint, verifies it there, and adds it to the index.
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

  /// Throws unless cold storage holds what was stored.
  void check(std::filesystem::path const& packed, detail::ColdObject const& object) const {
    auto const* command = std::get_if<ColdCommand>(&storage_);
    if (command != nullptr && !command->verify.empty()) {
      // The packed file is the reference for the comparison, so verify it first.
      detail::verify_packed(packed, object);
      detail::run_command(detail::for_object(command->verify, packed, object),
                          {.patience = command->patience});
    } else {
      with_object(object,
                  [&](std::filesystem::path const& file) { detail::verify_packed(file, object); });
    }
  }

  /// Calls `use` with a local file that holds what cold storage holds.
  template <class Use>
  void with_object(detail::ColdObject const& object, Use&& use) const {
    if (std::holds_alternative<ColdFolder>(storage_)) return use(staging() / object.name);
    auto const& command = std::get<ColdCommand>(storage_);
    if (command.get.empty()) {
      throw SettingsError({.what = "cold storage has no command that fetches",
                           .where = "ColdCommand::get",
                           .why = "it is empty",
                           .fix = "Write the command that fetches {name} to {file}."});
    }
    create_folders(staging());
    auto const fetched = staging() / (temporary_prefix() + "fetched-" + object.name);
    remove_tree(fetched);  // left by a crashed restore
    Removing const guard{fetched};
    // Cold storage may return something else, which must not fill the disk.
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

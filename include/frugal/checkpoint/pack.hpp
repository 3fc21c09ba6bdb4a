// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/checkpoint/cold_storage.hpp>
#include <frugal/checkpoint/commit.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/error.hpp>

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

// Needs libarchive: FRUGAL_ARCHIVE=ON, and the target frugal::archive.
namespace frugal::detail {

struct FreeArchive {
  void operator()(archive* handle) const noexcept { archive_free(handle); }
};
struct FreeEntry {
  void operator()(archive_entry* entry) const noexcept { archive_entry_free(entry); }
};

/// Writes a zstd-compressed tar file (`tar --zstd -tf` reads it) to a sink. The same files give the
/// same bytes: owner, permissions and time are set, not copied.
template <class Sink>
class TarWriter {
 public:
  /// `level` of zstd, 1 to 19. Higher levels hardly shrink weights.
  TarWriter(Sink& sink, std::filesystem::path where, int level)
      : sink_(sink), where_(std::move(where)), handle_(archive_write_new()) {
    if (!handle_) throw std::bad_alloc();
    require(archive_write_set_format_pax_restricted(handle_.get()));
    // Names are stored as they are: translation needs a locale, and programs start in one that
    // knows ASCII alone.
    require(archive_write_set_format_option(handle_.get(), "pax", "hdrcharset", "BINARY"));
    require(archive_write_add_filter_zstd(handle_.get()));
    require(archive_write_set_filter_option(handle_.get(), "zstd", "compression-level",
                                            std::to_string(level).c_str()));
    require(archive_write_set_bytes_in_last_block(handle_.get(), 1));
    require(archive_write_open(handle_.get(), this, nullptr, &TarWriter::take, nullptr));
  }
  TarWriter(TarWriter const&) = delete;
  TarWriter& operator=(TarWriter const&) = delete;
  ~TarWriter() {
    if (closed_) return;
    // Abandoned. Fail first, or closing would write the rest of the entry as zeros; then close, or
    // libarchive 3.6 would leak.
    given_up_ = true;
    archive_write_fail(handle_.get());
    archive_write_close(handle_.get());
  }

  /// Begins a file; exactly `size` bytes must follow.
  void begin(std::string const& name, std::uint64_t size, std::int64_t time) {
    std::unique_ptr<archive_entry, FreeEntry> const entry(archive_entry_new());
    if (!entry) throw std::bad_alloc();
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(size));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_mtime(entry.get(), time, 0);
    require(archive_write_header(handle_.get(), entry.get()));
  }

  void write(std::span<std::byte const> bytes) {
    while (!bytes.empty()) {
      la_ssize_t const wrote = archive_write_data(handle_.get(), bytes.data(), bytes.size());
      // 0: more bytes than begin() announced.
      if (wrote <= 0) require(wrote == 0 ? ARCHIVE_FATAL : static_cast<int>(wrote));
      bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
  }

  void finish() {
    closed_ = true;
    require(archive_write_close(handle_.get()));
  }

 private:
  // An exception must not pass through a C library: it is kept until the call returns.
  static la_ssize_t take(archive*, void* self, void const* data, std::size_t size) {
    auto& writer = *static_cast<TarWriter*>(self);
    try {
      if (!writer.given_up_) writer.sink_.write({static_cast<std::byte const*>(data), size});
    } catch (...) {
      writer.given_up_ = true;
      writer.failure_ = std::current_exception();
    }
    return static_cast<la_ssize_t>(size);
  }

  // Treat warnings as errors: a warning means that a file is not stored as it is.
  void require(int result) {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    if (result == ARCHIVE_OK) return;
    char const* const why = archive_error_string(handle_.get());
    throw StoreError(
        {.what = "an archive cannot be written",
         .where = where_.string(),
         .why = why != nullptr ? why : "libarchive gives no reason",
         .fix = "See whether this libarchive was built with zstd (bsdtar --version)."});
  }

  Sink& sink_;
  std::filesystem::path where_;
  std::exception_ptr failure_;  ///< of the sink, until rethrown
  bool given_up_ = false;       ///< the sink receives nothing more
  bool closed_ = false;
  std::unique_ptr<archive, FreeArchive> handle_;
};

/// Reads such a file, one entry after the other. FormatError for damage, and for entries that are
/// not plain files.
class TarReader {
 public:
  struct Entry {
    std::string name;
    std::uint64_t size = 0;  ///< in bytes
  };

  explicit TarReader(std::filesystem::path const& path)
      : file_(File::open(path)), handle_(archive_read_new()) {
    if (!handle_) throw std::bad_alloc();
    require(archive_read_support_filter_zstd(handle_.get()));
    require(archive_read_support_format_tar(handle_.get()));
    require(archive_read_open_fd(handle_.get(), file_.descriptor(), std::size_t{1} << 18));
  }

  /// The next entry; nothing at the end.
  std::optional<Entry> next() {
    archive_entry* entry = nullptr;
    int const result = archive_read_next_header(handle_.get(), &entry);
    if (result == ARCHIVE_EOF) return std::nullopt;
    require(result);
    char const* const name = archive_entry_pathname(entry);
    if (name == nullptr || archive_entry_filetype(entry) != AE_IFREG ||
        archive_entry_hardlink(entry) != nullptr || archive_entry_size_is_set(entry) == 0 ||
        archive_entry_size(entry) < 0) {
      fail("an entry is not a plain file");
    }
    return Entry{.name = name, .size = static_cast<std::uint64_t>(archive_entry_size(entry))};
  }

  /// Bytes of the current entry; 0 at its end.
  std::size_t read(std::span<std::byte> bytes) {
    la_ssize_t const got = archive_read_data(handle_.get(), bytes.data(), bytes.size());
    if (got < 0) require(static_cast<int>(got));
    return static_cast<std::size_t>(got);
  }

  [[noreturn]] void fail(std::string why) const {
    throw FormatError({.what = "an archive of a checkpoint is damaged",
                       .where = file_.path().string(),
                       .why = std::move(why),
                       .fix = "Fetch it again, or use another checkpoint."});
  }

 private:
  void require(int result) const {
    if (result == ARCHIVE_OK) return;
    char const* const why = archive_error_string(handle_.get());
    fail(why != nullptr ? why : "libarchive gives no reason");
  }

  File file_;
  std::unique_ptr<archive, FreeArchive> handle_;
};

}  // namespace frugal::detail

// Needs libarchive: FRUGAL_ARCHIVE=ON, and the target frugal::archive.
namespace frugal::detail {

inline std::string read_text(std::filesystem::path const& path) {
  File file = File::open(path);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  text.resize(file.read(std::as_writable_bytes(std::span(text.data(), text.size()))));
  return text;
}

/// Reads from `next(buffer)` until it returns 0.
template <class Next, class Take>
void pump(Next&& next, Take&& take) {
  auto const buffer = std::make_unique<std::byte[]>(read_size);
  while (std::size_t const got = next(std::span(buffer.get(), read_size))) {
    take(std::span<std::byte const>(buffer.get(), got));
  }
}

inline std::uint64_t hash_of(std::filesystem::path const& path) {
  File file = File::open(path);
  Hash hash;
  pump([&](auto buffer) { return file.read(buffer); }, [&](auto bytes) { hash.update(bytes); });
  return hash.digest();
}

/// Packs a checkpoint into one new file, manifest first, and fsyncs it. The object's name contains
/// the manifest's hash, so that two checkpoints never share one. FormatError if a file of the
/// checkpoint differs from the manifest, as in verify().
inline ColdObject pack(SavedCheckpoint const& checkpoint, std::filesystem::path const& to,
                       int level) {
  File file = File::create(to);
  Hashed<File> sink(file);
  std::string const manifest = read_text(checkpoint.folder / Manifest::file_name);
  TarWriter writer(sink, to, level);
  std::int64_t const time = checkpoint.manifest.saved_at;
  writer.begin(std::string(Manifest::file_name), manifest.size(), time);
  writer.write(bytes_of(manifest));
  for (FileEntry const& entry : checkpoint.manifest.files) {
    File in = open_file_of(checkpoint, entry);
    writer.begin(entry.name, entry.size, time);
    Hashed<TarWriter<Hashed<File>>> hashed(writer);
    pump([&](auto buffer) { return in.read(buffer); }, [&](auto bytes) { hashed.write(bytes); });
    if (hashed.digest() != entry.hash || hashed.size() != entry.size) {
      throw damaged(in.path(), "its hash is not that of the manifest");
    }
  }
  writer.finish();
  file.sync();
  // Drops the page cache, so that reading back comes from the disk. The kernel may ignore this.
  (void)::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
  file.close();
  return {.name = step_name(checkpoint.step()) + "-" + hex_of(Hash::of(bytes_of(manifest))) +
                  ".tar.zst",
          .size = sink.size(),
          .hash = sink.digest()};
}

/// Reads a packed checkpoint to its end. Passes every file, the manifest included, to
/// `take(name)(bytes)` and compares it with the manifest. FormatError for any difference.
///
/// Trusts nothing before it has read the manifest, and takes nothing that the manifest does not
/// list, so an archive can neither write elsewhere nor grow beyond what its manifest says.
template <class Take>
Manifest unpack(std::filesystem::path const& from, Take&& take) {
  TarReader reader(from);
  auto const first = reader.next();
  if (!first || first->name != Manifest::file_name || first->size > Manifest::largest) {
    reader.fail("it does not begin with a manifest");
  }
  std::string text(static_cast<std::size_t>(first->size), '\0');
  text.resize(reader.read(std::as_writable_bytes(std::span(text.data(), text.size()))));
  Manifest manifest = parse_manifest(text, from);
  take(std::string(Manifest::file_name))(bytes_of(text));
  std::vector<FileEntry> missing = manifest.files;
  while (auto const entry = reader.next()) {
    auto const expected = std::find_if(missing.begin(), missing.end(), [&](FileEntry const& each) {
      return each.name == entry->name;
    });
    if (expected == missing.end() || expected->size != entry->size) {
      reader.fail("\"" + entry->name + "\" is not what the manifest lists");
    }
    auto&& sink = take(entry->name);
    Hash hash;
    pump([&](auto buffer) { return reader.read(buffer); },
         [&](auto bytes) {
           hash.update(bytes);
           sink(bytes);
         });
    if (hash.digest() != expected->hash) reader.fail("the hash of \"" + entry->name + "\" differs");
    missing.erase(expected);
  }
  if (!missing.empty()) reader.fail("\"" + missing.front().name + "\" is missing");
  return manifest;
}

/// Verifies a packed checkpoint and returns its manifest.
inline Manifest verify_packed(std::filesystem::path const& file, ColdObject const& object) {
  if (File::open(file).size() != object.size || hash_of(file) != object.hash) {
    throw FormatError({.what = "an archived checkpoint is damaged",
                       .where = file.string(),
                       .why = "it is not what was put into cold storage",
                       .fix = "Fetch it again, or look for a copy of it."});
  }
  return unpack(file, [](std::string const&) { return [](std::span<std::byte const>) {}; });
}

/// Unpacks a checkpoint among the others and publishes it atomically, like a commit.
inline SavedCheckpoint unpack_to(std::filesystem::path const& file,
                                 std::filesystem::path const& checkpoints) {
  auto const temporary = checkpoints / temporary_name("restore");
  create_folder(temporary);
  try {
    std::vector<std::unique_ptr<File>> files;
    auto const finish = [&] {
      for (auto& each : files) {
        each->sync();
        each->close();
      }
      files.clear();
    };
    Manifest manifest = unpack(file, [&](std::string const& name) {
      finish();
      files.push_back(std::make_unique<File>(File::create(temporary / name)));
      return [out = files.back().get()](std::span<std::byte const> bytes) { out->write(bytes); };
    });
    finish();
    sync_folder(temporary);
    auto const usual = checkpoints / step_name(manifest.step);
    auto to = usual;
    for (int number = 2; !rename_to_free(temporary, to); ++number) {
      to = usual;
      to += "." + std::to_string(number);
    }
    sync_folder(checkpoints);
    return {.folder = to, .manifest = std::move(manifest), .gold = false};
  } catch (...) {
    try_remove_tree(temporary);
    throw;
  }
}

}  // namespace frugal::detail

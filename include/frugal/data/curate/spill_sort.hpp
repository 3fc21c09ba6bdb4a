// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/folder.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/data/curate/in_chunks.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace frugal::detail {

/// A record that can be sorted externally: totally ordered and without padding, so that its bytes
/// are its value.
template <class R>
concept RunRecord = std::is_trivially_copyable_v<R> && std::three_way_comparable<R> &&
                    std::has_unique_object_representations_v<R>;

// A run file: the 16 bytes below, records in ascending order, their number and their XXH3. It
// belongs to the process that wrote it, hence this machine's byte order.
struct RunHeader {
  std::array<char, 8> magic = {'f', 'r', 'u', 'g', 'a', 'l', 'r', 'u'};
  std::uint32_t version = 1;
  std::uint32_t record = 0;  ///< bytes

  friend bool operator==(RunHeader const&, RunHeader const&) = default;
};
struct RunTrailer {
  std::uint64_t records = 0;
  std::uint64_t hash = 0;
};
inline constexpr std::uint64_t run_overhead = sizeof(RunHeader) + sizeof(RunTrailer);

/// Writes a run piece by piece; the records come in ascending order.
template <RunRecord Record>
class RunWriter {
 public:
  explicit RunWriter(std::filesystem::path path) : file_(File::create(std::move(path))) {
    RunHeader const header{.record = sizeof(Record)};
    file_.write(std::as_bytes(std::span(&header, 1)));
  }

  void write(std::span<Record const> records) {
    auto const bytes = std::as_bytes(records);
    hash_.update(bytes);
    file_.write(bytes);
    count_ += records.size();
  }

  void close() {
    RunTrailer const trailer{.records = count_, .hash = hash_.digest()};
    file_.write(std::as_bytes(std::span(&trailer, 1)));
    file_.close();
  }

 private:
  File file_;
  Hash hash_;
  std::uint64_t count_ = 0;
};

/// Reads a run, a block at a time. `Input` has `read(std::span<std::byte>)`, as File has.
///
/// Errors  FormatError with name and offset for a file that is cut off, too long, damaged, of
///         another record, or not in order.
template <RunRecord Record, class Input>
class RunReader {
 public:
  /// `size` is that of the input in bytes; `records` is how many a block has.
  RunReader(Input input, std::uint64_t size, std::string name, std::size_t records)
      : input_(std::move(input)), name_(std::move(name)) {
    if (size < run_overhead || (size - run_overhead) % sizeof(Record) != 0) {
      fail(size, "the file is cut off",
           std::to_string(size) + " bytes are no whole number of records");
    }
    left_ = (size - run_overhead) / sizeof(Record);
    block_.resize(std::min<std::uint64_t>(std::max<std::size_t>(1, records), left_));
    RunHeader header;
    read(std::as_writable_bytes(std::span(&header, 1)));
    if (header != RunHeader{.record = sizeof(Record)}) {
      fail(0, "this is no run of such records", "the first 16 bytes are not those of one");
    }
    refill();
  }

  /// The next record; nothing at the end.
  Record const* front() const { return at_ == filled_ ? nullptr : &block_[at_]; }

  void pop() {
    if (++at_ == filled_) refill();
  }

 private:
  void refill() {
    bool const begun = filled_ != 0;
    Record const last = begun ? block_[at_ - 1] : Record{};
    filled_ = static_cast<std::size_t>(std::min<std::uint64_t>(block_.size(), left_));
    at_ = 0;
    if (filled_ == 0) return finish();
    std::uint64_t const begin = offset_;
    auto const records = std::span(block_).first(filled_);
    read(std::as_writable_bytes(records));
    hash_.update(std::as_bytes(records));
    left_ -= filled_;
    count_ += filled_;
    if (!std::ranges::is_sorted(records) || (begun && records.front() < last)) {
      fail(begin, "the file is damaged", "its records are not in ascending order");
    }
  }

  void finish() {
    if (std::exchange(finished_, true)) return;
    RunTrailer trailer;
    std::uint64_t const begin = offset_;
    read(std::as_writable_bytes(std::span(&trailer, 1)));
    if (trailer.records != count_ || trailer.hash != hash_.digest()) {
      fail(begin, "the file is damaged", "its records do not have the hash that it ends with");
    }
  }

  void read(std::span<std::byte> bytes) {
    std::size_t const got = input_.read(bytes);
    offset_ += got;
    if (got < bytes.size()) fail(offset_, "the file is cut off", "it has become shorter");
  }

  [[noreturn]] void fail(std::uint64_t offset, std::string what, std::string why) const {
    throw FormatError(
        {.what = std::move(what),
         .where = name_ + ", byte " + std::to_string(offset),
         .why = std::move(why),
         .fix = "Start again, with `spill` on a sound disk that nobody else writes to."});
  }

  Input input_;
  std::string name_;
  std::uint64_t left_ = 0;    // records after the block
  std::uint64_t count_ = 0;   // records read
  std::uint64_t offset_ = 0;  // bytes read
  Hash hash_;
  std::vector<Record> block_;
  std::size_t filled_ = 0;
  std::size_t at_ = 0;
  bool finished_ = false;
};

/// A folder for run files, created when the first is needed and removed with this object.
class SpillFolder {
 public:
  explicit SpillFolder(std::filesystem::path base) : base_(std::move(base)) {}
  SpillFolder(SpillFolder const&) = delete;
  SpillFolder& operator=(SpillFolder const&) = delete;
  ~SpillFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  /// A free name; safe to call from several threads.
  std::filesystem::path next() {
    std::lock_guard const lock(mutex_);
    if (path_.empty()) {
      create_folders(base_);
      std::string name = (base_ / "frugal-curate-XXXXXX").string();
      if (::mkdtemp(name.data()) == nullptr) throw io_error("mkdtemp", base_, errno);
      path_ = name;
    }
    return path_ / ("run-" + std::to_string(runs_++));
  }

  /// Files created so far.
  std::uint64_t runs() const { return runs_; }

 private:
  std::filesystem::path base_;
  std::filesystem::path path_;
  std::mutex mutex_;
  std::uint64_t runs_ = 0;
};

/// Sorts records that need more than `memory` bytes, through run files. Each thread adds to a part
/// of its own. The result does not depend on threads or memory: records are totally ordered.
template <RunRecord Record>
class SpillSort {
 public:
  SpillSort(SpillFolder& folder, std::uint64_t memory, unsigned parts)
      : folder_(folder), memory_(memory), parts_(parts) {
    most_ = std::max<std::uint64_t>(16, memory / sizeof(Record) / parts);
  }

  void add(unsigned part, Record const& record) {
    Part& to = parts_[part];
    if (to.records.size() == most_) spill(to);
    if (to.records.capacity() == 0) reserve(to.records);
    to.records.push_back(record);
  }

  /// Calls `visit(record)` in ascending order, equal records as often as they were added. Once.
  template <class Visit>
  void visit(Visit&& visit) {
    auto const spilled = [](Part const& part) { return !part.files.empty(); };
    if (std::none_of(parts_.begin(), parts_.end(), spilled)) return visit_memory(visit);
    std::vector<std::filesystem::path> files;
    for (Part& part : parts_) {
      if (!part.records.empty()) spill(part);
      part.records = {};
      files.insert(files.end(), part.files.begin(), part.files.end());
    }
    visit_files(std::move(files), visit);
  }

 private:
  using Reader = RunReader<Record, File>;

  struct Part {
    std::vector<Record> records;
    std::vector<std::filesystem::path> files;
  };

  /// Once: growing would copy, and take half as much again. Untouched pages cost nothing, but the
  /// kernel refuses more than the machine has: a limit may be far above what is needed.
  void reserve(std::vector<Record>& records) const {
    try {
      records.reserve(static_cast<std::size_t>(most_));
    } catch (std::bad_alloc const&) {
    } catch (std::length_error const&) {
    }
  }

  void spill(Part& part) {
    std::sort(part.records.begin(), part.records.end());
    part.files.push_back(folder_.next());
    RunWriter<Record> writer(part.files.back());
    writer.write(part.records);
    writer.close();
    part.records.clear();
  }

  template <class Visit>
  void visit_memory(Visit& visit) {
    in_chunks(parts_.size(), 1, static_cast<unsigned>(parts_.size()),
              [&](unsigned, auto begin, auto) {
                auto& records = parts_[static_cast<std::size_t>(begin)].records;
                std::sort(records.begin(), records.end());
              });
    std::vector<std::span<Record const>> runs;
    for (Part& part : parts_) {
      if (!part.records.empty()) runs.emplace_back(part.records);
    }
    merge(
        runs, [](std::span<Record const> const& run) { return run.empty() ? nullptr : run.data(); },
        [](std::span<Record const>& run) { run = run.subspan(1); }, visit);
    for (Part& part : parts_) part.records = {};
  }

  /// Blocks of less than a page read slowly, so many files are first merged into fewer.
  template <class Visit>
  void visit_files(std::vector<std::filesystem::path> files, Visit& visit) {
    constexpr std::uint64_t least_block = 1U << 12;
    auto const at_once = std::clamp<std::uint64_t>(memory_ / least_block, 3, 512) - 1;
    while (files.size() > at_once) {
      std::vector<std::filesystem::path> const some(
          files.begin(), files.begin() + static_cast<std::ptrdiff_t>(at_once));
      files.erase(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(at_once));
      files.push_back(folder_.next());
      RunWriter<Record> writer(files.back());
      std::vector<Record> block;
      block.reserve(records_of_block(at_once + 1));
      merge_files(some, [&](Record const& record) {
        block.push_back(record);
        if (block.size() == block.capacity()) {
          writer.write(block);
          block.clear();
        }
      });
      writer.write(block);
      writer.close();
    }
    merge_files(files, visit);
  }

  std::size_t records_of_block(std::uint64_t blocks) const {
    return static_cast<std::size_t>(std::max<std::uint64_t>(1, memory_ / blocks / sizeof(Record)));
  }

  template <class Visit>
  void merge_files(std::vector<std::filesystem::path> const& files, Visit&& visit) {
    std::vector<std::unique_ptr<Reader>> runs;
    for (std::filesystem::path const& path : files) {
      File file = File::open(path);
      std::uint64_t const size = file.size();
      runs.push_back(std::make_unique<Reader>(std::move(file), size, path.string(),
                                              records_of_block(files.size() + 1)));
    }
    merge(
        runs, [](std::unique_ptr<Reader> const& run) { return run->front(); },
        [](std::unique_ptr<Reader>& run) { run->pop(); }, visit);
    runs.clear();
    for (std::filesystem::path const& path : files) std::filesystem::remove(path);
  }

  /// A heap of runs by their first records.
  template <class Run, class Front, class Pop, class Visit>
  static void merge(std::vector<Run>& runs, Front const& front, Pop const& pop, Visit& visit) {
    auto const later = [&](std::size_t a, std::size_t b) {
      return *front(runs[b]) < *front(runs[a]);
    };
    std::vector<std::size_t> heap;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (front(runs[i]) != nullptr) heap.push_back(i);
    }
    std::make_heap(heap.begin(), heap.end(), later);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), later);
      Run& run = runs[heap.back()];
      // As long as no other run has a smaller record: one run alone needs no heap.
      do {
        visit(*front(run));
        pop(run);
      } while (front(run) != nullptr &&
               (heap.size() == 1 || !(*front(runs[heap.front()]) < *front(run))));
      if (front(run) == nullptr) {
        heap.pop_back();
      } else {
        std::push_heap(heap.begin(), heap.end(), later);
      }
    }
  }

  SpillFolder& folder_;
  std::uint64_t memory_;
  std::uint64_t most_;  // records of a part in memory
  std::vector<Part> parts_;
};

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/file.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
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

}  // namespace frugal::detail

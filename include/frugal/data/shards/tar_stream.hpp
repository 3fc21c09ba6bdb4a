// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/shards/open_files.hpp>
#include <frugal/data/shards/packed_sample.hpp>
#include <frugal/data/shards/tar_members.hpp>
#include <frugal/data/shards/tar_names.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

// Needs libarchive: FRUGAL_ARCHIVE=ON, and the target frugal::archive.
namespace frugal {

/// Reads the samples of one tar file in their order, compressed or not (gzip, zstd, bzip2, xz, and
/// what else this libarchive can): to pack them. Training reads a TarSet.
///
/// Errors  DataError naming file and member, for what TarSet refuses. After one of a member, next()
///         continues after its sample; after one of the file it gives nothing more. IoError for a
///         file that cannot be read now, ChangedError for one that changes under it.
class TarStream {
 public:
  /// A member above `most` bytes is refused: it is read into memory.
  explicit TarStream(std::filesystem::path path, std::uint64_t most = std::uint64_t{1} << 32)
      : path_(std::move(path)),
        most_(most),
        members_(detail::PooledFile(path_), detail::TarMembers::Filters::all) {}

 private:
  /// What the call gives; an error of it ends the file.
  template <class Call>
  auto or_end(Call&& call) {
    try {
      return call();
    } catch (Error const&) {
      end_ = true;
      throw;
    }
  }

 public:
  /// The next sample; nothing at the end.
  std::optional<PackedSample> next() {
    if (!unsafe_.empty()) tell_of_unsafe();
    PackedSample out;
    bool begun = false;
    std::string lost, why;
    while (ahead(begun)) {
      std::string const& name = members_.current().name;
      auto const parts = detail::split_member_name(name);
      if (begun && parts->key != out.key) break;
      begun = true;
      out.key = parts->key;
      ahead_ = false;
      if (!lost.empty()) continue;
      why = fault_of(out, parts->extension);
      if (!why.empty()) {
        lost = name;
        continue;
      }
      out.fields.push_back({parts->extension, or_end([&] { return members_.content(most_); })});
    }
    if (!begun && !unsafe_.empty()) tell_of_unsafe();
    if (!begun) return std::nullopt;
    if (!lost.empty()) fail(lost, std::move(why));
    return out;
  }

 private:
  struct Unsafe {
    std::string member, why;
  };
  /// The most members with unsafe names that are remembered while a sample is read; more end the
  /// sample.
  static constexpr std::size_t most_unsafe = 1000;

  /// Is there a member of a sample that next() has not taken?
  bool ahead(bool begun) {
    while (!ahead_ && !end_) {
      // The sample that is being read is whole, perhaps with members after it: it is given first.
      if (!unsafe_.empty() && (!begun || unsafe_.size() == most_unsafe)) break;
      end_ = !or_end([&] { return members_.next(); });
      if (end_) break;
      detail::TarMembers::Member const& member = members_.current();
      if (!member.plain || detail::is_meta_name(member.name)) continue;
      if (std::string why = detail::unsafe_name(member.name); !why.empty()) {
        unsafe_.push_back({detail::shown_name(member.name), std::move(why)});
        continue;
      }
      ahead_ = detail::split_member_name(member.name).has_value();
    }
    return ahead_;
  }

  [[noreturn]] void tell_of_unsafe() {
    Unsafe const first = std::move(unsafe_.front());
    unsafe_.pop_front();
    fail(first.member, first.why);
  }

  std::string fault_of(PackedSample const& sample, std::string const& extension) const {
    detail::TarMembers::Member const& member = members_.current();
    if (member.sparse) return "it is a sparse file, stored in pieces";
    if (member.size > most_) {
      return "it has " + std::to_string(member.size) + " bytes, and at most " +
             std::to_string(most_) + " are read";
    }
    bool const twice =
        std::any_of(sample.fields.begin(), sample.fields.end(),
                    [&](PackedSample::Field const& field) { return field.extension == extension; });
    return twice ? "the sample has a member of that name already" : "";
  }

  [[noreturn]] void fail(std::string const& member, std::string why) const {
    throw DataError({.what = "a tar file has a member that cannot be read",
                     .where = path_.string() + ", member " + detail::shown_name(member),
                     .why = std::move(why),
                     .fix = "Fetch the file again or pack it again; OnDamage::Skip leaves that "
                            "sample out."});
  }

  std::filesystem::path path_;
  std::uint64_t most_;
  detail::TarMembers members_;
  std::deque<Unsafe> unsafe_;  // members with unsafe names, each for a call of its own
  bool ahead_ = false;         // current() is a member that no sample has yet
  bool end_ = false;
};

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/data/shards/tar_index.hpp>
#include <frugal/data/shards/tar_names.hpp>
#include <frugal/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Groups the members of a tar file into samples: neighbours with one key are one sample.
///
/// add() gives a DataError where a member breaks the rules: a name that is unsafe, a place outside
/// of the file, an extension that the sample has already. The builder can be used after it: the
/// sample of that member, which would not be whole, is left out, and lost() counts it.
class TarIndexBuilder {
 public:
  /// `name` is what errors call the tar file.
  TarIndexBuilder(std::string name, TarStamp const& stamp)
      : name_(std::move(name)), stamp_(stamp) {}

  /// The next member, which is a plain file.
  void add(std::string_view name, MemberPlace const& place) {
    if (is_meta_name(name)) return;
    if (std::string why = unsafe_name(name); !why.empty()) fail(name, place, std::move(why));
    auto const parts = split_member_name(name);
    if (!parts) return;
    if (!open_ || parts->key != key_) begin(parts->key);
    if (lost_key_) return;
    if (std::string why = outside_of_file(place, stamp_.size); !why.empty()) {
      lose();
      fail(name, place, std::move(why));
    }
    std::uint64_t const extension = extension_of(parts->extension);
    if (seen_[extension] == serial_) {
      lose();
      fail(name, place, "the sample has a member of that name already");
    }
    // Tar readers go forwards.
    if (members_.size() > first_.back() && members_.back().place.end() > place.offset) {
      lose();
      fail(name, place, "the member lies in the one before it");
    }
    seen_[extension] = serial_;
    members_.push_back({place, extension});
  }

  /// Leaves out the sample of a member that cannot be read for a reason of its own, and throws.
  [[noreturn]] void lose_member(std::string_view name, MemberPlace const& place, std::string why) {
    if (auto const parts = split_member_name(name); parts && unsafe_name(name).empty()) {
      if (!open_ || parts->key != key_) begin(parts->key);
      if (!lost_key_) lose();
    }
    fail(name, place, std::move(why));
  }

  /// The file ends without a mark of its end: the last sample may have lost members. It is left out
  /// if the one before it has other extensions.
  void cut_off() {
    if (!open_ || lost_key_ || first_.size() < 2) return;
    auto const extensions = [this](std::size_t begin, std::size_t end) {
      std::vector<std::uint64_t> out;
      for (std::size_t m = begin; m < end; ++m) out.push_back(members_[m].extension);
      return out;
    };
    std::size_t const last = first_.back();
    if (extensions(first_[first_.size() - 2], last) != extensions(last, members_.size())) lose();
  }

  std::uint64_t samples() const { return first_.size(); }
  /// Samples that were left out.
  std::uint64_t lost() const { return lost_; }

  TarIndex finish() {
    std::vector<std::uint64_t> words(TarIndex::header_words);
    words[TarIndex::magic] = TarIndex::magic_value;
    words[TarIndex::version] = TarIndex::version_value;
    words[TarIndex::tar_size] = stamp_.size;
    words[TarIndex::tar_time] = static_cast<std::uint64_t>(stamp_.time);
    words[TarIndex::tar_changed] = static_cast<std::uint64_t>(stamp_.changed);
    words[TarIndex::sample_count] = first_.size();
    words[TarIndex::member_count] = members_.size();
    words[TarIndex::extension_count] = extensions_.size();
    words[TarIndex::key_bytes] = keys_.size();
    words.insert(words.end(), first_.begin(), first_.end());
    words.push_back(members_.size());
    words.insert(words.end(), key_at_.begin(), key_at_.end());
    words.push_back(keys_.size());
    for (Member const& member : members_) {
      words.insert(words.end(), {member.place.offset, member.place.size, member.extension});
    }
    std::vector<std::string_view> names(extensions_.size());
    for (auto const& [text, number] : extensions_) names[number] = text;
    std::string texts = keys_;
    for (std::string_view const each : names) {
      words.push_back(texts.size() - keys_.size());
      texts += each;
    }
    words.push_back(texts.size() - keys_.size());
    words[TarIndex::extension_bytes] = texts.size() - keys_.size();
    texts.resize((texts.size() + 7) / 8 * 8, '\0');

    auto const bytes =
        std::make_shared<std::vector<std::byte>>(8 * words.size() + texts.size() + 8);
    std::memcpy(bytes->data(), words.data(), 8 * words.size());
    if (!texts.empty()) std::memcpy(bytes->data() + 8 * words.size(), texts.data(), texts.size());
    std::uint64_t const hash = Hash::of(std::span(*bytes).first(bytes->size() - 8));
    std::memcpy(bytes->data() + bytes->size() - 8, &hash, sizeof hash);
    return TarIndex::parse(*bytes, name_, bytes);
  }

 private:
  struct Member {
    MemberPlace place;
    std::uint64_t extension = 0;
  };

  void begin(std::string_view key) {
    open_ = true;
    lost_key_ = false;
    key_ = key;
    ++serial_;
    first_.push_back(members_.size());
    key_at_.push_back(keys_.size());
    keys_ += key;
  }

  /// Leaves the open sample out, and members of it that follow.
  void lose() {
    members_.resize(first_.back());
    drop_last();
    lost_key_ = true;
    ++lost_;
  }

  void drop_last() {
    first_.pop_back();
    keys_.resize(key_at_.back());
    key_at_.pop_back();
  }

  std::uint64_t extension_of(std::string const& text) {
    auto const [at, added] = extensions_.try_emplace(text, extensions_.size());
    if (added) seen_.push_back(0);
    return at->second;
  }

  [[noreturn]] void fail(std::string_view member, MemberPlace const& place, std::string why) const {
    throw DataError({.what = "a tar file has a member that cannot be read",
                     .where = name_ + ", member " + shown_name(member) + ", byte " +
                              std::to_string(place.offset),
                     .why = std::move(why),
                     .fix = "Fetch the file again or pack it again; OnDamage::Skip leaves that "
                            "sample out."});
  }

  std::string name_;
  TarStamp stamp_;
  bool open_ = false;      // a sample has begun
  bool lost_key_ = false;  // and was left out
  std::string key_;
  std::uint64_t lost_ = 0;
  std::vector<std::uint64_t> first_, key_at_;
  std::vector<Member> members_;
  std::string keys_;
  std::map<std::string, std::uint64_t> extensions_;
  std::vector<std::uint64_t> seen_;  // by extension: the sample that had it last
  std::uint64_t serial_ = 0;         // of the open sample, from 1
};

}  // namespace frugal::detail

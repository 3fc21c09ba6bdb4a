// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/data/shards/tar_sample.hpp>
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

/// What a tar file was when its index was made; another one makes the index stale.
struct TarStamp {
  std::uint64_t size = 0;  ///< in bytes
  std::int64_t time = 0;   ///< of its last change, in nanoseconds since 1970
  /// When content, name, mode or owner changed (ctime), which no program can set: another file of
  /// the size and the time of the first is noticed. A copy of the file has another, so it is no
  /// part of hash().
  std::int64_t changed = 0;

  friend bool operator==(TarStamp const&, TarStamp const&) = default;
};

/// Which samples a tar file holds and where: a view of bytes in the layout below, in memory or of a
/// mapped file. Copies share the bytes.
///
/// Layout  words of 64 bits in this machine's order: the header (see Word); the first member of
///         each sample, and the end; the first byte of each key, and the end; offset, size and
///         extension of each member; the first byte of each extension, and the end. Then the keys,
///         the extensions, zeros up to a whole word, and XXH3 of all before it.
/// Errors  DataError with the byte, for bytes that are not that. After parse() no read can leave
///         the bytes, and no member leaves the tar file.
class TarIndex {
 public:
  enum Word : std::size_t {
    magic,
    version,
    tar_size,
    tar_time,
    sample_count,
    member_count,
    extension_count,
    key_bytes,
    extension_bytes,
    tar_changed,
    header_words,
  };
  static constexpr std::uint64_t magic_value = 0x317261746c677266;  // "frgltar1"
  static constexpr std::uint64_t version_value = 2;

  struct Member {
    MemberPlace place;
    std::string_view extension;
  };

  /// No samples.
  TarIndex() = default;

  /// `owner` keeps the bytes; `name` is what errors call them.
  static TarIndex parse(std::span<std::byte const> bytes, std::string const& name,
                        std::shared_ptr<void const> owner = nullptr) {
    TarIndex index;
    index.bytes_ = bytes;
    index.owner_ = std::move(owner);
    index.read_header(name);
    index.check(name);
    return index;
  }

  TarStamp stamp() const {
    return bytes_.empty() ? TarStamp{}
                          : TarStamp{.size = word(tar_size),
                                     .time = static_cast<std::int64_t>(word(tar_time)),
                                     .changed = static_cast<std::int64_t>(word(tar_changed))};
  }
  std::uint64_t samples() const { return samples_; }
  std::uint64_t members() const { return members_; }

  std::string_view key(std::uint64_t sample) const {
    return text(keys_, word(key_at_ + sample), word(key_at_ + sample + 1));
  }
  /// Members [first, end) are those of a sample.
  std::uint64_t first_member(std::uint64_t sample) const { return word(first_ + sample); }
  std::uint64_t end_member(std::uint64_t sample) const { return word(first_ + sample + 1); }
  Member member(std::uint64_t index) const {
    std::uint64_t const at = places_ + 3 * index;
    std::uint64_t const extension = word(at + 2);
    return {.place = {.offset = word(at), .size = word(at + 1)},
            .extension = text(extensions_, word(extension_at_ + extension),
                              word(extension_at_ + extension + 1))};
  }

  std::span<std::byte const> bytes() const { return bytes_; }
  /// Of samples, size and time of the tar file, wherever a copy of it lies.
  std::uint64_t hash() const {
    if (bytes_.empty()) return 0;
    Hash all;
    all.update(bytes_.subspan(8 * tar_size, 8 * (tar_changed - tar_size)));
    all.update(bytes_.subspan(8 * header_words, bytes_.size() - 8 * (header_words + 1)));
    return all.digest();
  }

 private:
  // Words are copied: the bytes of a caller need not be aligned.
  std::uint64_t word(std::uint64_t index) const {
    std::uint64_t out = 0;
    std::memcpy(&out, bytes_.data() + 8 * index, sizeof out);
    return out;
  }
  std::string_view text(std::uint64_t base, std::uint64_t begin, std::uint64_t end) const {
    return {reinterpret_cast<char const*>(bytes_.data()) + base + begin, end - begin};
  }

  void read_header(std::string const& name) {
    if (bytes_.size() < 8 * (header_words + 1) || bytes_.size() % 8 != 0) {
      fail(name, bytes_.size(), "it is cut off");
    }
    if (word(magic) != magic_value) fail(name, 0, "it does not begin like one");
    if (word(version) != version_value) {
      fail(name, 8 * version,
           "its version is " + std::to_string(word(version)) + ", not " +
               std::to_string(version_value));
    }
    // Each count is below the size, so that no sum of them overflows.
    for (std::size_t i = sample_count; i <= extension_bytes; ++i) {
      if (word(i) > bytes_.size()) fail(name, 8 * i, "it claims more than it can hold");
    }
    samples_ = word(sample_count);
    members_ = word(member_count);
    first_ = header_words;
    key_at_ = first_ + samples_ + 1;
    places_ = key_at_ + samples_ + 1;
    extension_at_ = places_ + 3 * members_;
    keys_ = 8 * (extension_at_ + word(extension_count) + 1);
    extensions_ = keys_ + word(key_bytes);
    std::uint64_t const end = (extensions_ + word(extension_bytes) + 7) / 8 * 8;
    if (end + 8 != bytes_.size()) fail(name, bytes_.size(), "it has another size than it claims");
    if (Hash::of(bytes_.first(end)) != word(end / 8)) fail(name, end, "its hash is wrong");
  }

  void check(std::string const& name) const {
    rising(name, first_, samples_, members_, true);
    rising(name, key_at_, samples_, word(key_bytes), false);
    rising(name, extension_at_, word(extension_count), word(extension_bytes), false);
    for (std::uint64_t i = 0; i < members_; ++i) {
      std::uint64_t const at = places_ + 3 * i;
      if (!outside_of_file({.offset = word(at), .size = word(at + 1)}, word(tar_size)).empty()) {
        fail(name, 8 * at, "a member leaves the tar file");
      }
      if (word(at + 2) >= word(extension_count)) {
        fail(name, 8 * (at + 2), "a member has an extension that is not listed");
      }
    }
    // A sample is read from its first member to the end of its last.
    for (std::uint64_t i = 0; i < samples_; ++i) {
      for (std::uint64_t m = first_member(i) + 1; m < end_member(i); ++m) {
        if (word(places_ + 3 * m) < word(places_ + 3 * m - 3) + word(places_ + 3 * m - 2)) {
          fail(name, 8 * (places_ + 3 * m), "the members of a sample are out of order");
        }
      }
    }
  }

  /// `count` + 1 words that begin at 0, rise (by 1 at least, if strictly), and end at `last`.
  void rising(std::string const& name, std::uint64_t at, std::uint64_t count, std::uint64_t last,
              bool strictly) const {
    if (word(at) != 0) fail(name, 8 * at, "a table does not begin with 0");
    for (std::uint64_t i = at; i < at + count; ++i) {
      // Without a sum: that of 2^64 - 1 and 1 is 0, which every word reaches.
      bool const falls = strictly ? word(i + 1) <= word(i) : word(i + 1) < word(i);
      if (falls) fail(name, 8 * (i + 1), "a table falls");
    }
    if (word(at + count) != last) fail(name, 8 * (at + count), "a table has another end");
  }

  [[noreturn]] static void fail(std::string const& name, std::uint64_t byte, std::string why) {
    throw DataError({.what = "this is no index of a tar file",
                     .where = name + ", byte " + std::to_string(byte),
                     .why = std::move(why),
                     .fix = "Delete it; it is made again."});
  }

  std::span<std::byte const> bytes_{};
  std::shared_ptr<void const> owner_;
  std::uint64_t samples_ = 0, members_ = 0;
  std::uint64_t first_ = 0, key_at_ = 0, places_ = 0, extension_at_ = 0;  // words
  std::uint64_t keys_ = 0, extensions_ = 0;                               // bytes
};

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

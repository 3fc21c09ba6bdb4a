// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/hash.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/sample_set.hpp>
#include <frugal/data/curate/curation.hpp>
#include <frugal/data/curate/deduplicate.hpp>
#include <frugal/error.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace frugal {

/// Which samples of a set are kept: the i-th of them without a search through all.
///
/// A bit for each sample of the set, the number of kept samples before each block of 512, and the
/// block of every 512th kept sample (rank and select; Jacobson, "Space-efficient static trees and
/// graphs", FOCS 1989).
///
/// Cost    1.25 bits for each sample of the set. A lookup reads a few words; where thousands of
///         samples in a row are removed, a search over the blocks between two entries is added.
/// Errors  StateError for removed indices that are not ascending, or not in the set.
class Kept {
 public:
  Kept() = default;

  /// Keeps all of `samples` but the removed ones; `index_of(r)` is the index of a removed one.
  template <class Removed, class IndexOf>
  Kept(std::uint64_t samples, Removed const& removed, IndexOf const& index_of)
      : words_(static_cast<std::size_t>((samples + 63) / 64), ~std::uint64_t{0}) {
    if (samples % 64 != 0) words_.back() = (std::uint64_t{1} << (samples % 64)) - 1;
    std::uint64_t next = 0;
    for (auto const& each : removed) {
      std::uint64_t const index = index_of(each);
      if (index < next || index >= samples) refuse(index, samples);
      words_[static_cast<std::size_t>(index / 64)] &= ~(std::uint64_t{1} << (index % 64));
      next = index + 1;
    }
    count();
  }

  std::uint64_t size() const { return size_; }

  /// The index in the set of kept sample i, which is below size().
  std::uint64_t operator[](std::uint64_t i) const {
    std::size_t const hint = static_cast<std::size_t>(i / block_bits);
    auto const first = before_.begin() + static_cast<std::ptrdiff_t>(block_of_[hint]);
    auto const last = before_.begin() + static_cast<std::ptrdiff_t>(block_of_[hint + 1]) + 1;
    // The last block with at most i kept samples before it.
    auto const block =
        static_cast<std::size_t>(std::upper_bound(first, last, i) - before_.begin()) - 1;
    std::uint64_t left = i - before_[block];
    std::size_t word = block * block_words;
    for (;; ++word) {
      auto const here = static_cast<std::uint64_t>(std::popcount(words_[word]));
      if (left < here) break;
      left -= here;
    }
    std::uint64_t bits = words_[word];
    for (; left > 0; --left) bits &= bits - 1;
    return std::uint64_t{word} * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
  }

  bool contains(std::uint64_t index) const {
    return index / 64 < words_.size() &&
           (words_[static_cast<std::size_t>(index / 64)] >> (index % 64) & 1U) != 0;
  }

 private:
  static constexpr std::uint64_t block_bits = 512;
  static constexpr std::size_t block_words = block_bits / 64;

  void count() {
    for (std::size_t word = 0; word < words_.size(); ++word) {
      if (word % block_words == 0) before_.push_back(size_);
      auto const after = size_ + static_cast<std::uint64_t>(std::popcount(words_[word]));
      // Every 512th kept sample lies in this block.
      while (block_of_.size() * block_bits < after) block_of_.push_back(before_.size() - 1);
      size_ = after;
    }
    block_of_.push_back(before_.empty() ? 0 : before_.size() - 1);
  }

  [[noreturn]] static void refuse(std::uint64_t index, std::uint64_t samples) {
    throw StateError({.what = "sample " + std::to_string(index) + " cannot be left out",
                      .where = "a set of " + std::to_string(samples) + " samples",
                      .why = "it is not in the set, or not behind the one before it",
                      .fix = "Give ascending indices of the set."});
  }

  std::uint64_t size_ = 0;
  std::vector<std::uint64_t> words_;     // a bit for each sample
  std::vector<std::uint64_t> before_;    // kept samples before each block
  std::vector<std::uint64_t> block_of_;  // of kept samples 0, 512, 1024, ...
};

/// When a report may be used all the same.
struct CuratedOptions {
  /// The name in the report, to use it for a set whose identity has changed but whose samples have
  /// not: a file that was moved, for example.
  std::string even_if_changed{};
};

/// A set without the samples that a curation removed. It is marked as curated: deduplicate()
/// refuses it unless overridden by name.
///
/// Errors  DataError if the report belongs to another set: its size differs, or its identity,
///         unless overridden by name.
template <SampleSet Set>
class Curated {
 public:
  /// The set, without what the report lists.
  Curated(Set set, Curation const& curation, CuratedOptions const& options = {})
      : Curated(std::move(set), curation, Checked{}) {
    static_assert(IdentifiedSet<Set>,
                  "frugal: nothing says whether this set is the one of the report. Give it "
                  "`identity()`, a text that changes with its content; or deduplicate it here, "
                  "with `curate(set, settings)`.");
    std::string const identity = detail::identity_text(set_);
    // A report is JSON, which has it in UTF-8: the path of a file need not be.
    if (identity == curation.identity || detail::as_utf8(identity) == curation.identity) return;
    if (!options.even_if_changed.empty() && options.even_if_changed == curation.name) return;
    refuse("the identity of the set is \"" + identity + "\", and that of the report \"" +
               curation.identity + "\"",
           curation);
  }

  /// A set whose samples were chosen by hand, under a name: all of them stay.
  Curated(Set set, std::string name)
      : set_(std::move(set)), name_(std::move(name)), kept_(kept_of(set_.size(), {})) {
    if (!name_.empty()) return;
    throw SettingsError({.what = "a curated set without a name",
                         .where = "Curated",
                         .why = "an override repeats the name",
                         .fix = "Give the set a name."});
  }

  std::uint64_t size() const { return kept_->size(); }

  auto get(std::uint64_t index) const
    requires detail::ReadsByIndex<Set>
  {
    return set_.get((*kept_)[index]);
  }

  /// A random transform draws by the sample's index in the whole set: removing others changes
  /// nothing.
  auto get(SampleKey const& key) const
    requires(!detail::ReadsByIndex<Set>)
  {
    return set_.get(SampleKey{.index = (*kept_)[key.index], .seed = key.seed, .epoch = key.epoch});
  }

  template <class Sample>
  void own_memory(Sample& sample) const
    requires requires(Set const& set) { set.own_memory(sample); }
  {
    set_.own_memory(sample);
  }

  std::string name(std::uint64_t index) const { return sample_name(set_, (*kept_)[index]); }

  std::string identity() const
    requires IdentifiedSet<Set>
  {
    return detail::identity_text(set_) + ", curated " + hex_of(chosen_);
  }

  void identify(DataIdentity& to) const {
    detail::identify(set_, to);
    to.add("curated", std::to_string(size()) + " kept, hash " + hex_of(chosen_));
  }

  /// The name of the set, for overrides.
  std::string curated() const { return name_; }

  Set const& set() const { return set_; }
  Kept const& kept() const { return *kept_; }

 private:
  struct Checked {};

  template <SampleSet Other, class Text>
  friend std::pair<Curated<Other>, Curation> curate(Other set, Deduplicate const& settings,
                                                    Text const& text);

  Curated(Set set, Curation const& curation, Checked)
      : set_(std::move(set)), name_(curation.name.empty() ? "curated" : curation.name) {
    if (curation.samples != set_.size()) {
      refuse("the set has " + std::to_string(set_.size()) + " samples, and that of the report " +
                 std::to_string(curation.samples),
             curation);
    }
    kept_ = kept_of(curation.samples, curation.removed);
    Hash hash;
    for (Removed const& each : curation.removed) {
      hash.update(std::as_bytes(std::span(&each.index, 1)));
    }
    chosen_ = hash.digest();
  }

  // Copies of the set, one for each worker, share it.
  static std::shared_ptr<Kept const> kept_of(std::uint64_t samples,
                                             std::vector<Removed> const& removed) {
    return std::make_shared<Kept const>(samples, removed,
                                        [](Removed const& each) { return each.index; });
  }

  [[noreturn]] static void refuse(std::string why, Curation const& curation) {
    std::string fix = "Curate this set again, or use the set of the report.";
    if (!curation.name.empty()) {
      fix += " If only its identity has changed, set .even_if_changed = \"" + curation.name + "\".";
    }
    throw DataError({.what = "the report of a curation belongs to another set",
                     .where = curation.name.empty() ? "Curated" : "\"" + curation.name + "\"",
                     .why = std::move(why),
                     .fix = std::move(fix)});
  }

  Set set_;
  std::string name_;
  std::uint64_t chosen_ = 0;  // hash of what was removed
  std::shared_ptr<Kept const> kept_;
};

template <class Set>
Curated(Set, Curation const&, CuratedOptions const&) -> Curated<Set>;
template <class Set>
Curated(Set, Curation const&) -> Curated<Set>;

/// Deduplicates a set and gives it without its duplicates, with the report. Errors as
/// deduplicate().
template <SampleSet Set, class Text = AsText>
std::pair<Curated<Set>, Curation> curate(Set set, Deduplicate const& settings,
                                         Text const& text = {}) {
  Curation curation = deduplicate(set, settings, text);
  Curated<Set> curated(std::move(set), curation, typename Curated<Set>::Checked{});
  return {std::move(curated), std::move(curation)};
}

}  // namespace frugal

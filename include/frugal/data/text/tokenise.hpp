// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/signal_free_thread.hpp>
#include <frugal/core/source/sample_set.hpp>

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace frugal {

/// Bytes [begin, end) of a text.
struct TextSpan {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(TextSpan const&, TextSpan const&) = default;
};

/// The tokens of a text, or of a pair of texts.
struct Encoded {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> types;  ///< 0 for the first text and 1 for the second: BERT's segments
  std::vector<TextSpan> spans;      ///< the bytes that a token comes from; empty for special tokens

  std::size_t size() const { return ids.size(); }

  void push(std::int32_t id, std::int32_t type, TextSpan span);
  void append(Encoded const& more);
  /// Keeps the first `count` tokens.
  void resize(std::size_t count);

  friend bool operator==(Encoded const&, Encoded const&) = default;
};

namespace detail {

inline constexpr std::size_t no_token_limit = std::numeric_limits<std::size_t>::max();

/// How many tokens of each of two texts stay if both may have `most`: the longer is cut to the
/// length of the shorter first, then both. The strategy `longest_first` of Python's `tokenizers`,
/// which gives the odd token to the longer text.
std::pair<std::size_t, std::size_t> longest_first(std::size_t first, std::size_t second,
                                                  std::size_t most);

}  // namespace detail

/// Documents as token ids, one after the other in memory: 4 bytes a token and 8 a document. A
/// SampleSet of `std::span<std::int32_t const>`, valid for as long as the object is.
class Documents {
 public:
  Documents() = default;

  void reserve(std::size_t documents, std::size_t tokens);

  /// Adds one document, which may be empty.
  void append(std::span<std::int32_t const> tokens);

  /// Adds all documents of another.
  void append(Documents const& more);

  std::uint64_t size() const { return ends_.size(); }
  /// Tokens of all documents.
  std::uint64_t tokens() const { return tokens_.size(); }
  /// Tokens of document `index`, below size().
  std::uint64_t length(std::uint64_t index) const { return ends_[index] - begin_of(index); }

  std::span<std::int32_t const> get(std::uint64_t index) const {
    return std::span(tokens_).subspan(begin_of(index), length(index));
  }
  std::string name(std::uint64_t index) const { return "document " + std::to_string(index); }

  /// A hash of every token and of every document's length.
  std::string identity() const;

  friend bool operator==(Documents const&, Documents const&) = default;

 private:
  std::uint64_t begin_of(std::uint64_t index) const { return index == 0 ? 0 : ends_[index - 1]; }

  std::vector<std::int32_t> tokens_;
  std::vector<std::uint64_t> ends_;
};

/// What turns a text into token ids; const and safe to call from several threads. `append_ids`
/// appends those of a text without special tokens; `identity()` changes when the ids may.
/// `Wordpiece` and `SentencePiece` are tokenizers.
template <class T>
concept Tokenizer =
    requires(T const& tokenizer, std::string_view text, std::vector<std::int32_t>& ids) {
      tokenizer.append_ids(text, ids);
      { tokenizer.identity() } -> std::convertible_to<std::string>;
    };

namespace detail {

template <class T>
concept TextRange =
    std::ranges::random_access_range<T const> && std::ranges::sized_range<T const> &&
    std::convertible_to<std::ranges::range_reference_t<T const>, std::string_view>;
template <class T>
concept TextSet = SampleSet<T> && ReadsByIndex<T> && requires(T const& set, std::uint64_t index) {
  { set.get(index) } -> std::convertible_to<std::string_view>;
};

/// Hands out chunks of work to threads. The error that is thrown in the end is that of the first
/// chunk with one, whatever thread met it when: the chunks before it are all done.
class Chunks {
 public:
  explicit Chunks(std::size_t count) : count_(count), failed_(count) {}

  template <class Work>
  void work(Work&& one) {
    for (std::size_t chunk = next_++; chunk < failed_.load(); chunk = next_++) {
      try {
        one(chunk);
      } catch (...) {
        std::lock_guard const lock(mutex_);
        if (chunk < failed_.load()) {
          failed_ = chunk;
          error_ = std::current_exception();
        }
      }
    }
  }

  /// Runs `one(chunk)` for every chunk, in `threads` threads, of which this is one.
  template <class Work>
  void run(std::size_t threads, Work&& one) {
    std::vector<std::thread> others;
    try {
      for (std::size_t t = 1; t < std::min(threads, count_); ++t) {
        others.push_back(signal_free_thread([&] { work(one); }));
      }
    } catch (std::system_error const&) {
      // The threads that could be started, and this one, do all the work.
    }
    work(one);
    for (std::thread& other : others) other.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::size_t count_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> failed_;
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace detail

/// Tokenises texts: one document for each, in their order. The result is the same for any number of
/// threads; 0 is one for each core.
///
/// `Texts`  a range of strings that is read by index, or a SampleSet of them.
/// Cost     the tokens twice, while the threads' parts are joined.
/// Errors   what the set or the tokenizer throws: the error of the first text that has one.
template <class Texts, Tokenizer T>
Documents tokenise(Texts const& texts, T const& tokenizer, std::size_t threads = 0) {
  static_assert(
      detail::TextRange<Texts> || detail::TextSet<Texts>,
      "frugal: tokenise takes texts: a vector of strings or another range of them that is "
      "read by index, or a SampleSet whose get(index) is a string.");
  constexpr std::uint64_t at_once = 256;
  if (threads == 0) threads = std::max<std::size_t>(1, std::thread::hardware_concurrency());
  std::uint64_t const count = texts.size();
  std::vector<Documents> parts(static_cast<std::size_t>((count + at_once - 1) / at_once));
  detail::Chunks(parts.size()).run(threads, [&](std::size_t chunk) {
    std::vector<std::int32_t> ids;
    std::uint64_t const end = std::min(count, (chunk + 1) * at_once);
    for (std::uint64_t i = chunk * at_once; i < end; ++i) {
      ids.clear();
      if constexpr (detail::TextSet<Texts>) {
        auto const& text = texts.get(i);
        tokenizer.append_ids(text, ids);
      } else {
        tokenizer.append_ids(texts[i], ids);
      }
      parts[chunk].append(ids);
    }
  });
  std::uint64_t tokens = 0;
  for (Documents const& part : parts) tokens += part.tokens();
  Documents all;
  all.reserve(static_cast<std::size_t>(count), static_cast<std::size_t>(tokens));
  for (Documents& part : parts) {
    all.append(part);
    part = {};
  }
  return all;
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/text/tokenise.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/data/arrow/text_reading.hpp>
#include <frugal/data/tables/cell.hpp>

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace frugal::detail {

/// Looks at JSON lines, piece by piece, before a parser does: how deep arrays and objects are
/// nested, which integers no double holds, and whether columns occur at all.
///
/// The depth is at least what a parser sees that begins at the start of any line: a line feed ends
/// a string, which may have none, and closes nothing.
class JsonDepth {
 public:
  static constexpr std::size_t most = 64;

  /// An integer that no double holds.
  struct Integer {
    std::uint64_t line = 0;  ///< from 1
    std::string digits;
  };

  /// How a name occurs: as a key of a line's object, as a field of an object within, or not.
  struct Seen {
    bool key = false;
    bool field = false;
  };

  /// `watched` are names of columns, "box.width" for a field of an object.
  explicit JsonDepth(std::vector<std::string> const& watched = {}) : unseen_(watched.size()) {
    for (std::string const& name : watched) watched_.emplace(name, Seen{});
  }

  /// Whether all of it is nested at most 64 levels deep.
  bool take(std::string_view text) {
    for (char const c : text) {
      if (in_string_ && c != '\n') {
        if (c == '"' && !escaped_) {
          in_string_ = false;
        } else if (in_key_ && key_.size() < longest_key) {
          key_ += c;
        }
        escaped_ = c == '\\' && !escaped_;
        continue;
      }
      if (!digits_.empty()) {
        if ((c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' || c == '-' || c == '+') {
          if (digits_.size() < most_digits) digits_ += c;
          continue;
        }
        end_number();
      }
      switch (c) {
        case '\n':
          in_string_ = escaped_ = false;
          ++line_;
          break;
        case '"':
          in_string_ = true;
          in_key_ = depth_ > 0 && levels_[depth_ - 1].wants_key;
          if (in_key_) key_.clear();
          break;
        case ':':
          if (depth_ > 0 && levels_[depth_ - 1].wants_key) name();
          break;
        case ',':
          if (depth_ > 0) levels_[depth_ - 1].wants_key = levels_[depth_ - 1].object;
          break;
        case '[':
        case '{':
          if (depth_ == most) return false;
          levels_[depth_].object = levels_[depth_].wants_key = c == '{';
          levels_[depth_++].name.clear();
          break;
        case ']':
        case '}':
          if (depth_ > 0) --depth_;
          break;
        default:
          if (c == '-' || (c >= '0' && c <= '9')) digits_ = c;
      }
    }
    return true;
  }

  /// From 1.
  std::uint64_t line() const { return line_; }
  /// The first integer of each column that no double holds.
  std::map<std::string, Integer> const& integers() const { return integers_; }
  /// How a watched name occurred so far.
  Seen seen(std::string const& name) const { return watched_.at(name); }

 private:
  static constexpr std::size_t longest_key = std::size_t{1} << 16;
  static constexpr std::size_t most_digits = 400;  // a double has 309

  struct Level {
    bool object = false;
    bool wants_key = false;
    std::string name = {};
  };

  /// The name of the column in which this is.
  std::string const& path() {
    path_.clear();
    for (std::size_t i = 0; i < depth_; ++i) {
      if (!levels_[i].object) continue;
      if (i != 0) path_ += '.';
      path_ += levels_[i].name;
    }
    return path_;
  }

  void name() {
    Level& level = levels_[depth_ - 1];
    level.wants_key = false;
    level.name = key_;
    if (key_.find('\\') != key_.npos) {
      if (auto const plain = Json::parse('"' + key_ + '"')) level.name = plain->text();
    }
    if (unseen_ == 0) return;
    auto const found = watched_.find(path());
    if (found == watched_.end()) return;
    Seen& seen = found->second;
    if (!seen.key && !seen.field) --unseen_;
    (depth_ == 1 ? seen.key : seen.field) = true;
  }

  void end_number() {
    constexpr std::size_t exact_digits = 15;
    if (digits_.size() > exact_digits && digits_.find_first_of(".eE") == digits_.npos) {
      char const* const end = digits_.data() + digits_.size();
      std::int64_t whole = 0;
      double real = 0;
      bool const fits = std::from_chars(digits_.data(), end, whole).ec == std::errc();
      if (!fits) static_cast<void>(std::from_chars(digits_.data(), end, real));
      bool const exact = fits ? fits_double(whole) : exact_number(digits_, real);
      if (!exact && !integers_.contains(path())) {
        integers_.emplace(path_, Integer{.line = line_, .digits = digits_});
      }
    }
    digits_.clear();
  }

  std::array<Level, most> levels_;
  std::size_t depth_ = 0;
  bool in_string_ = false;
  bool in_key_ = false;
  bool escaped_ = false;
  std::uint64_t line_ = 1;
  std::string key_;
  std::string digits_;
  std::string path_;
  std::map<std::string, Integer> integers_;
  std::map<std::string, Seen> watched_;
  std::size_t unseen_;
};

/// A stream of JSON lines that ends with an error where they are nested too deep: Arrow builds and
/// frees nested types by recursion, and a line of some thousand brackets ends the process.
class ShallowJson : public ::arrow::io::InputStream {
 public:
  explicit ShallowJson(std::shared_ptr<::arrow::io::InputStream> input,
                       std::vector<std::string> const& watched = {})
      : input_(std::move(input)), depth_(watched) {}

  /// What was seen so far, from any thread.
  std::map<std::string, JsonDepth::Integer> integers() const {
    std::lock_guard const lock(mutex_);
    return depth_.integers();
  }
  JsonDepth::Seen seen(std::string const& name) const {
    std::lock_guard const lock(mutex_);
    return depth_.seen(name);
  }

  ::arrow::Status Close() override { return input_->Close(); }
  bool closed() const override { return input_->closed(); }
  ::arrow::Result<std::int64_t> Tell() const override { return input_->Tell(); }

  ::arrow::Result<std::int64_t> Read(std::int64_t size, void* to) override {
    ARROW_ASSIGN_OR_RAISE(std::int64_t const got, input_->Read(size, to));
    ARROW_RETURN_NOT_OK(checked({static_cast<char const*>(to), static_cast<std::size_t>(got)}));
    return got;
  }
  ::arrow::Result<std::shared_ptr<::arrow::Buffer>> Read(std::int64_t size) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, input_->Read(size));
    ARROW_RETURN_NOT_OK(checked(std::string_view(*buffer)));
    return buffer;
  }

 private:
  ::arrow::Status checked(std::string_view text) {
    std::lock_guard const lock(mutex_);
    if (depth_.take(text)) return ::arrow::Status::OK();
    return ::arrow::Status::Invalid("line " + std::to_string(depth_.line()) +
                                    " is nested deeper than " + std::to_string(JsonDepth::most) +
                                    " levels");
  }

  std::shared_ptr<::arrow::io::InputStream> input_;
  mutable std::mutex mutex_;
  JsonDepth depth_;
};

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace frugal::detail {

/// How deep the arrays and objects of JSON lines are nested, piece by piece. At least what a parser
/// sees that begins at the start of any line: a line feed ends a string, which may have none, and
/// closes nothing.
class JsonDepth {
 public:
  static constexpr int most = 64;

  /// Whether all of it is nested at most 64 levels deep.
  bool take(std::string_view text) {
    for (char const c : text) {
      if (c == '\n') {
        in_string_ = escaped_ = false;
        ++line_;
      } else if (in_string_) {
        if (c == '"' && !escaped_) in_string_ = false;
        escaped_ = c == '\\' && !escaped_;
      } else if (c == '"') {
        in_string_ = true;
      } else if (c == '[' || c == '{') {
        if (++depth_ > most) return false;
      } else if ((c == ']' || c == '}') && depth_ > 0) {
        --depth_;
      }
    }
    return true;
  }

  /// From 1.
  std::uint64_t line() const { return line_; }

 private:
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
  std::uint64_t line_ = 1;
};

/// A stream of JSON lines that ends with an error where they are nested too deep: Arrow builds and
/// frees nested types by recursion, and a line of some thousand brackets ends the process.
class ShallowJson : public ::arrow::io::InputStream {
 public:
  explicit ShallowJson(std::shared_ptr<::arrow::io::InputStream> input)
      : input_(std::move(input)) {}

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
    if (depth_.take(text)) return ::arrow::Status::OK();
    return ::arrow::Status::Invalid("line " + std::to_string(depth_.line()) +
                                    " is nested deeper than " + std::to_string(JsonDepth::most) +
                                    " levels");
  }

  std::shared_ptr<::arrow::io::InputStream> input_;
  JsonDepth depth_;
};

}  // namespace frugal::detail

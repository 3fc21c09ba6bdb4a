// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/data/shards/new_file.hpp>

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <span>

namespace frugal::detail {

/// The output of Arrow: a file that gets its name when it is complete. Arrow takes a status,
/// and no exception: rethrow() throws the StoreError behind one.
class ArrowSink : public ::arrow::io::OutputStream {
 public:
  explicit ArrowSink(std::filesystem::path const& path) : file_(path) {}

  using ::arrow::io::OutputStream::Write;
  ::arrow::Status Write(void const* data, std::int64_t size) override {
    try {
      file_.write({static_cast<std::byte const*>(data), static_cast<std::size_t>(size)});
    } catch (std::exception const& error) {
      failure_ = std::current_exception();
      return ::arrow::Status::IOError(error.what());
    }
    written_ += size;
    return ::arrow::Status::OK();
  }
  ::arrow::Result<std::int64_t> Tell() const override { return written_; }
  ::arrow::Status Close() override {
    closed_ = true;
    return ::arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

  /// Makes the file durable under its name.
  void publish() { file_.publish(); }

 private:
  NewFile file_;
  std::int64_t written_ = 0;
  bool closed_ = false;
  std::exception_ptr failure_;
};

}  // namespace frugal::detail

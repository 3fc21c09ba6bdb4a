// SPDX-License-Identifier: Apache-2.0
// needs: arrow
#pragma once

#include <frugal/data/shards/open_files.hpp>

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

namespace frugal::detail {

/// A PooledFile as Arrow reads files: for one call into Arrow, which may read in several threads.
///
/// Arrow takes no exceptions of ours: what the file throws is a status for Arrow, and is kept for
/// rethrow().
class PooledInput final : public ::arrow::io::RandomAccessFile {
 public:
  explicit PooledInput(PooledFile file) : file_(std::move(file)) {
    set_mode(::arrow::io::FileMode::READ);
  }

  /// Throws what the file threw, if it did.
  void rethrow() const {
    std::lock_guard const lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

  ::arrow::Status Close() override {
    closed_ = true;
    return ::arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  ::arrow::Result<std::int64_t> GetSize() override {
    return static_cast<std::int64_t>(file_.size());
  }
  ::arrow::Result<std::int64_t> Tell() const override { return at_.load(); }
  ::arrow::Status Seek(std::int64_t position) override {
    at_ = position;
    return ::arrow::Status::OK();
  }
  ::arrow::Result<std::int64_t> Read(std::int64_t bytes, void* out) override {
    ARROW_ASSIGN_OR_RAISE(std::int64_t const got, ReadAt(at_, bytes, out));
    at_ += got;
    return got;
  }
  ::arrow::Result<std::shared_ptr<::arrow::Buffer>> Read(std::int64_t bytes) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(at_, bytes));
    at_ += buffer->size();
    return buffer;
  }

  using ::arrow::io::RandomAccessFile::ReadAt;
  ::arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t bytes,
                                       void* out) override {
    if (position < 0 || bytes < 0) return ::arrow::Status::Invalid("a read at a negative place");
    try {
      return static_cast<std::int64_t>(
          file_.read_some(static_cast<std::uint64_t>(position),
                          {static_cast<char*>(out), static_cast<std::size_t>(bytes)}));
    } catch (...) {
      std::lock_guard const lock(mutex_);
      failure_ = std::current_exception();
      return ::arrow::Status::IOError("the file cannot be read");
    }
  }
  ::arrow::Result<std::shared_ptr<::arrow::Buffer>> ReadAt(std::int64_t position,
                                                           std::int64_t bytes) override {
    if (bytes < 0) return ::arrow::Status::Invalid("a read of a negative size");
    ARROW_ASSIGN_OR_RAISE(std::unique_ptr<::arrow::ResizableBuffer> buffer,
                          ::arrow::AllocateResizableBuffer(bytes));
    ARROW_ASSIGN_OR_RAISE(std::int64_t const got, ReadAt(position, bytes, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(got));
    return std::shared_ptr<::arrow::Buffer>(std::move(buffer));
  }

 private:
  PooledFile file_;
  std::atomic<std::int64_t> at_{0};
  std::atomic<bool> closed_{false};
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of several sources.
#pragma once

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/source.hpp>

#include <ATen/ATen.h>
#include <ATen/record_function.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace frugal_test::data_sources {

/// n samples of shape [2, 3] whose elements encode sample and position, and targets of 10 times the
/// sample's number.
inline frugal::Batch numbered(std::int64_t n) {
  return {at::arange(n * 6, at::kFloat).view({n, 2, 3}), at::arange(n, at::kLong) * 10};
}

template <class S>
std::vector<frugal::batch_of<S>> rest(S& source) {
  std::vector<frugal::batch_of<S>> out;
  while (auto batch = source.next()) out.push_back(*std::move(batch));
  return out;
}

template <class S>
std::vector<frugal::batch_of<S>> epoch_of(S& source, frugal::Cursor const& cursor) {
  source.seek(cursor);
  return rest(source);
}

/// The samples of `numbered` in the batches, after checking that data and target agree.
inline std::vector<std::int64_t> samples_in(std::vector<frugal::Batch> const& batches) {
  std::vector<std::int64_t> out;
  for (auto const& batch : batches) {
    auto const data = batch.data.contiguous().view({batch.data.size(0), -1});
    for (std::int64_t i = 0; i < data.size(0); ++i) {
      std::int64_t const sample = batch.target[i].item<std::int64_t>() / 10;
      bool const whole = at::equal(data[i], at::arange(sample * 6, sample * 6 + 6, data.options()));
      out.push_back(whole ? sample : -1);
    }
  }
  return out;
}

inline bool same(std::vector<frugal::Batch> const& a, std::vector<frugal::Batch> const& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!at::equal(a[i].data, b[i].data) || !at::equal(a[i].target, b[i].target)) return false;
  }
  return true;
}

/// Operators dispatched by LibTorch while `body` ran.
template <class Body>
std::vector<std::string> operators_of(Body&& body) {
  static thread_local std::vector<std::string> seen;
  seen.clear();
  auto const handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](at::RecordFunction const& function)
                                     -> std::unique_ptr<at::ObserverContext> {
        seen.emplace_back(function.name());
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION}));
  body();
  at::removeCallback(handle);
  return seen;
}

/// A temporary folder, deleted with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static std::atomic<int> count{0};
    path_ = std::filesystem::temp_directory_path() /
            ("frugal-data-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  TemporaryFolder(TemporaryFolder const&) = delete;
  TemporaryFolder& operator=(TemporaryFolder const&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path const& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::filesystem::path const fashion = "/usr/share/datasets/fashion-mnist";

}  // namespace frugal_test::data_sources

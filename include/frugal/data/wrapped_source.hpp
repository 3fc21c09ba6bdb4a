// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/source/source.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace frugal::detail {

/// What a source that reads another one passes on unchanged, unless it has its own: its size, its
/// pauses, its waiting and its advice. `S` is that source, or a reference to it.
template <class S>
class WrappedSource {
  using Inner = std::remove_reference_t<S>;

 public:
  std::uint64_t samples() const
    requires SizedSource<Inner>
  {
    return static_cast<std::uint64_t>(std::as_const(source_).samples());
  }
  std::uint64_t batches() const
    requires SizedSource<Inner>
  {
    return static_cast<std::uint64_t>(std::as_const(source_).batches());
  }
  std::int64_t batch_size() const
    requires requires(Inner const& inner) { inner.batch_size(); }
  {
    return source_.batch_size();
  }
  bool pause()
    requires PausableSource<Inner>
  {
    return source_.pause();
  }
  void resume()
    requires PausableSource<Inner>
  {
    source_.resume();
  }
  double waited() const
    requires WaitedSource<Inner>
  {
    return source_.waited();
  }
  std::string warning() const
    requires AdvisingSource<Inner>
  {
    return source_.warning();
  }

 protected:
  explicit WrappedSource(S source) : source_(std::forward<S>(source)) {}

  S source_;
};

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/data/source.hpp>

#include <string>
#include <type_traits>
#include <utility>

namespace frugal::detail {

/// What a source that reads another one passes on unchanged: its pauses, its waiting and its
/// advice.
/// `S` is that source, or a reference to it.
template <class S>
class WrappedSource {
  using Inner = std::remove_reference_t<S>;

 public:
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

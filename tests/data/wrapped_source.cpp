// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/core/source/batch.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/data/wrapped_source.hpp>
#include <optional>
#include <string>
#include <utility>

namespace frugal_test::data_wrapped_source {

using frugal::Batch;
using frugal::Cursor;

struct Plain {
  void seek(Cursor const&) {}
  std::optional<Batch> next() { return std::nullopt; }
};

struct Ahead : Plain {
  bool paused = false;
  bool pause() { return paused = true; }
  void resume() { paused = false; }
  double waited() const { return 2.5; }
  std::string warning() const { return "more workers"; }
};

struct Advised : Plain {
  std::string warning() const { return "a larger cache"; }
};

template <class S>
struct Around : frugal::detail::WrappedSource<S> {
  using frugal::detail::WrappedSource<S>::source_;
  explicit Around(S source) : frugal::detail::WrappedSource<S>(std::forward<S>(source)) {}
  void seek(Cursor const& cursor) { source_.seek(cursor); }
  auto next() { return source_.next(); }
};

TEST_CASE("pauses, waiting and advice of a source go through what wraps it") {
  Ahead source;
  Around<Ahead&> outer(source);
  CHECK(outer.pause());
  CHECK(source.paused);
  outer.resume();
  CHECK_FALSE(source.paused);
  CHECK(outer.waited() == 2.5);
  CHECK(outer.warning() == "more workers");
}

TEST_CASE("a source that is held by value is another one") {
  Ahead source;
  Around<Ahead> outer(source);
  CHECK(outer.pause());
  CHECK_FALSE(source.paused);
}

TEST_CASE("what wraps a source offers what the source offers, and nothing else") {
  CHECK(frugal::PausableSource<Around<Ahead>>);
  CHECK(frugal::WaitedSource<Around<Ahead&>>);
  CHECK(frugal::AdvisingSource<Around<Advised>>);
  CHECK_FALSE(frugal::WaitedSource<Around<Advised>>);
  CHECK_FALSE(frugal::PausableSource<Around<Plain&>>);
  CHECK_FALSE(frugal::AdvisingSource<Around<Plain>>);
}

}  // namespace frugal_test::data_wrapped_source

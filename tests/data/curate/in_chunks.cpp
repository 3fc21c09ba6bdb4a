// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/data/curate/in_chunks.hpp>

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace frugal_test::data_curate_in_chunks {

using frugal::detail::in_chunks;

TEST_CASE("every index is in one chunk, for any number of threads") {
  for (unsigned threads = 1; threads <= 8; ++threads) {
    for (std::uint64_t const size : {0U, 1U, 7U, 64U, 1000U}) {
      auto const counts = std::make_unique<std::atomic<int>[]>(size + 1);
      in_chunks(size, 7, threads, [&](unsigned thread, std::uint64_t begin, std::uint64_t end) {
        CHECK(thread < threads);
        CHECK(end - begin <= 7);
        for (std::uint64_t i = begin; i < end; ++i) ++counts[i];
      });
      for (std::size_t i = 0; i < size; ++i) CHECK(counts[i] == 1);
      CHECK(counts[size] == 0);
    }
  }
}

TEST_CASE("where no thread can be started, the calling one does it all") {
  pthread_attr_t before{}, huge{};
  REQUIRE(::pthread_getattr_default_np(&before) == 0);
  REQUIRE(::pthread_getattr_default_np(&huge) == 0);
  REQUIRE(::pthread_attr_setstacksize(&huge, std::size_t{1} << 60) ==
          0);  // no address space has it
  REQUIRE(::pthread_setattr_default_np(&huge) == 0);
  int chunks = 0;
  in_chunks(70, 7, 4, [&](unsigned thread, std::uint64_t, std::uint64_t) {
    CHECK(thread == 0);
    ++chunks;
  });
  CHECK(::pthread_setattr_default_np(&before) == 0);
  CHECK(chunks == 10);
}

TEST_CASE("of several chunks that throw, the first is reported, for any number of threads") {
  for (unsigned threads = 1; threads <= 8; ++threads) {
    std::string said;
    try {
      in_chunks(1000, 10, threads, [](unsigned, std::uint64_t begin, std::uint64_t) {
        if (begin >= 300) throw std::runtime_error(std::to_string(begin));
      });
    } catch (std::runtime_error const& error) {
      said = error.what();
    }
    CHECK(said == "300");
  }
}

TEST_CASE("a setting of 0 threads means at least one") {
  CHECK(frugal::detail::threads_or_cores(0) >= 1);
  CHECK(frugal::detail::threads_or_cores(3) == 3);
}

}  // namespace frugal_test::data_curate_in_chunks

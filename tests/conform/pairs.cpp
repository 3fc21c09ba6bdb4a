// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "conform/cover.hpp"

namespace frugal_test::conform_pairs {

/// Combines a policy that cannot be trained here with every choice that can.
template <class Extra, class... Choices>
void collect(std::set<std::string_view>& out, Axis<Choices...>) {
  (out.insert(frugal::Recipe<Extra, Choices>::fault), ...);
}
template <class Extra, class... As>
void collect_all(std::set<std::string_view>& out, frugal::list<As...>) {
  (collect<Extra>(out, As{}), ...);
}

TEST_CASE(
    "two policies that do not compile together break a rule whose sentence is tested in reject/") {
  std::set<std::string_view> sentences;
  for (auto const& choices : faults.of) {
    for (auto const& others : choices) {
      for (auto const& ours : others) sentences.insert(std::begin(ours), std::end(ours));
    }
  }
  collect_all<frugal::CudaGraph<frugal::WholeStep>>(sentences, Axes{});
  collect_all<frugal::Checkpoint<frugal::WeightsIn<frugal::BF16>>>(sentences, Axes{});
  collect_all<frugal::AutoBatch>(sentences, Axes{});
  collect_all<frugal::Audit<frugal::BitExact>>(sentences, Axes{});
  collect_all<frugal::Spot<frugal::SigtermSave>>(sentences, Axes{});
  sentences.erase("");
  // Two of one kind, two needs, two demands of CudaGraph, and two conflicts.
  CHECK(sentences.size() >= 9);
  std::string expected;
  for (auto const& entry :
       std::filesystem::directory_iterator(std::filesystem::path(FRUGAL_TEST_DIR) / "reject")) {
    if (entry.path().extension() == ".cpp") expected += text_of(entry.path());
  }
  for (std::string_view const sentence : sentences) {
    CAPTURE(sentence);
    CHECK(expected.find("// expect: " + std::string(sentence)) != std::string::npos);
  }
}

}  // namespace frugal_test::conform_pairs

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace frugal_test {

/// Sentences to train a vocabulary on: some English, and words of random syllables, so that there
/// is more to choose from than a test asks for.
inline std::vector<std::string> sentences() {
  std::vector<std::string> made;
  for (std::string const who : {"cat", "dog", "bird", "horse", "mouse"}) {
    for (std::string const does : {"sat on", "looked at", "walked to", "slept near"}) {
      made.push_back("The " + who + " " + does + " the mat and the log in 1998.");
    }
  }
  std::mt19937 chance(1);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (int word = 0; word < 8; ++word) {
      text += text.empty() ? "" : " ";
      for (std::size_t end = 2 + chance() % 2, k = 0; k < end; ++k) {
        text += "bdgklmnrst"[chance() % 10];
        text += "aeiou"[chance() % 5];
      }
    }
    made.push_back(text);
  }
  return made;
}

}  // namespace frugal_test

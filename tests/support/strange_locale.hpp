// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <clocale>
#include <locale>
#include <string>

namespace frugal_test::support {

/// While it lives, C++ writes numbers as "1.234,5", and C does too where the machine has a German
/// locale.
class StrangeLocale {
 public:
  StrangeLocale()
      : before_(std::locale::global(std::locale(std::locale::classic(), new Numbers))),
        c_before_(std::setlocale(LC_ALL, nullptr)) {
    for (char const* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE"}) {
      if (std::setlocale(LC_ALL, name) != nullptr) break;
    }
  }
  StrangeLocale(StrangeLocale const&) = delete;
  StrangeLocale& operator=(StrangeLocale const&) = delete;
  ~StrangeLocale() {
    std::setlocale(LC_ALL, c_before_.c_str());
    std::locale::global(before_);
  }

 private:
  struct Numbers : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };

  std::locale before_;
  std::string c_before_;
};

}  // namespace frugal_test::support

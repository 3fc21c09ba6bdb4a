// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <locale>
#include <optional>
#include <string>

#include "support/files.hpp"

namespace frugal_test::support {

/// The program's locale in C++: 1.234.567,5. Restored with the test.
class GroupedLocale {
 public:
  GroupedLocale()
      : before_(std::locale::global(std::locale(std::locale::classic(), new Grouping))) {}
  GroupedLocale(GroupedLocale const&) = delete;
  GroupedLocale& operator=(GroupedLocale const&) = delete;
  ~GroupedLocale() { std::locale::global(before_); }

 private:
  struct Grouping : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale before_;
};

/// The program's locale in C, with a comma for the point: Germany's, made if none is installed.
/// `works` is false where that cannot be made either.
class CommaLocale {
 public:
  CommaLocale() : before_(std::setlocale(LC_ALL, nullptr)) {
    for (char const* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ru_RU.UTF-8"}) {
      if (set(name)) return;
    }
    // Debian has the sources of all locales in libc-bin and locales, and few compiled ones.
    std::string const made = folder_.path().string();
    std::string const command =
        "localedef -i de_DE -f UTF-8 '" + made + "/de_DE.UTF-8' >/dev/null 2>&1";
    if (std::system(command.c_str()) != 0) return;
    if (char const* const path = std::getenv("LOCPATH")) path_ = path;
    ::setenv("LOCPATH", made.c_str(), 1);
    changed_ = true;
    set("de_DE.UTF-8");
  }
  CommaLocale(CommaLocale const&) = delete;
  CommaLocale& operator=(CommaLocale const&) = delete;
  ~CommaLocale() {
    std::setlocale(LC_ALL, before_.c_str());
    if (!changed_) return;
    if (path_) {
      ::setenv("LOCPATH", path_->c_str(), 1);
    } else {
      ::unsetenv("LOCPATH");
    }
  }

  bool works() const { return works_; }

 private:
  bool set(char const* name) {
    works_ = std::setlocale(LC_ALL, name) != nullptr && *std::localeconv()->decimal_point == ',';
    if (!works_) std::setlocale(LC_ALL, before_.c_str());
    return works_;
  }

  TemporaryFolder folder_;
  std::string before_;
  std::optional<std::string> path_{};
  bool changed_ = false, works_ = false;
};

}  // namespace frugal_test::support

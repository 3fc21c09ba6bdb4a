// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace frugal::detail {

/// The first host of SLURM's compressed lists: "gpu[07-12,20],big3" gives "gpu07".
inline std::string first_host(std::string_view list) {
  std::string host;
  bool in_brackets = false, past_the_first = false;
  for (char const c : list) {
    if (c == '[') {
      in_brackets = true, past_the_first = false;
    } else if (c == ']') {
      in_brackets = false;
    } else if (in_brackets) {
      past_the_first = past_the_first || c == ',' || c == '-';
      if (!past_the_first) host += c;
    } else if (c == ',') {
      break;
    } else {
      host += c;
    }
  }
  return host;
}

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/report/html/best_value.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace frugal::html::parts {

FRUGAL_INLINE std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words{""};
  for (char const c : name) {
    char const small = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    bool const letter = small >= 'a' && small <= 'z', digit = c >= '0' && c <= '9';
    if (letter || digit) {
      words.back() += small;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  for (std::string& word : words) {
    if (word != "f1" && word != "r2") {
      word.erase(word.find_last_not_of("0123456789") + 1);
    }
  }
  return words;
}

}  // namespace frugal::html::parts

namespace frugal::html {

FRUGAL_INLINE Better better_by_name(std::string_view metric) {
  constexpr std::array falling{"loss", "error", "err", "perplexity", "ppl", "mae", "mse",
                               "rmse", "mape",  "wer", "cer",        "fid", "nll"};
  constexpr std::array rising{"accuracy", "acc",    "top",  "f1",   "auc",  "auroc",
                              "map",      "recall", "r2",   "bleu", "chrf", "precision",
                              "rouge",    "iou",    "dice", "psnr", "ssim"};
  std::vector<std::string> const words = parts::words_of(metric);
  auto const has_any = [&](auto const& terms) {
    return std::find_first_of(words.begin(), words.end(), terms.begin(), terms.end()) !=
           words.end();
  };
  return has_any(falling) ? Better::lower : has_any(rising) ? Better::higher : Better::unknown;
}

FRUGAL_INLINE Better better_of(RunLog const& log, std::string_view metric) {
  if (LogLine const* const recipe = log.event("recipe")) {
    std::string const text = recipe->text("recipe");
    std::string const watched = "Watch<\"" + std::string(metric) + "\", Better::";
    if (std::size_t const at = text.find(watched); at != text.npos) {
      std::string_view const direction = std::string_view(text).substr(at + watched.size());
      if (direction.starts_with("lower")) return Better::lower;
      if (direction.starts_with("higher")) return Better::higher;
    }
  }
  return better_by_name(metric);
}

FRUGAL_INLINE NamedPoint best_of(Better better, Series const& series) {
  if (better == Better::unknown) return {"last", series.last()};
  return {"best", better == Better::lower ? series.lowest() : series.highest()};
}

}  // namespace frugal::html

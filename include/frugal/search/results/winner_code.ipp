// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/search/results/winner_code.hpp>

#include <frugal/base/number_text.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/search/results/results.hpp>
#include <frugal/search/trials/candidate.hpp>

#include <algorithm>
#include <variant>

namespace frugal::detail {

FRUGAL_INLINE std::string comment_text(std::string_view text) {
  std::string out;
  for (char const c : text) out += static_cast<unsigned char>(c) < 0x20 || c == '\\' ? ' ' : c;
  return out;
}

FRUGAL_INLINE std::string literal_text(std::string_view text) {
  constexpr char const* digits = "01234567";
  std::string out = "\"";
  for (char const c : text) {
    auto const byte = static_cast<unsigned char>(c);
    if (byte < 0x20) {
      // Three octal digits: a digit that follows belongs to the text.
      out += {'\\', digits[byte >> 6], digits[(byte >> 3) & 7], digits[byte & 7]};
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + '"';
}

FRUGAL_INLINE std::string value_code(SearchResults const& of, Candidate const& candidate,
                                     std::size_t setting,
                                     std::vector<std::string> const& expressions) {
  Distribution const& values = of.domain.settings[setting].values;
  if (auto const* const choice = std::get_if<Choice>(&values)) {
    auto const index = static_cast<std::size_t>(*candidate.values[setting]);
    if (expressions.empty()) return literal_text(choice->names[index]);
    if (expressions.size() == choice->names.size()) return expressions[index];
    throw SettingsError({.what = "the setting '" + of.domain.settings[setting].name + "' has " +
                                 count_text(expressions.size(), "expression"),
                         .where = "winner_code",
                         .why = "it is a choice among " + count_text(choice->names.size(), "name"),
                         .fix = "Give an expression for each name, in their order, or none."});
  }
  std::string text = of.value_text(candidate, setting);
  if (std::holds_alternative<Int>(values)) return text;
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::string winner_code(SearchResults const& of, WinnerCode const& code,
                                      std::optional<std::size_t> trial) {
  of.require();
  if (!trial) trial = of.winner;
  if (!trial && !of.front.empty()) return "// No rule names a winner of the Pareto front.\n";
  if (!trial) return "// No trial is complete: there is no winner.\n";
  if (*trial >= of.history.trials.size()) {
    throw SettingsError(
        {.what = "there is no trial " + std::to_string(*trial),
         .where = "winner_code",
         .why = "the search has " + detail::count_text(of.history.trials.size(), "trial"),
         .fix = "Give the number of a trial of this search."});
  }
  SearchTrial const& of_trial = of.history.trials[*trial];
  Candidate const& candidate = of_trial.candidate;
  std::string text = "// Trial " + std::to_string(*trial) + ": " + of.recipe(candidate);
  OverSeeds const known = over_seeds(of, *trial);
  for (std::size_t m = 0; m < of.objectives.size(); ++m) {
    auto const& each = known.objectives[m];
    if (each.own) text += ", " + of.objectives[m].name + ' ' + detail::general(*each.own, 4);
    if (!each.fresh) continue;
    text += " (" + detail::seed_spread_text(*each.fresh) + " over " +
            detail::count_text(each.fresh->count, "other seed") + ")";
  }
  if (!of_trial.rungs.empty()) {
    text += ", after " + detail::count_text(of_trial.rungs.back().steps, "step");
  }
  text = detail::comment_text(text) + ", seed " + std::to_string(of_trial.seed) + ".\n";
  if (!code.recipe_type.empty()) {
    text += "using Winner = " + code.recipe_type + ";\n";
  } else {
    text += "// The type of the recipe '" + detail::comment_text(of.recipe(candidate)) +
            "' is not known.\n";
  }
  for (std::size_t i = 0; i < of.domain.settings.size(); ++i) {
    if (!candidate.values[i]) continue;
    std::string const& name = of.domain.settings[i].name;
    bool found = false;
    for (PlacedSetting const& placed : code.settings) {
      if (placed.setting != name || placed.place.empty()) continue;
      found = true;
      text += (placed.place == "architecture" ? code.architecture : placed.place) + '.' +
              (placed.member.empty() ? name : placed.member) + " = " +
              detail::value_code(of, candidate, i, placed.expressions) + ";\n";
    }
    if (!found) {
      text += "// " +
              detail::comment_text(name + " = " + detail::value_code(of, candidate, i, {})) +
              ": set it where your program has it.\n";
    }
  }
  return text;
}

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/search/results/results.hpp>

namespace frugal {

/// A place where a program keeps a setting of the search; a setting may have several.
struct PlacedSetting {
  std::string setting{};  ///< its name in the domain
  /// An expression that has it as a member: "trainer.policy<fr::kinds::optimizer>()",
  /// "trainer.objective()", or "architecture". Empty: not known.
  std::string place{};
  std::string member{};  ///< "lr"; empty: the name of the setting
  /// Of a Choice an expression for each name, such as "Activation::gelu"; empty: the name as a text.
  std::vector<std::string> expressions{};
};

/// How the code of a program names its parts.
struct WinnerCode {
  std::string recipe_type{};  ///< "fr::Recipe<fr::AdamW, fr::BF16>"; empty: not known
  std::vector<PlacedSetting> settings{};
  std::string architecture = "net";  ///< the variable that the place "architecture" stands for
};

namespace detail {

/// A text within a comment of one line: no line feed or backslash ends or continues it.
std::string comment_text(std::string_view text);

/// A text as a literal.
std::string literal_text(std::string_view text);

/// An expression for a value: digits read back as the same number, and a real number is no whole one.
std::string value_code(SearchResults const& of, Candidate const& candidate, std::size_t setting,
                       std::vector<std::string> const& expressions);

}  // namespace detail

/// C++ to paste: the recipe of the winner, and a line for each of its settings.
///
///     using Winner = fr::Recipe<fr::AdamW, fr::BF16>;
///     trainer.policy<fr::kinds::optimizer>().lr = 0.0031622776601683794;
///     net.width = 128;
///
/// A setting whose place is not known is a comment with its value. Without a winner there is only a comment.
///
/// @param trial  another one than the winner, such as one on the Pareto front.
/// Errors  SettingsError for results that do not fit each other, for a trial that does not exist, and for a
///         number of expressions that is not that of the names.
std::string winner_code(SearchResults const& of, WinnerCode const& code,
                        std::optional<std::size_t> trial = std::nullopt);

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/results/winner_code.ipp>
#endif

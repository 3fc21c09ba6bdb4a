// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/run/judged.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/model/where.hpp>

namespace frugal {

/// Where a module's tensors are in a file that has other names. The texts that the stars of `to` stand
/// for go into those of `from`, in their order: {"encoder.layer.*.output.*", "layers.*.out.*"}.
struct RenameWeights {
  std::string from;  ///< pattern of names in the file
  std::string to;    ///< pattern of names in the module
};

/// How load_weights() finds the tensors of a module in a file, and what may differ. Patterns are
/// NamePatterns; those of names are of the module's names, but for allow_unexpected.
struct WeightRules {
  /// The first whose `to` fits a name of the module says what it is called in the file. Several may
  /// take one tensor of the file: a student's layers from a teacher's.
  std::vector<RenameWeights> rename{};
  /// Names in the file begin with it, such as "bert."; those that do not are found as well.
  std::string prefix{};
  /// The tensors that are loaded; the others keep their values, whatever the file has. Empty: all.
  NamePatterns parts{};
  /// Matrices that the file has transposed, such as those of GPT-2.
  NamePatterns transpose{};
  /// Tensors that may have another number of rows, such as embeddings of a changed vocabulary: the
  /// known rows are copied, and new ones are the mean of those of the file.
  NamePatterns resize{};
  NamePatterns allow_missing{};     ///< may be missing in the file: they keep their values
  NamePatterns allow_unexpected{};  ///< may be in the file alone; in the file's names
  NamePatterns allow_misshapen{};   ///< may have another shape or type: they keep their values
  /// Of a checkpoint with averages (Average); by default those that its metrics are of.
  Weights which = Weights::validated;
  /// Of a file of torch.save that has more than a state dict: its key. Empty: the one state dict that
  /// it has, alone or under "state_dict", "model_state_dict", "model" or "module".
  std::string within{};
};

namespace detail {

/// The texts that the stars of a pattern stand for, each as short as possible; nothing if the name
/// does not fit.
FRUGAL_INLINE std::optional<std::vector<std::string>> texts_of_stars(std::string_view pattern,
                                                                     std::string_view name) {
  std::size_t const star = pattern.find('*');
  if (star == std::string_view::npos) {
    if (pattern == name) return std::vector<std::string>{};
    return std::nullopt;
  }
  if (!name.starts_with(pattern.substr(0, star))) return std::nullopt;
  std::string_view const rest = pattern.substr(star + 1);
  for (std::size_t end = star; end <= name.size(); ++end) {
    if (auto more = texts_of_stars(rest, name.substr(end))) {
      more->insert(more->begin(), std::string(name.substr(star, end - star)));
      return more;
    }
  }
  return std::nullopt;
}

FRUGAL_INLINE std::string with_texts(std::string_view pattern,
                                     std::vector<std::string> const& texts) {
  std::string name;
  std::size_t next = 0;
  for (char const c : pattern) {
    if (c == '*') {
      name += texts[next++];
    } else {
      name += c;
    }
  }
  return name;
}

/// What a tensor of the module is called in the file, before the prefix.
FRUGAL_INLINE std::string name_in_file(WeightRules const& rules, std::string const& name) {
  for (RenameWeights const& rename : rules.rename) {
    if (auto const texts = texts_of_stars(rename.to, name)) return with_texts(rename.from, *texts);
  }
  return name;
}

/// SettingsError for rules that cannot be followed, or that are of no tensor of the module.
FRUGAL_INLINE void require_rules(WeightRules const& rules, std::vector<std::string> const& names) {
  std::string const where = "WeightRules::";
  for (RenameWeights const& rename : rules.rename) {
    if (std::ranges::count(rename.from, '*') != std::ranges::count(rename.to, '*')) {
      throw SettingsError(
          {.what = "'" + rename.from + "' and '" + rename.to + "' have different numbers of stars",
           .where = where + "rename",
           .why = "each star of one is the text of a star of the other",
           .fix = "Write as many in both, or two rules."});
    }
    NamePatterns({rename.to}).require_in(names, where + "rename", "tensors of the module");
  }
  rules.parts.require_in(names, where + "parts", "tensors of the module");
  rules.transpose.require_in(names, where + "transpose", "tensors of the module");
  rules.resize.require_in(names, where + "resize", "tensors of the module");
}

}  // namespace detail
}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/run/judged.hpp>
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
std::optional<std::vector<std::string>> texts_of_stars(std::string_view pattern,
                                                       std::string_view name);

std::string with_texts(std::string_view pattern, std::vector<std::string> const& texts);

/// What a tensor of the module is called in the file, before the prefix.
std::string name_in_file(WeightRules const& rules, std::string const& name);

/// SettingsError for rules that cannot be followed, or that are of no tensor of the module.
void require_rules(WeightRules const& rules, std::vector<std::string> const& names);

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/weight_rules.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/core/compose/scope.hpp>
#include <frugal/core/state/state_dict.hpp>
#include <frugal/core/state/state_reader.hpp>
#include <frugal/error.hpp>
#include <frugal/policy/checkpoint/options.hpp>
#include <frugal/policy/checkpoint/saved_name.hpp>
#include <frugal/policy/checkpoint/state_file.hpp>

namespace frugal {
struct RunState;
}  // namespace frugal

namespace frugal::detail {

/// The allowed differences between a run and the checkpoint that it resumes from.
struct RecipeRules {
  ChangedRecipe changed = ChangedRecipe::Refuse;
  /// Kinds whose state starts fresh where the checkpoint's does not fit.
  std::vector<std::string> start_fresh{};
  /// Names of a DataIdentity whose values may differ.
  std::vector<std::string> changed_data{};

  bool keeps() const { return changed == ChangedRecipe::KeepWhatFits; }
};

/// SettingsError for rules without an effect.
void require_rules(RecipeRules const& rules);

[[noreturn]] void refuse_checkpoint(std::filesystem::path const& where, std::string why,
                                    std::string fix);
[[noreturn]] void refuse_checkpoint(std::filesystem::path const& where, std::string why);
/// Where the recipe differs. `kind`: whose part it is; the optimizer's must match.
[[noreturn]] void refuse_recipe(std::filesystem::path const& where, std::string_view kind,
                                std::string why);

/// "EarlyStop" of "policies/EarlyStop/best"; nothing for a path that is no policy's.
std::string_view scope_in(std::string_view path);

/// A slot that is filled otherwise than in the checkpoint.
struct SlotChange {
  std::string slot;
  std::string there;
  std::string here;
};

std::vector<SlotChange> changed_slots(StateFile const& state, Slots const& recipe);

/// Loads the policies' states from a checkpoint of a possibly different recipe. Policies without a
/// saved state start fresh; so do those in `start_fresh` whose state does not fit. Returns each
/// difference in words. StateError names a state that does not fit and is not in `start_fresh`.
class FittingStates {
 public:
  /// `changed`: of the slots of `recipe`, those that differ.
  FittingStates(RunState& run, StateReader& reader, StateDict const& memory,
                RecipeRules const& rules, Slots const& recipe,
                std::vector<SlotChange> const& changed);

  std::vector<std::string> load(std::filesystem::path const& where);

 private:
  void load_one(std::string const& scope, std::filesystem::path const& where);

  void start_fresh(std::string const& scope);

  [[noreturn]] static void refuse(std::string const& scope, StateError const& error,
                                  std::filesystem::path const& where);

  RunState& run_;
  StateReader& reader_;
  RecipeRules const& rules_;
  std::vector<std::string> changes_;
  std::vector<SavedScope> scopes_;  ///< of which the checkpoint has a state
  std::set<std::string> replaced_;  ///< slots of another type
  std::set<std::string> fresh_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/changed_recipe.ipp>
#endif

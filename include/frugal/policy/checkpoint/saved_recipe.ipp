// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/saved_recipe.hpp>

#include <frugal/core/run/run_state.hpp>
#include <frugal/core/state/state_writer.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/kinds.hpp>

namespace frugal::detail {

FRUGAL_INLINE Slots slots_from(std::span<SlotName const> policies) {
  Slots slots;
  for (SlotName const& each : policies) {
    if (each.name != nullptr) slots.emplace(each.kind, each.name());
  }
  return slots;
}

FRUGAL_INLINE void require_rules(RecipeRules const& rules) {
  std::string const optimizer(kinds::optimizer::name);
  bool const all = !is_among(rules.start_fresh, optimizer);
  if (all && (rules.start_fresh.empty() || rules.keeps())) return;
  throw SettingsError(
      {.what = all ? "Checkpoint::start_fresh names states, and none may differ"
                   : "start_fresh names the optimizer",
       .where = "Checkpoint::start_fresh",
       .why = all ? "Checkpoint::changed_recipe is ChangedRecipe::Refuse"
                  : "a changed recipe keeps the model and the optimizer",
       .fix = all ? "Set it to ChangedRecipe::KeepWhatFits."
                  : "Set Checkpoint::resume to Resume::Weights to take the weights alone."});
}

FRUGAL_INLINE void refuse_checkpoint(std::filesystem::path const& where, std::string why,
                                     std::string fix) {
  throw StateError({.what = "this checkpoint belongs to another run",
                    .where = where.string(),
                    .why = std::move(why),
                    .fix = std::move(fix)});
}

FRUGAL_INLINE void refuse_checkpoint(std::filesystem::path const& where, std::string why) {
  refuse_checkpoint(
      where, std::move(why),
      "Resume with the model, recipe and seed that saved it, set Checkpoint::resume "
      "to Resume::Weights to take the weights alone, or give another Settings::run_dir.");
}

FRUGAL_INLINE void refuse_recipe(std::filesystem::path const& where, std::string_view kind,
                                 std::string why) {
  if (kind == kinds::optimizer::name) refuse_checkpoint(where, std::move(why));
  refuse_checkpoint(
      where, std::move(why),
      "Resume with the recipe that saved it, set Checkpoint::changed_recipe to "
      "ChangedRecipe::KeepWhatFits to keep the model, the optimizer and what else fits, set "
      "Checkpoint::resume to Resume::Weights to take the weights alone, or give another "
      "Settings::run_dir.");
}

FRUGAL_INLINE std::string_view scope_in(std::string_view path) {
  constexpr std::string_view begin = "policies/";
  if (!path.starts_with(begin)) return {};
  path.remove_prefix(begin.size());
  return path.substr(0, path.find('/'));
}

FRUGAL_INLINE std::vector<SlotChange> changed_slots(StateFile const& state, Slots const& recipe) {
  std::vector<SlotChange> changes;
  for (auto const& [slot, here] : recipe) {
    auto const saved = state.recipe.find(slot);
    std::string const there = saved == state.recipe.end() ? "nothing" : saved->second;
    if (there != here) changes.push_back({slot, there, here});
  }
  return changes;
}

FRUGAL_INLINE FittingStates::FittingStates(RunState& run, StateReader& reader,
                                           StateDict const& memory, RecipeRules const& rules,
                                           Slots const& recipe,
                                           std::vector<SlotChange> const& changed)
    : run_(run), reader_(reader), rules_(rules) {
  for (SlotChange const& each : changed) {
    replaced_.insert(each.slot);
    changes_.push_back(each.slot + " was " + each.there + " and is " + each.here);
  }
  std::set<std::string> here;
  for (SavedScope const& scope : run.links.policies().scopes()) {
    here.insert(scope.name);
    if (reader.has("policies/" + scope.name) || scope.name == kinds::optimizer::name) {
      scopes_.push_back(scope);
    } else if (!scope.dispensable && !recipe.contains(scope.name)) {
      changes_.push_back(scope.name + " is new and starts fresh");
    }
  }
  for (auto const& [path, value] : memory.values) {
    std::string const scope(scope_in(path));
    if (scope.empty() || here.contains(scope) || !reader.unread("policies/" + scope)) continue;
    changes_.push_back(scope + (replaced_.contains(scope) ? " has no state any more"
                                                          : " is gone, and so is its state"));
    reader.pass_over("policies/" + scope);
    // The policy that had ended the run is no longer in the recipe.
    if (run.control.stopped_by() == scope) run.control.agree_on_stop({});
  }
  reader.recipe_changed = !changes_.empty();
}

FRUGAL_INLINE std::vector<std::string> FittingStates::load(std::filesystem::path const& where) {
  bool const known = reader_.recipe_changed;
  for (SavedScope const& scope : scopes_) load_one(scope.name, where);
  // A policy that keeps a snapshot of the run can detect only now that it does not fit.
  if (!known && reader_.recipe_changed) {
    reader_.load_again();
    for (SavedScope const& scope : scopes_) {
      if (!scope.dispensable) load_one(scope.name, where);
    }
  }
  return std::move(changes_);
}

FRUGAL_INLINE void FittingStates::load_one(std::string const& scope,
                                           std::filesystem::path const& where) {
  if (fresh_.contains(scope)) return;
  std::string const path = "policies/" + scope;
  bool const may_be_fresh = is_among(rules_.start_fresh, scope);
  if (may_be_fresh && replaced_.contains(scope)) return start_fresh(scope);
  StateDict before;
  if (may_be_fresh) {
    StateWriter writer(before);
    run_.links.policies().persist_one(writer, scope);
    writer.finish();
  }
  try {
    reader_.scope("policies",
                  [&](StateReader& inner) { run_.links.policies().persist_one(inner, scope); });
    auto const left = reader_.unread(path);
    if (!left) return;
    if (replaced_.contains(scope) && !reader_.has_read(path)) {
      changes_.push_back(scope + " has no state any more");
      reader_.pass_over(path);
      return;
    }
    throw StateError(
        {.what = "", .where = *left, .why = "this recipe has no place for it", .fix = ""});
  } catch (StateError const& error) {
    if (!may_be_fresh) refuse(scope, error, where);
    StateReader reader(before);
    run_.links.policies().persist_one(reader, scope);
    start_fresh(scope);
  }
}

FRUGAL_INLINE void FittingStates::start_fresh(std::string const& scope) {
  fresh_.insert(scope);
  changes_.push_back("the state of " + scope + " starts fresh");
  reader_.pass_over("policies/" + scope);
  reader_.recipe_changed = true;
}

FRUGAL_INLINE void FittingStates::refuse(std::string const& scope, StateError const& error,
                                         std::filesystem::path const& where) {
  std::string why = "'" + error.fault().where + "': " + error.fault().why;
  if (scope == kinds::optimizer::name) refuse_checkpoint(where, std::move(why));
  refuse_checkpoint(where, std::move(why),
                    "Name \"" + scope +
                        "\" in Checkpoint::start_fresh to have its state start "
                        "fresh, or resume with the recipe that saved it.");
}

}  // namespace frugal::detail

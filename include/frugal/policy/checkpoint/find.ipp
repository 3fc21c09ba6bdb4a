// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/checkpoint/find.hpp>

#include <frugal/base/file.hpp>
#include <frugal/checkpoint/run_directory.hpp>
#include <frugal/core/compose/scope.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>
#include <frugal/policy/checkpoint/state_file.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

#include <c10/util/Type.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::detail {

FRUGAL_INLINE ValidationTexts validation_texts(std::map<std::string, std::string> const& data) {
  ValidationTexts all;
  for (auto const& [name, text] : data) {
    if (auto const source = validation_source(name)) all.emplace(*source, text);
  }
  return all;
}

FRUGAL_INLINE std::set<std::string, std::less<>> changed_sources(ValidationTexts const& here,
                                                                 ValidationTexts const& there) {
  std::set<std::string, std::less<>> changed;
  for (auto const& [source, text] : there) {
    auto const now = here.find(source);
    if (now != here.end() && now->second != text) changed.insert(source);
  }
  return changed;
}

FRUGAL_INLINE ValidationTexts validation_of(SavedCheckpoint const& checkpoint) {
  if (!has_file(checkpoint, StateFile::file_name)) return {};
  try {
    auto const path = checkpoint.folder / StateFile::file_name;
    MappedFile const file(path);
    auto const bytes = file.bytes();
    return validation_texts(
        StateFile::parse({reinterpret_cast<char const*>(bytes.data()), bytes.size()}, path).data);
  } catch (StoreError const&) {
    return {};
  }
}

FRUGAL_INLINE FormerValidation::FormerValidation(std::vector<SavedCheckpoint> const& checkpoints,
                                                 std::map<std::string, std::string> const& data) {
  ValidationTexts const here = validation_texts(data);
  if (here.empty()) return;
  for (SavedCheckpoint const& each : checkpoints) {
    if (each.manifest.metrics.empty()) continue;
    auto changed = changed_sources(here, validation_of(each));
    if (!changed.empty()) by_serial_.emplace(each.manifest.serial, std::move(changed));
  }
}

FRUGAL_INLINE void FormerValidation::take_from(SavedCheckpoint& checkpoint) const {
  auto const found = by_serial_.find(checkpoint.manifest.serial);
  if (found == by_serial_.end()) return;
  std::erase_if(checkpoint.manifest.metrics, [&](auto const& metric) {
    return found->second.contains(source_of(metric.first));
  });
}

FRUGAL_INLINE void erase_former(std::vector<SavedCheckpoint>& checkpoints,
                                std::string_view metric) {
  if (checkpoints.size() < 2) return;
  std::string const source(source_of(metric));
  std::string newest;
  std::erase_if(checkpoints, [&](SavedCheckpoint const& each) {
    ValidationTexts const texts = validation_of(each);
    auto const text = texts.find(source);
    if (text == texts.end()) return false;
    if (newest.empty()) newest = text->second;
    return text->second != newest;
  });
}

FRUGAL_INLINE std::optional<std::string> validation_source(std::string_view name) {
  constexpr std::string_view before = "validation '";
  if (name == "validation") return std::string();
  if (!name.starts_with(before) || !name.ends_with('\'')) return std::nullopt;
  return std::string(name.substr(before.size(), name.size() - before.size() - 1));
}

/// "a, b [1, 2], hash c" as "a" and "b [1, 2], hash c": a hash stays with what it is of.
FRUGAL_INLINE std::vector<std::string> parts_of_identity(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(') ++depth;
    if (text[i] == ']' || text[i] == ')') --depth;
    std::string_view const rest = text.substr(i);
    if (depth <= 0 && rest.starts_with(", ") && !rest.starts_with(", hash ")) {
      parts.emplace_back();
      ++i;
    } else {
      parts.back() += text[i];
    }
  }
  return parts;
}

/// With the names of types as they are written, and without its middle if it is long.
FRUGAL_INLINE std::string shown_part(std::string_view part) {
  constexpr std::size_t longest = 100;
  std::string text;
  while (!part.empty()) {
    std::size_t const end = std::min(part.find_first_of(" ,"), part.size());
    std::string const word(part.substr(0, end));
    // A hash may look like a type's name, and a short word like that of a builtin type.
    bool const may_be_type = word.size() > 2 && word.find_first_of("0123456789") <= 1 &&
                             word.find_first_not_of("0123456789abcdef") != std::string::npos;
    text += may_be_type ? c10::demangle(word.c_str()) : word;
    text += part.substr(end, 1);
    part.remove_prefix(std::min(end + 1, part.size()));
  }
  if (text.size() <= longest) return text;
  return text.substr(0, longest / 2) + " ... " + text.substr(text.size() - longest / 4);
}

FRUGAL_INLINE std::string shown_identity(std::string const& text, std::string const& other) {
  bool const is_long = std::max(text.size(), other.size()) > 60;
  std::vector<std::string> others = parts_of_identity(other);
  std::string shown;
  for (std::string const& part : parts_of_identity(text)) {
    auto const same = std::ranges::find(others, part);
    if (is_long && same != others.end()) {
      others.erase(same);  // a part may be there twice
      continue;
    }
    shown += (shown.empty() ? "" : ", ") + shown_part(part);
  }
  if (!shown.empty()) return shown;
  return text.size() == other.size() ? "the same in another order" : "without that";
}

FRUGAL_INLINE std::vector<std::string> changed_data(std::map<std::string, std::string> const& here,
                                                    std::map<std::string, std::string> const& there,
                                                    std::vector<std::string> const& allowed,
                                                    std::filesystem::path const& where) {
  std::map<std::string, std::string> all = there;
  all.insert(here.begin(), here.end());
  auto const value = [](std::map<std::string, std::string> const& of, std::string const& name) {
    auto const found = of.find(name);
    return found == of.end() ? std::string("nothing") : found->second;
  };
  std::string refused;
  std::string names;
  std::vector<std::string> borne;
  for (auto const& [name, ignored] : all) {
    std::string const saved = value(there, name);
    std::string const now = value(here, name);
    if (saved == now) continue;
    if (validation_source(name) && (!there.contains(name) || !here.contains(name))) continue;
    std::string before = shown_identity(saved, now), after = shown_identity(now, saved);
    // They differ in what is left out of long parts.
    if (before == after && !before.starts_with("the same")) before = saved, after = now;
    if (is_among(allowed, name)) {
      borne.push_back(name + " was " + before + " and is " + after);
      continue;
    }
    refused +=
        (refused.empty() ? "" : "; ") + name + " is " + before + " there and " + after + " here";
    names += (names.empty() ? "\"" : ", \"") + name + "\"";
  }
  if (refused.empty()) return borne;
  throw StateError({.what = "this checkpoint was made with other data",
                    .where = where.string(),
                    .why = std::move(refused),
                    .fix = "Resume with the data and the order that saved it, set "
                           "Checkpoint::changed_data to {" +
                           names +
                           "} to continue with these, set Checkpoint::resume to Resume::Weights "
                           "to take the weights alone, or give another Settings::run_dir."});
}

FRUGAL_INLINE void refuse_run(std::filesystem::path const& run, std::string what, std::string why,
                              std::string fix) {
  throw StoreError({.what = std::move(what),
                    .where = run.string(),
                    .why = std::move(why),
                    .fix = std::move(fix)});
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE std::filesystem::path latest_checkpoint(std::filesystem::path const& run) {
  NewestValid newest = RunDirectory(run, Access::read).newest_valid();
  if (newest.checkpoint) return newest.checkpoint->folder;
  detail::refuse_run(
      run, "the run has no complete checkpoint",
      newest.damaged.empty() ? "its folder has no checkpoint" : newest.damaged.front().why,
      "Give the Settings::run_dir of a recipe with Checkpoint.");
}

FRUGAL_INLINE std::filesystem::path best_checkpoint(std::filesystem::path const& run,
                                                    std::string_view metric, Better better) {
  CheckpointList list = RunDirectory(run, Access::read).list();
  std::string known;
  std::erase_if(list.whole, [&](SavedCheckpoint const& checkpoint) {
    auto const& metrics = checkpoint.manifest.metrics;
    auto const found = metrics.find(std::string(metric));
    if (found == metrics.end() && known.empty()) {
      for (auto const& [name, value] : metrics) known += (known.empty() ? "" : ", ") + name;
    }
    return found == metrics.end() || std::isnan(found->second);
  });
  detail::erase_former(list.whole, metric);
  auto const value_of = [&](SavedCheckpoint const& checkpoint) {
    double const value = checkpoint.manifest.metrics.find(std::string(metric))->second;
    return better == Better::lower ? value : -value;
  };
  std::ranges::stable_sort(list.whole, {}, value_of);
  for (SavedCheckpoint const& checkpoint : list.whole) {
    try {
      verify(checkpoint);
      return checkpoint.folder;
    } catch (StoreError const& error) {
      if (!detail::is_damage(error)) throw;
    }
  }
  detail::refuse_run(
      run, "no complete checkpoint of the run has the metric '" + std::string(metric) + "'",
      known.empty()
          ? "none was saved after a validation: the run has no validation data, was not due "
            "to validate before its end, or ended before"
          : "there are: " + known,
      "Give a metric of Validate, in a run that validates before it saves: Report::warnings says "
      "if its cadence is beyond the run's end.");
}

}  // namespace frugal

namespace frugal::detail {

FRUGAL_INLINE bool BestSoFar::look(Metrics const& measured) {
  bool improved = false;
  for (BestBy const& best : metrics_) {
    double const value = measured[best.metric];
    if (std::isnan(value)) continue;
    auto const [known, first] = values_.try_emplace(best.metric, value);
    bool const better = best.highest ? value > known->second : value < known->second;
    if (!first && !better) continue;
    known->second = value;
    improved = improved_ = true;
  }
  return improved;
}

FRUGAL_INLINE void BestSoFar::begin_save() {
  improved_ = false;
  writing_ = values_;
  is_writing_ = true;
}

FRUGAL_INLINE void BestSoFar::saved() {
  if (is_writing_) saved_ = std::exchange(writing_, {});
  is_writing_ = false;
}

FRUGAL_INLINE void BestSoFar::not_saved() {
  if (!is_writing_) return;
  for (auto const& [metric, value] : writing_) {
    auto const known = values_.find(metric);
    if (known == values_.end() || known->second != value) continue;  // improved since
    if (auto const on_disk = saved_.find(metric); on_disk != saved_.end()) {
      known->second = on_disk->second;
    } else {
      values_.erase(known);
    }
  }
  writing_.clear();
  is_writing_ = false;
}

FRUGAL_INLINE void BestSoFar::reset_to(std::vector<std::map<std::string, double>> const& on_disk) {
  values_.clear();
  for (BestBy const& best : metrics_) {
    for (auto const& metrics : on_disk) {
      auto const found = metrics.find(best.metric);
      if (found == metrics.end() || std::isnan(found->second)) continue;
      auto const [known, first] = values_.try_emplace(best.metric, found->second);
      if (!first) {
        known->second = best.highest ? std::max(known->second, found->second)
                                     : std::min(known->second, found->second);
      }
    }
  }
  saved_ = values_;
}

}  // namespace frugal::detail

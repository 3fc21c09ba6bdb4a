// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/policy/optimize/partition.hpp>

#include <frugal/base/name_pattern.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <algorithm>
#include <set>

namespace frugal::detail {

FRUGAL_INLINE OwnedParameters PartitionSide::owned(std::size_t first_rate) const {
  return {parameters, parts ? &*parts : nullptr, places, label, first_rate};
}

FRUGAL_INLINE PartitionSides::PartitionSides(OwnedParameters const& all,
                                             std::vector<std::string> const& select)
    : label_(all.label) {
  std::string const where = "Optimize::" + label_ + "select";
  std::vector<NamePattern> const patterns(select.begin(), select.end());
  std::vector<bool> used(patterns.size());
  auto const is_first = [&](std::string const& name) {
    bool matches = false;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (!patterns[i].matches(name)) continue;
      used[i] = true;
      matches = true;
    }
    return matches;
  };
  auto const note = [&](std::string const& name, bool first) {
    sides_of_all_.emplace_back(name, first ? 0 : 1);
  };

  for (PartitionSide& side : sides_) {
    side.places.writes = all.places.writes;
    if (all.parts != nullptr) side.parts.emplace();
  }
  sides_[0].label = label_ + "first.";
  sides_[1].label = label_ + "rest.";
  std::set<std::string> const elsewhere(all.places.order.begin(), all.places.order.end());
  for (std::string const& name : all.places.order) {
    bool const first = is_first(name);
    PartitionSide& side = sides_[first ? 0 : 1];
    side.places.order.push_back(name);
    side.places.tensors.insert(*all.places.tensors.find(name));
    note(name, first);
  }
  for (std::size_t i = 0; i < all.all.size(); ++i) {
    std::string const& name = all.all.names[i];
    bool const first = is_first(name);
    PartitionSide& side = sides_[first ? 0 : 1];
    auto const [begin, end] = all.all.more_names.equal_range(i);
    for (auto other = begin; other != end; ++other) {
      if (is_first(other->second) != first) {
        throw SettingsError(
            {.what = "the parameter '" + name + "' is on both sides of a Partition",
             .where = where,
             .why = "its other name is '" + other->second + "', and a pattern matches only one",
             .fix = "Add a pattern for the other name, or change the one that matches."});
      }
      side.parameters.more_names.emplace(side.parameters.size(), other->second);
    }
    side.parameters.names.push_back(name);
    side.parameters.tensors.push_back(all.all.tensors[i]);
    if (all.parts != nullptr) {
      side.parts->parameters.names.push_back(all.parts->parameters.names[i]);
      side.parts->parameters.tensors.push_back(all.parts->parameters.tensors[i]);
      side.parts->of.push_back(all.parts->of[i]);
    }
    if (!elsewhere.contains(name)) note(name, first);
  }

  std::string known;
  for (auto const& [name, side] : sides_of_all_) known += " " + name;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    if (used[i]) continue;
    throw SettingsError({.what = "the pattern '" + patterns[i].text() + "' matches no parameter",
                         .where = where,
                         .why = "the optimizer's parameters are:" + known,
                         .fix = "Fix the pattern; '*' stands for any text, dots included."});
  }
  for (std::size_t const side : {0U, 1U}) {
    if (std::ranges::any_of(sides_of_all_, [&](auto const& each) { return each.second == side; })) {
      continue;
    }
    throw SettingsError({.what = std::string("`") + (side == 0 ? "first" : "rest") +
                                 "` of a Partition has no parameters",
                         .where = where,
                         .why = select.empty()
                                    ? "it has no patterns, so all parameters are `rest`'s"
                                    : "its patterns match all parameters:" + known,
                         .fix = "Write patterns of the parameters that `first` updates, such as "
                                "\"critic.*\", or use one optimizer alone."});
  }
}

FRUGAL_INLINE void PartitionSides::compare_in_processes(FitBegin& phase) const {
  for (auto const& [name, side] : sides_of_all_) {
    phase.compare_in_processes(
        "the optimizer's " + label_ + "side (0: first, 1: rest) of '" + name + "'",
        static_cast<double>(side), /*on_resume=*/false);  // a checkpoint of another side is refused
  }
}

FRUGAL_INLINE void PartitionSides::refuse_other(std::string const& parameter,
                                                std::string const& saved, std::string const& here) {
  auto const side = [](std::string const& label) {
    return "`" + label.substr(0, label.size() - std::min<std::size_t>(label.size(), 1)) + "`";
  };
  throw StateError({.what = "the saved partition of the optimizer is another one",
                    .where = parameter,
                    .why = "the saved run updated the parameter with " + side(saved) +
                           ", this one with " + side(here),
                    .fix = "Resume with the patterns of `select` that saved it, or set "
                           "Checkpoint::resume to Resume::Weights to take the weights alone."});
}

FRUGAL_INLINE std::vector<GroupRate> rates_of_sides(std::vector<GroupRate> first,
                                                    std::vector<GroupRate> rest) {
  auto const put = [](std::vector<GroupRate>& rates, std::string const& side) {
    for (GroupRate& each : rates) {
      each.name = each.name == "default" ? side : side + "." + each.name;
    }
  };
  put(first, "first");
  put(rest, "rest");
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

FRUGAL_INLINE std::uint64_t trained_bytes(Parameters const& all) {
  std::uint64_t bytes = 0;
  for (at::Tensor const& each : all.tensors) {
    if (each.requires_grad()) bytes += static_cast<std::uint64_t>(each.nbytes());
  }
  return bytes;
}

}  // namespace frugal::detail

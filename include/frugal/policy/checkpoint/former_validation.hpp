// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <frugal/checkpoint/checkpoint.hpp>
#include <frugal/core/compose/watching.hpp>

// A metric on some validation data says nothing of one on others: they are not compared.
namespace frugal::detail {

/// The validation data of a run, a text for each source; the source without a name is "".
using ValidationTexts = std::map<std::string, std::string, std::less<>>;

/// Those among the texts of DataIdentity.
ValidationTexts validation_texts(std::map<std::string, std::string> const& data);

/// The sources that both have, with different data.
std::set<std::string, std::less<>> changed_sources(ValidationTexts const& here,
                                                   ValidationTexts const& there);

/// The validation data that a checkpoint has noted. None if its state cannot be read: a resume
/// verifies it.
ValidationTexts validation_of(SavedCheckpoint const& checkpoint);

/// Which metrics of a run's checkpoints were measured on other validation data than the run has now.
class FormerValidation {
 public:
  FormerValidation() = default;
  FormerValidation(std::vector<SavedCheckpoint> const& checkpoints,
                   std::map<std::string, std::string> const& data);

  /// Takes them from a checkpoint, which then does not count among the best.
  void take_from(SavedCheckpoint& checkpoint) const;

 private:
  std::map<std::uint64_t, std::set<std::string, std::less<>>> by_serial_;
};

/// Removes the checkpoints whose `metric` was measured on other data than that of the newest which
/// has it. All have the metric; newest first.
void erase_former(std::vector<SavedCheckpoint>& checkpoints, std::string_view metric);

/// The validation source whose data this name of a DataIdentity is of: "" for the one without a
/// name.
std::optional<std::string> validation_source(std::string_view name);

/// Compares the training data, their order and the validation data (DataIdentity) with those of a
/// checkpoint. StateError that names all differences with both values, unless `allowed` has their
/// names. Returns the allowed ones in words. A validation source may come or go: only one that both
/// have must be the same.
std::vector<std::string> changed_data(std::map<std::string, std::string> const& here,
                                      std::map<std::string, std::string> const& there,
                                      std::vector<std::string> const& allowed,
                                      std::filesystem::path const& where);

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/policy/checkpoint/former_validation.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <frugal/base/json.hpp>
#include <frugal/error.hpp>
#include <frugal/search/trials/candidate.hpp>
#include <frugal/search/trials/history.hpp>

namespace frugal {

namespace detail {

/// Names and texts that a journal must have in common with the search that continues it. Those of the job, which a
/// worker may have otherwise although it has the same settings, begin with job_prefix.
using SearchIdentity = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::string_view job_prefix = "job: ";
/// What make() returns; a worker may be unable to make it, and checkpoints compare it by themselves.
inline constexpr std::string_view module_part = "the module";
/// Of a part of the job that cannot be compared.
inline constexpr std::string_view unknown_part = "?";

/// Applies the lines of a journal to a history, in their order. Lines of Optuna's tools that name neither a
/// trial nor a state, such as a dashboard's notes, are passed over.
class JournalReader {
 public:
  JournalReader(std::string file, SearchDomain const& domain,
                std::vector<SearchObjective> const& objectives, SearchIdentity const& identity)
      : file_(std::move(file)), domain_(domain), objectives_(objectives), identity_(identity) {}

  SearchHistory const& history() const { return history_; }
  /// Trial and rung of each result, in the order of the journal.
  std::vector<std::pair<std::size_t, std::size_t>> const& order() const { return order_; }
  /// Its first line creates a study.
  bool is_created() const { return created_; }
  /// The journal says which search it is of.
  bool is_identified() const { return identified_; }

  /// FormatError for a line that is no record; SettingsError for a journal of another search, StateError for one whose
  /// trials train another job.
  void apply(std::string_view line);

 private:
  [[noreturn]] void refuse(std::string const& why) const;
  Json const& member(Json const& of, char const* name) const;
  std::uint64_t number(Json const& of, char const* name) const;
  double real(Json const& of, char const* name) const;
  SearchTrial& trial_of(Json const& record);

  void create_study(Json const& record);
  void identify(Json const& record);
  void compare(std::string const& name, std::string const& there, std::string const& here) const;
  SettingsError another_search(std::string const& why) const;

  void create_trial(Json const& record);

  void attribute(Json const& record);
  void rung(SearchTrial& trial, Json const& each);
  void state(Json const& record);

  std::string file_;
  SearchDomain const& domain_;
  std::vector<SearchObjective> const& objectives_;
  SearchIdentity const& identity_;
  SearchHistory history_;
  std::vector<std::pair<std::size_t, std::size_t>> order_;
  std::size_t line_ = 0;
  bool created_ = false;
  bool identified_ = false;
};

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/search/journal/reader.ipp>
#endif

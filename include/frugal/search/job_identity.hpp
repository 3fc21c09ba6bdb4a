// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/utils.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <frugal/base/hash.hpp>
#include <frugal/base/name_hash.hpp>
#include <frugal/core/compose/list.hpp>
#include <frugal/core/compose/policy.hpp>
#include <frugal/core/compose/recipe.hpp>
#include <frugal/core/compose/written_name.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/measure/valid_sources.hpp>
#include <frugal/core/run/member_text.hpp>
#include <frugal/core/source/data_identity.hpp>
#include <frugal/core/source/range.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/core/source/source.hpp>
#include <frugal/core/state/module_tensors.hpp>
#include <frugal/policy/kinds.hpp>
#include <frugal/search/job.hpp>
#include <frugal/search/journal_records.hpp>
#include <frugal/search/space.hpp>
#include <frugal/search/trials/candidate.hpp>

namespace frugal::detail {

/// Kinds that decide nothing of what a trial comes to: how it is saved, moved and looked at.
using BesidesTheResult =
    list<kinds::checkpoint, kinds::spot, kinds::device, kinds::keep_host_memory, kinds::dry_run,
         kinds::audit, kinds::auto_batch, kinds::search_watch, kinds::throughput, kinds::start_on>;

template <class P>
constexpr bool decides_results() {
  if constexpr (is_null<P> || contains<typename P::kind, BesidesTheResult>) {
    return false;
  } else {
    // Those that write are called once per run; Budget ends it.
    return !P::kind::once_per_run || std::is_same_v<typename P::kind, kinds::budget>;
  }
}

/// The members of an object; those that the space varies have the same value in all searches.
template <class... Vs, class T>
std::string fixed_members(std::tuple<Vs...> const& settings, T object) {
  static_assert(tells_members<T>(),
                "frugal: a search compares the members of the objective, of policies and of the "
                "architecture between its workers, and cannot see those of this struct: it or a "
                "member has a base class, an array of C, a reference, or more than 20 members. Use "
                "std::array and a member in place of a base, or write `std::string settings() "
                "const` with all that its results depend on.");
  std::apply([&](auto const&... each) { (each.set(object, value_at(each.values, 0)), ...); },
             settings);
  return member_text(object);
}

/// "3 tensors, 1234 numbers, hash 0123456789abcdef" of names, types and shapes. Not of values: a CPU and a GPU, and two
/// CPUs, draw initial weights that differ in their last bits, and a hash of them would refuse workers of the same job.
inline std::string module_text(torch::nn::Module& module) {
  std::string all;
  std::uint64_t tensors = 0, numbers = 0;
  visit_all_tensors(module, [&](std::string const& name, at::Tensor const& tensor) {
    all += name + ' ' + shape_text(tensor) + '\n';
    ++tensors;
    numbers += static_cast<std::uint64_t>(tensor.numel());
  });
  return std::to_string(tensors) + " tensors, " + std::to_string(numbers) + " numbers, hash " +
         hex_of(name_hash(all));
}

/// What all trials have in common, and the settings of a search do not show: data, objective, shared policies, the
/// members that are not varied, the module. A worker for which one of them is otherwise trains another job.
template <class Space, class Job>
class JobIdentity;
template <class Recipes, class... Vs, class Make, class Objective, class Train, class Valid,
          class... Ps>
class JobIdentity<SearchSpace<Recipes, Vs...>, SearchJob<Make, Objective, Train, Valid, Ps...>> {
  using Space = SearchSpace<Recipes, Vs...>;
  using Job = SearchJob<Make, Objective, Train, Valid, Ps...>;

 public:
  /// The policies of a recipe but for the shared ones.
  template <class R>
  static std::string recipe(Space const& space) {
    std::string text;
    [&]<class... Qs>(list<Qs...>) {
      (add_own<Qs>(space, text), ...);
    }(typename policies_in<R>::type{});
    return text.empty() ? "no policy" : text;
  }

  /// Reads all data once, and makes the module of the smallest architecture.
  static void add(Space const& space, Job const& job, std::uint64_t seed, SearchIdentity& to) {
    auto const put = [&](std::string const& name, std::string text) {
      to.emplace_back(std::string(job_prefix) + name, std::move(text));
    };
    put("the objective",
        written_name<Objective>() + " " + fixed_members(space.settings, job.objective));
    [[maybe_unused]] std::size_t number = 0;
    [[maybe_unused]] auto const put_policy = [&]<class P>(P const& policy) {
      ++number;
      if constexpr (requires { typename P::kind; }) {
        if constexpr (decides_results<P>()) {
          put("shared policy " + std::to_string(number),
              written_name<P>() + " " + fixed_members(space.settings, policy));
        }
      } else {
        put("shared policy " + std::to_string(number), written_name<P>());
      }
    };
    std::apply([&](auto const&... each) { (put_policy(each), ...); }, job.shared);
    put_data(job, put);
    if constexpr (Job::has_architecture) {
      put("the architecture", fixed_members(space.settings, typename Job::architecture{}));
    }
    put(std::string(module_part), module_of(space, job, seed));
  }

 private:
  template <class Q>
  static void add_own(Space const& space, std::string& text) {
    if constexpr (requires { typename Q::kind; }) {
      if constexpr (decides_results<Q>()) {
        text += (text.empty() ? "" : ", ") + written_name<Q>();
        if constexpr (std::is_default_constructible_v<Q>) {
          text += " " + fixed_members(space.settings, Q{});
        }
      }
    }
  }

  template <class Put>
  static void put_data(Job const& job, Put const& put) {
    auto&& train = as_source(*job.train);
    auto&& valid = as_source(*job.valid);
    DataIdentity all = data_identity_of(std::as_const(train));
    add_batches(std::as_const(train), "batches", all);
    identify_validation(&valid, all);
    add_batches(std::as_const(valid), "validation batches", all);
    for (auto const& [name, value] : all.values()) put("data '" + name + "'", value);
  }
  template <class Source>
  static void add_batches(Source const& source, char const* name, DataIdentity& to) {
    if constexpr (SizedSource<Source>) to.add(name, static_cast<std::uint64_t>(source.batches()));
  }

  static std::string module_of(Space const& space, Job const& job, std::uint64_t seed) {
    typename Job::architecture smallest{};
    std::apply([&](auto const&... each) { (each.set(smallest, value_at(each.values, 0)), ...); },
               space.settings);
    try {
      torch::manual_seed(seed);
      auto module = job.make_module(smallest);
      return module_text(base_module(module));
    } catch (std::exception const&) {
      return std::string(unknown_part);  // an error of the trials that have it
    }
  }
};

}  // namespace frugal::detail

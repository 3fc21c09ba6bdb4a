// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/util/SmallVector.h>
#include <torch/nn/module.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string_view>
#include <unordered_set>

#include <frugal/core/run/counters.hpp>

namespace frugal {

/// Divides a Sequential or list into N segments of nearly equal length. Auto: about the square root
/// of its length, rounded so that no segment is longer than that, because a member holds more
/// activations than its input.
template <auto N>
struct Segments {
  static_assert(N >= 1,
                "frugal: Segments<0> leaves nothing to recompute. Write Segments<4> or "
                "Segments<Auto>, or leave Recompute out.");
  static constexpr std::size_t of(std::size_t length) {
    return length < std::size_t{N} ? length : std::size_t{N};
  }
};
template <>
struct Segments<Auto> {
  static std::size_t of(std::size_t length) {
    auto const longest = static_cast<std::size_t>(std::sqrt(static_cast<double>(length)));
    return longest == 0 ? 0 : (length + longest - 1) / longest;
  }
};

/// The modules for which `Predicate{}(name, module)` is true, each as its own segment.
template <class Predicate>
struct Modules {
  static_assert(
      requires(std::string_view name, torch::nn::Module const& module) {
        { Predicate{}(name, module) } -> std::convertible_to<bool>;
      },
      "frugal: a predicate for Modules is called with a module's name and the module. Give it "
      "`bool operator()(std::string_view, torch::nn::Module const&) const`.");
};

namespace detail {

template <class M>
struct held_module {
  using type = M;
};
template <class M>
  requires requires { typename M::ContainedType; }
struct held_module<M> {
  using type = typename M::ContainedType;
};

}  // namespace detail

/// A predicate: modules of these types, given as module types or holders.
template <class... Modules>
struct OfType {
  bool operator()(std::string_view, torch::nn::Module const& module) const {
    return (... ||
            (dynamic_cast<typename detail::held_module<Modules>::type const*>(&module) != nullptr));
  }
};

namespace detail {

template <class How>
struct SegmentPlan;

/// The segment of each member of a Sequential or list; nothing for members that are not recomputed.
/// Lists of usual length cost no allocation.
using SegmentNumbers = c10::SmallVector<std::optional<std::size_t>, 32>;
using Members = c10::SmallVector<torch::nn::Module const*, 32>;

/// How a recipe's Recompute segments a Sequential or list.
class Plan {
 public:
  Plan() = default;
  Plan(Plan const&) = delete;
  Plan& operator=(Plan const&) = delete;
  virtual ~Plan() = default;
  virtual SegmentNumbers assign(Members const& members) const = 0;
};

template <auto N>
struct SegmentPlan<Segments<N>> final : Plan {
  SegmentNumbers assign(Members const& members) const override {
    std::size_t const segments = Segments<N>::of(members.size());
    SegmentNumbers assignment;
    for (std::size_t i = 0; i < members.size(); ++i) {
      // The first segments are longer by one.
      std::size_t const length = members.size() / segments;
      std::size_t const longer = members.size() % segments;
      std::size_t const in_longer = longer * (length + 1);
      assignment.emplace_back(i < in_longer ? i / (length + 1) : longer + (i - in_longer) / length);
    }
    return assignment;
  }
};

template <class Predicate>
struct SegmentPlan<Modules<Predicate>> final : Plan {
  SegmentNumbers assign(Members const& members) const override {
    SegmentNumbers assignment;
    for (std::size_t i = 0; i < members.size(); ++i) {
      assignment.push_back(wanted.contains(members[i]) ? std::optional(i) : std::nullopt);
    }
    return assignment;
  }
  std::unordered_set<torch::nn::Module const*> wanted;
};

}  // namespace detail
}  // namespace frugal
